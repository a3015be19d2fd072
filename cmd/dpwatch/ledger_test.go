package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// decidedAudit is what a restart must not change.
type decidedAudit struct {
	ID        string
	Summary   string
	State     string
	Seen      int
	FirstSeen string `json:"first_seen"`
	Report    struct {
		Verdict string
		Reason  string
		Lower   float64 `json:"epsilon_lower"`
		Trials  struct{ D0, D1 int }
	}
}

func (s *sidecar) audits(t *testing.T) []decidedAudit {
	t.Helper()
	_, body := s.get(t, "/api/status")
	var v struct {
		Audit struct{ Audits []decidedAudit }
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	for i := range v.Audit.Audits { // the ledger keeps microseconds
		a := &v.Audit.Audits[i]
		a.FirstSeen = strings.TrimRight(a.FirstSeen, "Z")[:len("2006-01-02T15:04:05")]
	}
	return v.Audit.Audits
}

// TestRunLedger: neither kill -9 of the auditor nor a restart of everything changes verdicts, bounds or counts, and no
// violation is reported twice. The replay role cannot read the ledger, which is in the shadow database.
func TestRunLedger(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER")
	s.until(t, "the ledger", func() bool { return strings.Contains(s.log.String(), "audits restored from the ledger") })
	conn := s.connect(t)
	for _, sql := range []string{
		"/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people",
		"/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people",
		"/*dp_epsilon='0.5'*/ SELECT noisy((SELECT count(*) FROM dpwatch_ledger.audits), 1) FROM people",
	} {
		exec0(t, conn, sql)
	}
	var before []decidedAudit
	s.until(t, "two verdicts", func() bool {
		before = s.audits(t)
		return len(before) == 2 && before[0].State == "decided" && before[1].State == "decided"
	})
	if before[0].Report.Verdict != "violation" || before[1].Report.Verdict != "no_evidence" {
		t.Fatalf("%+v; want a violation and no evidence", before)
	}
	same := func(what string) {
		t.Helper()
		var after []decidedAudit
		s.until(t, "the audits are restored", func() bool { after = s.audits(t); return len(after) == len(before) })
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s changed the audits (-before +after):\n%s", what, diff)
		}
		s.until(t, "the metrics after "+what, func() bool {
			_, metrics := s.get(t, "/metrics")
			return strings.Contains(metrics, "\ndpwatch_open_violations 1\n") && strings.Contains(metrics, "\ndpwatch_ledger_up 1\n")
		})
	}
	s.until(t, "everything is written", func() bool {
		_, body := s.get(t, "/api/status")
		return strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`) && strings.Contains(body, `"unknown_table":1`)
	})
	pid := s.auditor(t, 0)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.auditor(t, pid)
	s.until(t, "the new auditor has the ledger", func() bool { return strings.Count(s.log.String(), "audits restored from the ledger") == 2 })
	same("kill -9 of the auditor")
	if n := strings.Count(s.log.String(), `"msg":"privacy violation"`); n != 1 {
		t.Errorf("%d alerts, want 1:\n%s", n, s.log.String())
	}
	s.until(t, "an alert of the exceeded budget", func() bool { return strings.Contains(s.log.String(), budgetAlert) })
	exec0(t, conn, "SELECT 1") // the relay does not send it to the auditor, but counts it
	s.until(t, "it is counted", func() bool {
		_, answer := s.get(t, "/api/coverage?since=2h")
		var c records.Coverage
		return json.Unmarshal([]byte(answer), &c) == nil && c.Statements == 4
	})
	_ = conn.Close(t.Context()) // sessions may drain for an hour
	s.end(t)
	s.run(t, s.config)
	same("a restart of everything")
	if log := s.log.String(); strings.Contains(log, `"msg":"privacy violation"`) {
		t.Errorf("the violation is reported again:\n%s", log)
	}
	var skipped, executions int
	err := pgtest.Connect(t, s.direct).QueryRow(t.Context(), `SELECT (SELECT sum(statements) FROM dpwatch_ledger.skipped WHERE reason = 'unknown_table'),
		(SELECT sum(executions) FROM dpwatch_ledger.query_users)`).Scan(&skipped, &executions)
	if err != nil || skipped != 1 || executions != 2 {
		t.Errorf("the ledger has %d skipped statements and %d executions, %v; want 1 and 2", skipped, executions, err)
	}
	s.checkCoverage(t)
	s.checkBudgets(t)
	s.checkPages(t, before)
	_, err = pgtest.Connect(t, s.replay).Exec(t.Context(), "SELECT FROM dpwatch_ledger.audits")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "42501" {
		t.Errorf("the replay role reads the ledger: %v, want 42501", err)
	}
}

// TestRunLedgerExposed: a replay role that can read the ledger keeps audits from starting, and the log says what to do.
func TestRunLedgerExposed(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER EXPOSED")
	s.until(t, "an error in the log", func() bool { return strings.Contains(s.log.String(), "is a superuser and can read the ledger") })
	conn := s.connect(t)
	if err := checked(conn, 1); err != nil {
		t.Errorf("a session noticed: %v", err)
	}
}

// end stops dpwatch as an operator would.
func (s *sidecar) end(t *testing.T) {
	t.Helper()
	if err := s.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-s.ended
}

// TestMigrate: a ledger is created once; without the right to create it the message says which right is missing.
func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	replayer := replayRole(t, dsn, "d0", "d1")
	config := func(ledger string) string {
		return file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
claims: {default: {epsilon: 1}}
ledger: {dsn: %q, migrate: false}
`, upstreamOf(t, dsn), replayer, ledger))
	}
	path := config(dsn)
	if c := find(checksOf(t, exitFailure, path), "ledger", ""); c.Status != preflight.Fault || !strings.Contains(c.Fix, "dpwatch migrate") {
		t.Errorf("before: %+v; want a fault that names dpwatch migrate", c)
	}
	call(t, "", "migrate", "--config", config(replayer)).want(t, exitFailure, "its role needs CREATE on the database")
	call(t, "", "migrate", "--config", config("memory")).want(t, exitFailure, "there is no ledger")
	if r := call(t, "", "migrate", "--config", path); r.code != exitDone || !strings.Contains(r.stdout, "created or upgraded, version ") {
		t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := call(t, "", "migrate", "--config", path); r.code != exitDone || !strings.Contains(r.stdout, "up to date, version ") {
		t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	if c := find(checksOf(t, exitDone, path), "ledger", ""); c.Status != preflight.OK {
		t.Errorf("afterwards: %+v; want a sound ledger", c)
	}
	pgtest.Exec(t, dsn, "DELETE FROM dpwatch_ledger.migrations WHERE version_id > 0; INSERT INTO dpwatch_ledger.migrations (version_id, is_applied) VALUES (17, true)")
	call(t, "", "migrate", "--config", path).want(t, exitFailure, "the ledger was written by dpwatch 0.1.0 or earlier", "ledger.schema", "DROP SCHEMA")
	if c := find(checksOf(t, exitFailure, path), "ledger", ""); c.Status != preflight.Fault || !strings.Contains(c.Message, "dpwatch 0.1.0 or earlier") {
		t.Errorf("a former ledger: %+v", c)
	}
}
