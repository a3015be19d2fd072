package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRunTwo: two dpwatch processes with one configuration relay the sessions of one engine. The first one audits what
// clients of the second one run. After kill -9 of all processes of the first one, the second one has the verdict,
// reports no second violation, and goes on to audit.
func TestRunTwo(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	first := startSidecar(t, "LEDGER")
	first.until(t, "the ledger", func() bool { return strings.Contains(first.log.String(), "audits restored from the ledger") })
	second := &sidecar{direct: first.direct, replay: first.replay}
	second.run(t, first.config)
	second.until(t, "the second process records", func() bool {
		_, metrics := second.get(t, "/metrics")
		return strings.Contains(metrics, "\ndpwatch_ledger_record_only 1\n") && strings.Contains(metrics, "\ndpwatch_ledger_up 1\n")
	})
	conn, ledger := second.connect(t), pgtest.Connect(t, first.direct)
	counted := func(want int) {
		t.Helper()
		second.until(t, "all statements are counted", func() bool {
			var n int
			err := ledger.QueryRow(t.Context(), "SELECT coalesce(sum(executions), 0) FROM dpwatch_ledger.query_users").Scan(&n)
			return err == nil && n == want
		})
	}
	for range 5 {
		exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people")
	}
	exec0(t, first.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people")
	counted(6)
	violation := func(s *sidecar) func() bool {
		return func() bool {
			all := s.audits(t)
			return len(all) > 0 && all[0].State == "decided" && all[0].Report.Verdict == "violation"
		}
	}
	first.until(t, "the first process finds the violation", violation(first))
	first.until(t, "everything is written", func() bool {
		_, body := first.get(t, "/api/status")
		return strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	auditor := first.auditor(t, 0)
	for _, kill := range []struct {
		pid    int
		signal syscall.Signal
	}{{first.Process.Pid, syscall.SIGSTOP}, {auditor, syscall.SIGKILL}, {first.Process.Pid, syscall.SIGKILL}} {
		if err := syscall.Kill(kill.pid, kill.signal); err != nil {
			t.Fatal(err)
		}
	}
	second.until(t, "the second process takes over", violation(second))
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	counted(7)
	second.until(t, "the second process audits", func() bool {
		all := second.audits(t)
		return len(all) == 2 && all[1].State == "decided"
	})
	if strings.Contains(second.log.String(), `"msg":"privacy violation"`) {
		t.Error("the violation is reported again")
	}
}
