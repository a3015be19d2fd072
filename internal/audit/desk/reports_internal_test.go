package desk

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
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
