package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// TestRunDeploy: a label that is posted with a token begins the audits again without the client, also when the auditor
// process was replaced since; a label that is none is refused.
func TestRunDeploy(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "ADMIN TOKEN")
	exec0(t, s.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	type entry struct {
		State    string
		Seen     int
		Epoch    string `json:"engine_epoch"`
		Restarts int    `json:"engine_restarts"`
	}
	var last entry
	decided := func(restarts int) func() bool {
		return func() bool {
			_, body := s.get(t, "/api/status")
			var v struct{ Audit struct{ Audits []entry } }
			if json.Unmarshal([]byte(body), &v) != nil || len(v.Audit.Audits) != 1 {
				return false
			}
			last = v.Audit.Audits[0]
			return last.State == "decided" && last.Restarts == restarts
		}
	}
	s.until(t, "a verdict", decided(0))
	first := last
	for label, want := range map[string]int{"": http.StatusBadRequest, "two%20words": http.StatusBadRequest, strings.Repeat("x", 101): http.StatusBadRequest, "v2": http.StatusNoContent} {
		if code, body := s.ask(t, http.MethodPost, "/api/engine?label="+label); code != want {
			t.Errorf("label %q: %d %s, want %d", label, code, body, want)
		}
	}
	s.until(t, "a verdict on the new engine", decided(1))
	if last.Seen != 1 || last.Epoch == first.Epoch || first.Epoch == "" {
		t.Errorf("%+v, before %+v", last, first)
	}
	token := s.token
	s.token = strings.Repeat("x", 20)
	if code, _ := s.ask(t, http.MethodPost, "/api/engine?label=v3"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", code)
	}
	s.token = token
}

// TestCheckVersion: config check compares the DP functions of the shadow database with production's, and asks an engine
// for its version.
func TestCheckVersion(t *testing.T) {
	t.Parallel()
	shadow, production := copies(t), copies(t)
	pgtest.Exec(t, production, "CREATE TABLE people AS TABLE d0.people")
	check := func(code int, version string) []preflight.Check {
		t.Helper()
		return checksOf(t, code, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q, engine: {version: %q}}
privacy: {protected: [public.people], catalog: %q}
claims: {functions: [{name: noisy, epsilon: -1}]}
ledger: {dsn: memory}
`, upstreamOf(t, shadow), shadow, version, production)))
	}
	if c := find(check(exitDone, ""), "claims.functions", "another definition"); c.Status != "" {
		t.Errorf("the same functions: %+v", c)
	}
	pgtest.Exec(t, production, "ALTER FUNCTION noisy STRICT")
	if c := find(check(exitDone, ""), "claims.functions", "another definition"); c.Status != preflight.Warning || c.Object != "public.noisy" {
		t.Errorf("another function: %+v, want a warning about public.noisy", c)
	}
	if c := find(check(exitDone, "SELECT 1"), "shadow.engine.version", ""); c.Status != preflight.OK {
		t.Errorf("a version: %+v", c)
	}
	if c := find(check(exitFailure, "SELECT generate_series(1, 2)"), "shadow.engine.version", ""); c.Status != preflight.Fault {
		t.Errorf("two rows: %+v", c)
	}
}
