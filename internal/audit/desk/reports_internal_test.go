package desk

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestReportWithoutEvidence: an audit whose evidence cannot begin, because its share of the error rate is too small,
// has a report, as the status and the metrics need one before the audit is marked.
func TestReportWithoutEvidence(t *testing.T) {
	t.Parallel()
	d := New(&Options{
		D1: []string{"d1"}, Analysis: analysis.Options{Confidence: 0.95, MaxTrials: 100}, MaxAudits: 1, Seed: func() uint64 { return 1 },
		Contain: func(_ string, f func() error) error { return f() },
	}, "")
	j := &job{Audit: schedule.NewAudit("", "", schedule.Owner{}), plan: &rewrite.Plan{Claim: &rewrite.Claim{Epsilon: 2}}, worlds: []step.World{{Schema: "d1"}}}
	d.jobs["k"], d.order = j, append(d.order, j)
	if err := d.Beginnings.resetEvidence(j, 1); err != nil || j.evidence == nil {
		t.Fatalf("evidence with the whole error rate: %v", err)
	}
	if err := d.Beginnings.resetEvidence(j, 1e-12); err == nil || j.evidence != nil {
		t.Fatal("evidence begins with a share of 1e-12")
	}
	if _, all := d.Overview.Show(); len(all.audits) != 1 {
		t.Errorf("the status has %d audits", len(all.audits))
	} else if e := all.Entries("")[0]; e.State != view.Queued || e.Report.Trials.D0 != 0 {
		t.Errorf("the status has %+v", e)
	}
	if f := d.Overview.Figures(); f.States[view.Queued] != 1 {
		t.Errorf("the figures are %+v", f)
	}
}

// TestDelivered: a suspicion that fresh trials of a worker did not confirm is over, and a measurement that a worker
// stopped ends in the ledger, too.
func TestDelivered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		measuring bool
		outcome   ledger.Outcome
		says      string
	}{
		"not confirmed": {false, ledger.Outcome{Fresh: true}, "trials showed a violation that fresh trials did not confirm; it is not reported"},
		"stopped":       {true, ledger.Outcome{Stop: "replaced"}, "violation measured: the lower bound on epsilon is final"},
		"broken":        {true, ledger.Outcome{Broken: "panic"}, "violation measured: the lower bound on epsilon is final"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &environment.Environment{Copies: "1"}
			d := New(&Options{
				D1: []string{"d1"}, Analysis: analysis.Options{Confidence: 0.95, MaxTrials: 100}, MaxAudits: 1, PerShape: 1, Seed: func() uint64 { return 1 }, Kept: true,
				Contain: func(_ string, f func() error) error { return f() }, Say: error.Error,
			}, "")
			at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			d.At(at, at, now)
			plan := &rewrite.Plan{Key: "k", Claim: &rewrite.Claim{Epsilon: 2}}
			d.Admission.Captured()
			d.Admission.Arrive(capture.Query{SQL: "SELECT 1", Completed: at}, recognize.Recognized{Key: "k", Plan: plan}, "k", "")
			if _, ok, _ := d.Turns.Next(); !ok {
				t.Fatal("the audit has no turn")
			}
			d.Beginnings.Rewritten("k", []step.World{{Schema: "d1"}})
			if d.Beginnings.Compare("k", now, true) != FromZero {
				t.Fatal("the evidence does not begin")
			}
			if err := d.Beginnings.Begin("k", &Begun{Processes: 1, Fleet: ledger.Fleet{Begun: 1}}, nil); err != nil {
				t.Fatal(err)
			}
			j := d.jobs["k"]
			j.confirming, j.Measuring, j.stored = true, tc.measuring, true
			d.Drain()
			o := d.Workers.Delivered("k", tc.outcome, now, nil)
			d.Turns.TakeOutcome("k", o)
			d.Turns.End("k", false, o)
			said, written := false, false
			for _, e := range d.Drain() {
				switch e := e.(type) {
				case Log:
					said = said || e.Message == tc.says
				case Write:
					written = written || e.Audit.Progress != nil
				}
			}
			if !said || written != tc.measuring || j.confirming != tc.measuring || j.Measuring {
				t.Errorf("said %t, written %t, confirming %t, measuring %t", said, written, j.confirming, j.Measuring)
			}
		})
	}
}
