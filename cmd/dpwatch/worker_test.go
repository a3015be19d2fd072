package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/longtest"
)

// workersStatus is what the status shows of workers and their turns.
type workersStatus struct {
	Audit struct {
		Turns   struct{ Out, Delivered, Dropped int }
		Workers []struct {
			ID     string
			Turns  int
			Silent time.Duration `json:"silent_ns"`
		}
	}
}

func (s *sidecar) workers(t *testing.T) (v workersStatus) {
	t.Helper()
	_, body := s.get(t, "/api/status")
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return v
}

// TestWorkerKilled: a worker is killed in its turns. They are taken back, another worker finishes all audits with the
// right verdicts and exactly the configured number of trials, and the violation is reported once.
func TestWorkerKilled(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := startSidecar(t, "LEDGER NO WORKERS")
	s.until(t, "the ledger", func() bool { return strings.Contains(s.log.String(), "audits restored from the ledger") })
	conn := s.connect(t)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people")
	for scale := range 10 {
		exec0(t, conn, fmt.Sprintf("/*dp_epsilon='0.5'*/ SELECT noisy(count(*), %d) FROM people", 4+scale))
	}
	queries := 11
	for dropped := 0; dropped == 0; { // a worker that is killed between two turns, or after the last one, has another chance
		exec0(t, conn, fmt.Sprintf("/*dp_epsilon='0.5'*/ SELECT noisy(count(*), %d) FROM people", 3+queries))
		queries++
		first := startProgramWith(t, s.environ, "worker", "--config", s.config, "--slots", "3")
		s.until(t, "turns that are out", func() bool { return s.workers(t).Audit.Turns.Out > 0 })
		_ = first.Process.Kill()
		s.until(t, "the turns are taken back", func() bool {
			turns := s.workers(t).Audit.Turns
			dropped = turns.Dropped
			return turns.Out == 0
		})
	}
	startProgramWith(t, s.environ, "worker", "--config", s.config)
	var audits []decidedAudit
	s.until(t, "all audits are decided", func() bool {
		audits = s.audits(t)
		for _, a := range audits {
			if a.State != "decided" {
				return false
			}
		}
		return len(audits) == queries
	})
	for i, a := range audits {
		want, trials := "no_evidence", 500
		if i == 0 {
			want, trials = "violation", a.Report.Trials.D0
		}
		if a.Report.Verdict != want || a.Report.Trials.D0 != trials || a.Report.Trials.D1 != trials {
			t.Errorf("audit %d: %s after %+v, want %s after %d", i, a.Report.Verdict, a.Report.Trials, want, trials)
		}
	}
	if v := s.workers(t); v.Audit.Turns.Dropped == 0 || v.Audit.Turns.Out != 0 {
		t.Errorf("turns %+v; want some dropped and none out", v.Audit.Turns)
	}
	if n := strings.Count(s.log.String(), `"msg":"privacy violation"`); n != 1 {
		t.Errorf("%d alerts, want 1:\n%s", n, s.log.String())
	}
	if r := call(t, "", "status", "--address", s.admin); !strings.Contains(r.stdout, "WORKER") || !strings.Contains(r.stdout, "dropped") {
		t.Errorf("the status does not list the workers:\n%s%s", r.stdout, r.stderr)
	}
}

// TestWorkerWithoutLedger: the error says what to set.
func TestWorkerWithoutLedger(t *testing.T) {
	t.Parallel()
	path := file(t, "dpwatch.yaml", `
proxy: {listen: 127.0.0.1:0, upstream: "127.0.0.1:1"}
shadow: {dsn: "postgres://nobody@127.0.0.1:1/x"}
privacy: {protected: [public.people]}
ledger: {dsn: memory}
`)
	for _, args := range [][]string{{"worker", "--config", path}, {"run", "--config", path, "--workers", "0"}} {
		r := call(t, "", args...)
		if r.code != exitFailure || !strings.Contains(r.stderr, "set ledger.dsn or neighbours.target") {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}
