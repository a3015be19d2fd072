package audit_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/replay"
)

// equalTwin makes a twin of D0, and drawnTwin one in which a materialized view holds a number of rows that was drawn
// once for this copy.
const (
	equalTwin = `CREATE SCHEMA d0_twin; CREATE TABLE d0_twin.people AS SELECT * FROM d0.people`
	drawnTwin = `CREATE SCHEMA d0_twin; CREATE MATERIALIZED VIEW d0_twin.people AS SELECT * FROM d0.people
		UNION ALL SELECT 1000 + g, 9 FROM generate_series(1, 9 + floor(10 * random())::int) g`
)

// TestControlAudits: with control audits for all queries, an engine without state has no false alarm, and one whose
// answers differ between copies of the same data has one for each query, which is logged and is no violation of the
// query. Both are shown in the status and the metrics, and a new process has them. Honest control audits fail this test
// with a probability below 1e-6, as the confidence is 1 - 1e-7; alarms are missed with a probability far below that.
func TestControlAudits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		twin, sql string
		workers   int
		alarms    bool
		guard     string
		queries   int // four are audited under their claim or at claim 0, by their keys
	}{
		"no state":              {equalTwin, "SELECT noisy(count(*), 5) FROM people /*dp_epsilon='0.X'*/", 2, false, "", 4},
		"an answer for a copy":  {drawnTwin, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='2.X'*/", 2, true, "", 4},
		"workers run the turns": {equalTwin, "SELECT noisy(count(*), 5) FROM people /*dp_epsilon='0.X'*/", 0, false, "", 2},
		"a guard, no state":     {equalTwin, "SELECT noisy(count(*), 5) FROM people /*dp_epsilon='0.X'*/", 2, false, equalTwin, 2},
		"a guard blocks":        {drawnTwin, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='2.X'*/", 2, false, drawnTwin, 2},
		"a guard and a worker":  {drawnTwin, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='2.X'*/", 0, false, drawnTwin, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logged := observer.New(zapcore.WarnLevel)
			registry := prometheus.NewRegistry()
			l := newLedgerRigOn(t, replay.Options{Copies: []string{"d0", "d1"}, Twin: "d0_twin", Guard: "d0_guard"}, func(o *audit.Options) {
				o.Guard = "d0_guard"
				o.Workers, o.Twin, o.ControlShare, o.WatchShare = tc.workers, "d0_twin", 1, .5
				o.Analysis.Confidence, o.Logger, o.Metrics = 1-1e-7, zap.New(core), registry
			})
			pgtest.Exec(t, l.dsn, tc.twin, strings.ReplaceAll(tc.guard, "d0_twin", "d0_guard"))
			stop := l.begin(t)
			if tc.workers == 0 {
				l.worker(t, "one", nil)
			}
			for _, digit := range []string{"5", "6", "7", "8"}[:tc.queries] {
				l.Submit(query(strings.Replace(tc.sql, "X", digit, 1)))
			}
			want := view.FalseAlarms{FalseAlarms: read.FalseAlarms{Audits: tc.queries, Confidence: .95}, ErrorRate: 1e-7, Guard: tc.guard != ""}
			if tc.guard == drawnTwin {
				want.Audits, want.Inconclusive = 0, tc.queries
			}
			if tc.alarms {
				want.Alarms = tc.queries
			}
			settled := func(s view.Status) bool { return s.FalseAlarms.Audits+s.FalseAlarms.Inconclusive >= tc.queries }
			l.until(t, "control audits", settled)
			entries := l.decided(t)
			check := func() {
				t.Helper()
				f := *l.Status().FalseAlarms
				if want.RateUpper = f.RateUpper; f != want || f.RateUpper > 1 || f.RateUpper <= float64(f.Alarms)/float64(tc.queries) != tc.alarms && want.Audits > 0 || f.Excessive() != tc.alarms {
					t.Errorf("false alarms %+v, want %+v", f, want)
				}
			}
			check()
			if len(entries) != tc.queries {
				t.Errorf("%d audits, want %d", len(entries), tc.queries)
			}
			for _, e := range entries {
				if e.Report.Verdict != analysis.NoEvidence {
					t.Errorf("the audit of a query ended with %s (%s)", e.Report.Verdict, e.Report.Reason)
				}
			}
			if n := logged.FilterMessageSnippet("a false alarm on identical data").Len(); n != want.Alarms {
				t.Errorf("%d false alarms in the log, want %d", n, want.Alarms)
			}
			if got := counted(t, registry, "dpwatch_control_audits_total", "alarm"); got != float64(want.Alarms) {
				t.Errorf("%g alarms in the metrics, want %d", got, want.Alarms)
			}
			if got := gauge(t, registry, "dpwatch_false_alarm_rate_upper_bound"); got != want.RateUpper {
				t.Errorf("%g is the bound in the metrics, want %g", got, want.RateUpper)
			}
			stop()
			l.mu.Lock()
			for _, f := range l.findings {
				if f.Kind != finding.EngineDrift {
					t.Errorf("a finding: %+v", f)
				}
			}
			l.mu.Unlock()

			l.restart(t, nil)
			defer l.begin(t)()
			l.restored(t)
			check()
		})
	}
}

// TestControlAuditGoesOn: a new process goes on with the evidence of a control audit that was not decided.
func TestControlAuditGoesOn(t *testing.T) {
	t.Parallel()
	l := newLedgerRigOn(t, replay.Options{Copies: []string{"d0", "d1"}, Twin: "d0_twin"}, func(o *audit.Options) {
		o.Twin, o.ControlShare, o.WatchShare, o.Analysis.MaxTrials = "d0_twin", 1, .5, 4000
	})
	pgtest.Exec(t, l.dsn, equalTwin)
	stop := l.begin(t)
	l.Submit(query(longQuery))
	trials := func() (n, begun int, verdict string) {
		if err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT evidence_trials, processes, verdict FROM dpwatch_ledger.control_audits").Scan(&n, &begun, &verdict); err != nil {
			t.Fatal(err)
		}
		return n, begun, verdict
	}
	eventually.True(t, "a stored control audit", func() bool {
		var stored bool
		err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM dpwatch_ledger.control_audits WHERE evidence_trials > 0)").Scan(&stored)
		return err == nil && stored
	})
	stop()
	before, _, verdict := trials()
	if verdict != "" {
		t.Fatalf("decided with %d trials before the restart", before)
	}
	l.restart(t, nil)
	stop = l.begin(t)
	l.until(t, "the control audit", func(s view.Status) bool { return s.FalseAlarms.Audits == 1 })
	stop()
	if after, begun, verdict := trials(); after <= before || begun != 1 || verdict != string(analysis.NoEvidence) {
		t.Errorf("%d trials after the restart and %d before, begun %d times, %s", after, before, begun, verdict)
	}
}

// TestNoControlAudits: the status says why there are none.
func TestNoControlAudits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.ControlShare, o.WatchShare = 1, .5 })
	r.run(t)
	r.Submit(query(honestQuery))
	r.decided(t)
	if f := r.Status().FalseAlarms; f.Off != "there is no twin of D0" || f.RateUpper != 1 || f.Running != 0 {
		t.Errorf("%+v", f)
	}
}
