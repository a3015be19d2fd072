package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// status and audits show what the status of a running dpwatch has, with the token of its configuration.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "ADMIN TOKEN")
	conn := s.connect(t)
	exec0(t, conn, "SELECT noisy(count(*), 4) FROM people WHERE id > 1 /*dp_epsilon='0.5'*/")
	exec0(t, conn, "SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.2'*/") // leaks 5
	exec0(t, conn, "DELETE FROM other /* no people */")
	s.until(t, "two verdicts and a skipped statement", func() bool {
		st := s.status(t).Audit
		return len(st.Audits) == 2 && st.Audits[0].State == "decided" && st.Audits[1].State == "decided" && st.Skipped["not_select"] > 0
	})
	before := s.audits(t)
	good, bad := before[0].ID, before[1].ID
	config := file(t, "ask.yaml", fmt.Sprintf("admin: {listen: %q, token_file: %q}\nshadow: {dsn: '${UNSET_HERE}'}\n", s.admin, file(t, "token", s.token)))
	ask := func(args ...string) result { return call(t, "", append(args, "--config", config)...) }

	ask("status").want(t, exitDone, "at "+s.admin, "running since 20", "last heard", "1 open", "no fault", "audits are lost", "trials run",
		"100 % of 2 distinct DP queries audited; users with audits: 1", "not_select 1", "2: 2 decided", "FIRST SEEN", bad)
	var answer struct {
		Audit struct{ Audits []map[string]any }
	}
	if err := json.Unmarshal([]byte(ask("status", "-o", "json").stdout), &answer); err != nil || len(answer.Audit.Audits) != 2 {
		t.Errorf("status -o json: %v, %v", answer, err)
	}

	list := ask("audits", "list")
	list.want(t, exitDone, "LAST SEEN", "violation", "no_evidence", good)
	if strings.Index(list.stdout, bad) > strings.Index(list.stdout, good) {
		t.Errorf("the violation is not first:\n%s", list.stdout)
	}
	ask("audits", "list", "--limit", "1").want(t, exitDone, bad, "left out: 1;", "--limit 0 all")
	ask("audits", "list", "--state", "waiting").want(t, exitDone, "no audits")
	ask("audits", "list", "--state", "nonsense").want(t, exitFailure, "must be queued, running")
	ask("audits", "list", "--limit", "-1").want(t, exitFailure, "--limit -1")
	selected := ask("audits", "list", "--verdict", "no_evidence", "-o", "json").object(t)
	if all, _ := selected["audits"].([]any); len(all) != 1 || all[0].(map[string]any)["id"] != good || selected["left_out"] != 0.0 {
		t.Errorf("audits list --verdict no_evidence -o json: %v", selected)
	}

	explain := func(args ...string) result {
		return call(t, "", append([]string{"explain", "--address", s.admin, "--token-file", file(t, "token", s.token), "--full"}, args...)...)
	}
	explain(bad[:6]).want(t, exitDone, "audit "+bad+": violation", "VIOLATION: this query leaks more", "(comment)", "epsilon lower bound",
		"how bad", "certified", "what", "likely", "confirmation", "attacker's odds", "assumptions of the rewrite", "executions", "fingerprint")
	explain(good).want(t, exitDone, "no evidence", "would have been found")
	if shown := explain(bad, "-o", "json").object(t); shown["id"] != bad || shown["audit"] == nil {
		t.Errorf("explain --full -o json: %v", shown)
	}
	explain("zz").want(t, exitFailure, `no audit "zz"`)
	ask("explain", "").want(t, exitFailure, "takes one argument, ID")
	ask("explain").want(t, exitFailure, "takes one argument, ID")

	call(t, "", "status", "--address", s.admin).want(t, exitFailure, s.admin+" requires a token", "--token-file")
	call(t, "", "status", "--address", s.admin, "--token-file", file(t, "other", strings.Repeat("x", 32))).want(t, exitFailure, "rejects the token in")
	call(t, "", "status", "--address", "127.0.0.1:1").want(t, exitFailure, "127.0.0.1:1 does not answer", "is dpwatch running")
	call(t, "", "status", "--address", "http://192.0.2.1:1", "--token-file", file(t, "token", s.token)).want(t, exitFailure, "unencrypted")
	call(t, "", "status").want(t, exitFailure, "give either --config")
}

// The token is sent only to a listener whose certificate is the configured one, or is trusted. A listener that serves
// only metrics is not asked.
func TestStatusTLS(t *testing.T) {
	t.Parallel()
	s := startTLSAdmin(t)
	socket, tokens, certFile, keyFile := s.socket, s.tokens, s.cert, s.key
	otherCert, otherKey := certificate(t)
	_, port, _ := net.SplitHostPort(s.admins[0])
	admin := func(cert, key string) string {
		return file(t, "tls.yaml", fmt.Sprintf(`admin:
  - {listen: 127.0.0.1:1, metrics_only: true}
  - {listen: 0.0.0.0:%s, token_file: %q, tls: {certificate: %q, key: %q}}
`, port, tokens, cert, key))
	}
	call(t, "", "status", "--config", admin(certFile, keyFile)).want(t, exitDone, "dpwatch ", "auditor")
	call(t, "", "status", "--config", admin(otherCert, otherKey)).want(t, exitFailure, "its certificate is not the one in "+otherCert)
	call(t, "", "status", "--address", "https://127.0.0.1:"+port, "--token-file", tokens).want(t, exitFailure, "SSL_CERT_FILE")
	call(t, "", "status", "--address", "unix:"+socket).want(t, exitDone, "auditor")
	call(t, "", "audits", "list", "--config", file(t, "only.yaml", "admin: {listen: '127.0.0.1:1', metrics_only: true}\n")).want(t, exitFailure, "every admin listener is metrics_only")
}

// Texts of clients cannot control the terminal; records of evicted violations and unfinished audits are shown.
func TestStatusOfAnother(t *testing.T) {
	t.Parallel()
	answer := `{"version":"v1","routes":[{"name":"r1","captured":"no"},{"name":"r2","captured":"yes"}],"auditor":{"pid":0,"starts":3},"audit":{"skipped":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6},"evicted":{"idle":1},
		"audits":[{"id":"aa11","key":"aa11ff","repeats":2,"previous_verdict":"no_evidence","state":"running","verdict":"running","user":"x\u001b[2J\ty","summary":"SELECT"},
			{"id":"aa12","key":"aa12ff","state":"queued","verdict":"queued","report":{"verdict":"violation","deterministic":{}}}],
		"records":[{"id":"bb22","epsilon_claimed":0.5,"epsilon_lower":null,"trials":7,"summary":"S"}],"ledger":{"trouble":"down","lost":9}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	defer server.Close()
	ask := func(args ...string) result { return call(t, "", append(args, "--address", server.URL)...) }
	ask("status").want(t, exitDone, "not running; started 3 times", "FAULT: down", "r1: no", "9 observations lost", "21: f 6, e 5, d 4, c 3, b 2, others 1",
		"2: 1 queued, 1 running", "violations  1", "bb22")
	if got := ask("status", "-o", "json").stdout; got != answer {
		t.Errorf("status -o json changed the answer:\n%s", got)
	}
	list := ask("audits", "list")
	list.want(t, exitDone, "violation (evicted)", "deterministic", "x?[2J y")
	shown := ask("explain", "--full", "aa11")
	shown.want(t, exitDone, "No verdict yet.", "x?[2J y", "the verdict before: no evidence")
	if all := list.stdout + shown.stdout; strings.ContainsRune(all, '\x1b') {
		t.Errorf("an escape sequence is printed: %q", all)
	}
	ask("explain", "--full", "bb").want(t, exitDone, "the audit was evicted", "epsilon 0.5")
	ask("explain", "--full", "aa1").want(t, exitFailure, `2 audits begin with "aa1"`, "aa12ff")
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(ask("audits", "list", "--state", "evicted", "-o", "json").stdout)); err != nil ||
		out.String() != `{"audits":[],"records":[{"id":"bb22","epsilon_claimed":0.5,"epsilon_lower":null,"trials":7,"summary":"S"}],"left_out":0}` {
		t.Errorf("audits list --state evicted -o json: %s, %v", out.String(), err)
	}
	answer = `{"audit":null}`
	ask("status").want(t, exitDone, "not running")
	ask("audits", "list").want(t, exitFailure, "has not sent its status yet")
	answer = `<html>`
	ask("status").want(t, exitFailure, "does not answer with a status of dpwatch")
}
