package audit_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestTiming: a query with the right noise takes longer if person 1 is in the data. That is in the audit, also after a
// restart, and is no violation.
func TestTiming(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Rewriter, o.TimingPairs, o.Analysis.MaxTrials = anyFunction(t), 120, 100
	})
	pgtest.Exec(t, l.dsn, `CREATE FUNCTION slow(id int) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN IF id = 1 THEN PERFORM pg_sleep(0.03); END IF; RETURN 1; END $$`)
	stop := l.begin(t)
	l.Submit(query("SELECT noisy(sum(slow(id)), 4) FROM people /*dp_epsilon='0.5'*/"))
	l.Submit(query(honestQuery))
	entries := l.decided(t)
	stop()
	var registry *prometheus.Registry
	l.restart(t, func(o *audit.Options) { registry = o.Metrics.(*prometheus.Registry) })
	defer l.begin(t)()
	l.restored(t)
	for name, e := range map[string]view.Entry{"before": entries[0], "after": l.Status().Audits[0]} {
		if r := e.Timing; e.Report.Verdict != analysis.NoEvidence || r == nil || !r.Differs || r.Pairs != 120 || r.Medians[0] < r.Medians[1]+.015 {
			t.Errorf("%s: %s, %+v; want no evidence, and a difference of latencies", name, e.Report.Verdict, e.Timing)
		}
	}
	if r := entries[1].Timing; r == nil || r.Differs { // its confidence is that of the audit, 0.999999 or more
		t.Errorf("the other query: %+v", r)
	}
	if n := gauge(t, registry, "dpwatch_timing_differences"); n != 1 {
		t.Errorf("%g audits in the gauge", n)
	}
	if len(l.findings) != 0 {
		t.Errorf("%d findings", len(l.findings))
	}
}
