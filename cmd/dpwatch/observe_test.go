package main

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestObserve: with --observe, queries are recognized and admitted, what cannot be audited is counted, and nothing is
// replayed.
func TestObserve(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "OBSERVE")
	conn := s.connect(t)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people, other")
	s.until(t, "the query is admitted, and the other one is refused", func() bool {
		a := s.status(t).Audit
		return len(a.Audits) == 1 && a.Skipped["unknown_table"] == 1
	})
	if a := s.status(t).Audit.Audits[0]; a.State != "queued" || a.Report.Claimed.Epsilon != 0.5 {
		t.Errorf("%+v; want a queued audit with its claim", a)
	}
	s.until(t, "the log names the unknown table", func() bool { return strings.Contains(s.log.String(), "other is neither protected nor public") })
	call(t, "", "status", "--address", s.admin).want(t, exitDone, "observing: nothing is replayed")
	var metrics string
	s.until(t, "the metrics; a query without trials is not audited", func() bool {
		_, metrics = s.get(t, "/metrics")
		return strings.Contains(metrics, "\ndpwatch_dp_queries 1\n") && strings.Contains(metrics, "\ndpwatch_dp_queries_audited_ratio 0\n")
	})
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "dpwatch_replays_total{") && !strings.HasSuffix(line, " 0\n") || strings.HasPrefix(line, "dpwatch_shadow_up") {
			t.Error(line)
		}
	}
}

// TestAuditDryRun: the plan of an audit has the texts, the claim and the numbers of executions; the copies are not
// read.
func TestAuditDryRun(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	scans := func() (n int) {
		t.Helper()
		err := pgtest.Connect(t, dsn).QueryRow(t.Context(), "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname = 'people'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := scans()
	args := []string{"audit", "--dry-run", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "0.5", "--max-trials", "100", "--measure", "300", "--sql", "SELECT noisy(count(*), 4) FROM people"}
	r := call(t, "", append(args, "-o", "json")...)
	r.want(t, exitDone)
	plan := r.object(t)
	pair, _ := plan["neighbours"].(map[string]any)["d1"].(map[string]any)
	if d1, _ := pair["d1"].(string); !strings.Contains(d1, `d1".people`) && !strings.Contains(d1, "d1.people") || plan["first_trials"] != 100. || plan["confirmation"] != 200. || plan["measurement"] != 300. || plan["infeasible"] != nil {
		t.Errorf("%v", plan)
	}
	call(t, "", args...).want(t, exitDone, "Nothing was executed", "epsilon 0.5, delta 0", "at most 100")
	call(t, "", append(args, "--epsilon", "10")...).want(t, exitDone, "but")
	if after := scans(); after != before {
		t.Errorf("%d scans of the copies before, %d after", before, after)
	}
}
