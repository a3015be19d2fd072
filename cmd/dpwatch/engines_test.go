package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/dpwatch/dpwatch/internal/app/reports"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// enginesStatus is what GET /api/status shows of several engines.
type enginesStatus struct {
	Engines []struct {
		Engine  string
		Paused  bool
		Routes  []struct{ Name string }
		Auditor struct{ PID, Starts int }
		Audit   struct{ Audits []decidedAudit }
	}
}

func (s *sidecar) engines(t *testing.T) (v enginesStatus) {
	t.Helper()
	_, body := s.get(t, "/api/status")
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return v
}

// startEngines runs two engines of one process on one database: route one leads to engine honest, which protects
// people, and route two to engine broken, which protects accounts, claims less than its answers reveal, and whose turns
// only workers run.
func startEngines(t *testing.T) (s *sidecar, addresses []string) {
	t.Helper()
	s = &sidecar{direct: copies(t), token: "a-token-for-this-test"}
	pgtest.Exec(t, s.direct, `
		CREATE TABLE people AS SELECT * FROM d0.people; CREATE TABLE accounts AS SELECT * FROM d0.people;
		CREATE SCHEMA b0; CREATE TABLE b0.accounts AS SELECT * FROM d0.people;
		CREATE SCHEMA b1; CREATE TABLE b1.accounts AS SELECT * FROM d1.people`)
	cfg, err := pgx.ParseConfig(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	upstream := fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {drain_timeout: 1h}
admin: {listen: 127.0.0.1:0, token_file: %[2]q}
shadow: {dsn: %[3]q}
claims: {safe_functions: [noisy]}
audit: {measure_trials: 0, max_trials: 500, confidence: 0.999999, share: 1, sequences: false}
ledger: {dsn: %[4]q}
engines:
  - name: honest
    proxy: {name: one, listen: 127.0.0.1:0, upstream: %[1]q}
    privacy: {protected: [public.people]}
    claims: {default: {epsilon: 3}}
  - name: broken
    proxy: {name: two, listen: 127.0.0.2:0, upstream: %[1]q}
    privacy: {protected: [public.accounts]}
    shadow: {d0: b0, d1: [b1]}
    claims: {default: {epsilon: 0.2}}
    audit: {workers: 0}
`, upstream, file(t, "token", s.token+"\n"), replayRole(t, s.direct, "d0", "d1", "b0", "b1"), s.direct)))
	var up struct{ Listen []string }
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"dpwatch is up"`) && json.Unmarshal([]byte(line), &up) != nil {
			t.Fatal(line)
		}
	}
	if len(up.Listen) != 2 {
		t.Fatalf("addresses %v", up.Listen)
	}
	return s, up.Listen
}

// TestSeveralEngines: two engines of one process with their own tables, claims, copies and auditors share a ledger. The
// answers reveal an epsilon of 2. The case fails at most twice in a million runs.
func TestSeveralEngines(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s, addresses := startEngines(t)
	worker := startProgramWith(t, s.environ, "worker", "--config", s.config)
	for _, a := range addresses {
		s.addr = a
		conn := s.connect(t)
		exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM people")
		exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM accounts")
	}
	var v enginesStatus
	s.until(t, "one decided audit of each engine", func() bool {
		v = s.engines(t)
		for _, e := range v.Engines {
			if len(e.Audit.Audits) != 1 || e.Audit.Audits[0].State != "decided" {
				return false
			}
		}
		return true
	})
	var got []string
	for _, e := range v.Engines {
		got = append(got, fmt.Sprintf("%s %s: %s", e.Engine, e.Routes[0].Name, e.Audit.Audits[0].Report.Verdict))
	}
	if diff := cmp.Diff([]string{"honest one: no_evidence", "broken two: violation"}, got); diff != "" {
		t.Fatalf("verdicts (-want +got)\n%s", diff)
	}
	found := v.Engines[1].Audit.Audits[0].ID
	s.until(t, "the alert is in the log, with its engine", func() bool {
		return regexp.MustCompile(`"msg":"privacy violation".*"dp.engine":"broken"|"dp.engine":"broken".*"msg":"privacy violation"`).MatchString(s.log.String())
	})
	if log := worker.log.String(); strings.Count(log, `"dpwatch worker is up"`) != 2 {
		t.Errorf("the worker does not serve both engines:\n%s", log)
	}
	s.checkEngineMetrics(t)
	s.checkEngineRecords(t, found)
	s.checkEngineCommands(t, found)
	s.checkEngineRequests(t)
	s.checkEngineKilled(t)
}

func (s *sidecar) checkEngineMetrics(t *testing.T) {
	t.Helper()
	var metrics string
	for _, pattern := range []string{
		`dpwatch_verdicts_total\{verdict="violation",engine="broken"\} 1`, `dpwatch_verdicts_total\{verdict="no_evidence",engine="honest"\} 1`,
		`dpwatch_auditor_up\{engine="broken"\} 1`, `dpwatch_auditor_up\{engine="honest"\} 1`,
	} {
		s.until(t, "/metrics has "+pattern, func() bool {
			_, metrics = s.get(t, "/metrics")
			return regexp.MustCompile(pattern).MatchString(metrics)
		})
	}
	problems, err := promlint.New(strings.NewReader(metrics)).Lint()
	if err != nil {
		t.Errorf("metrics: %v", err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "dpwatch_") {
			t.Errorf("metrics: %s: %s", p.Metric, p.Text)
		}
	}
}

// checkEngineRecords checks the names of the engines in the ledger.
func (s *sidecar) checkEngineRecords(t *testing.T, found string) {
	t.Helper()
	conn := pgtest.Connect(t, s.direct)
	const query = `SELECT q.engine || ' ' || a.verdict FROM dpwatch_ledger.queries q JOIN dpwatch_ledger.audits a ON a.query = q.id ORDER BY 1`
	s.until(t, "both audits are in the ledger", func() bool {
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return cmp.Equal([]string{"broken violation", "honest no_evidence"}, got)
	})
	for engine, want := range map[string]string{"broken": "violation", "honest": "no_evidence"} {
		s.until(t, "the coverage of "+engine, func() bool {
			r := call(t, "", "coverage", "--config", s.config, "--engine", engine, "-o", "json")
			return r.code == exitDone && strings.Contains(r.stdout, `"reason": "`+want+`"`) && strings.Count(r.stdout, `"reason": "no_evidence"`)+strings.Count(r.stdout, `"reason": "violation"`) == 1
		})
	}
	call(t, "", "explain", found, "--config", s.config).want(t, exitDone, "broken", "accounts")
	for path, want := range map[string]string{"/": "1 query leaks", "/?engine=broken": "1 query leaks", "/queries": "2 queries.", "/queries?engine=broken": "1 query.", "/queries/" + found: "<h1 data-live=\"title\">Leaks ", "/coverage": "Engine broken", "/jobs": "of engine broken"} {
		if status, body := s.get(t, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, no %q in\n%s", path, status, want, body)
		}
	}
	report := filepath.Join(t.TempDir(), "report")
	call(t, "", "report", "--all", "--config", s.config, "--dir", report, "-o", "json").want(t, exitDone)
	text, err := os.ReadFile(filepath.Join(report, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var both reports.Report
	if err := json.Unmarshal(text, &both); err != nil || len(both.Audits) != 2 || both.Audits[0].Engine == both.Audits[1].Engine || len(both.Findings) != 1 || len(both.Errors) != 2 {
		t.Errorf("the report of both engines: %v\n%s", err, text)
	}
	call(t, "", "audits", "accept", found, "--config", s.config, "--until", "2199-12-31", "--reason", "a test").want(t, exitDone, found)
}

// checkEngineCommands checks the commands that concern one engine.
func (s *sidecar) checkEngineCommands(t *testing.T, found string) {
	t.Helper()
	ask := []string{"--address", s.admin, "--token-file", file(t, "token", s.token+"\n")}
	read := []string{"--config", s.config}
	for _, tc := range []struct {
		flags []string
		args  []string
		code  int
		want  string
	}{
		{ask, []string{"status"}, exitDone, "engine honest"},
		{ask, []string{"status"}, exitDone, "engine broken"},
		{ask, []string{"status", "--engine", "broken"}, exitDone, "engine broken"},
		{ask, []string{"audits", "list"}, exitFailure, "choose one of honest, broken with --engine"},
		{ask, []string{"audits", "list", "--engine", "honest"}, exitDone, "people"},
		{ask, []string{"audits", "list", "--engine", "brocken"}, exitFailure, "its engines are honest, broken"},
		{ask, []string{"explain", "--full", found}, exitDone, "accounts"},
		{ask, []string{"budgets"}, exitFailure, "choose one of honest, broken"},
		{ask, []string{"budgets", "--engine", "broken"}, exitDone, "no budgets"},
		{ask, []string{"coverage"}, exitFailure, "choose one of honest, broken"},
		{ask, []string{"coverage", "--engine", "*"}, exitDone, "violation"},
		{read, []string{"coverage"}, exitFailure, "choose one of honest, broken"},
		{read, []string{"budgets", "--engine", "honest"}, exitDone, "no budgets"},
		{read, []string{"audit", "--sql", "SELECT noisy(count(*), 0.5) FROM accounts"}, exitFailure, "--engine-name NAME"},
		{read, []string{"audit", "--engine-name", "broken", "--sql", "SELECT noisy(count(*), 0.5) FROM accounts"}, exitViolation, "VIOLATION"},
		{read, []string{"neighbours", "list"}, exitFailure, "--engine NAME"},
		{read, []string{"neighbours", "list", "--engine", "broken"}, exitFailure, "neighbours.source is not set"},
		{read, []string{"migrate"}, exitDone, "up to date"},
		{read, []string{"doctor"}, exitDone, "broken: ledger"},
	} {
		call(t, "", append(tc.args, tc.flags...)...).want(t, tc.code, tc.want)
	}
}

// checkEngineRequests checks the requests that concern one engine.
func (s *sidecar) checkEngineRequests(t *testing.T) {
	t.Helper()
	if code, body := s.ask(t, http.MethodPost, "/api/engine?label=2"); code != http.StatusBadRequest || !strings.Contains(body, "choose one of honest, broken") {
		t.Errorf("a deploy without an engine: %d %s", code, body)
	}
	if code, body := s.ask(t, http.MethodPost, "/api/engine?label=2&engine=honest"); code != http.StatusNoContent {
		t.Errorf("a deploy: %d %s", code, body)
	}
	if code, body := s.ask(t, http.MethodPost, "/api/pause?engine=broken"); code != http.StatusNoContent {
		t.Errorf("pause: %d %s", code, body)
	}
	if v := s.engines(t); v.Engines[0].Paused || !v.Engines[1].Paused {
		t.Errorf("paused: %v, %v; want only broken", v.Engines[0].Paused, v.Engines[1].Paused)
	}
}

// checkEngineKilled kills the auditor of one engine: it comes back with its audit, and that of the other engine goes
// on.
func (s *sidecar) checkEngineKilled(t *testing.T) {
	t.Helper()
	before := s.engines(t).Engines
	if err := syscall.Kill(before[0].Auditor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the auditor of honest is back with its audit", func() bool {
		e := s.engines(t).Engines[0]
		restored := regexp.MustCompile(`"audits restored from the ledger","dp.engine":"honest"[^\n]*"audits":1`).MatchString(s.log.String())
		return restored && e.Auditor.PID != 0 && e.Auditor.PID != before[0].Auditor.PID && len(e.Audit.Audits) == 1 && e.Audit.Audits[0].State == "decided"
	})
	after := s.engines(t).Engines
	if after[0].Audit.Audits[0].ID != before[0].Audit.Audits[0].ID || after[1].Auditor.PID != before[1].Auditor.PID || after[1].Auditor.Starts != 1 {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}
