package audit

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestReportWithoutEvidence: an audit whose evidence cannot begin, because its share of the error rate is too small,
// has a report, as the status and the metrics need one before the audit is marked.
func TestReportWithoutEvidence(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	a, err := New(Options{
		D1: []string{"d1"}, Analysis: analysis.Options{Confidence: 0.95, MaxTrials: 100}, MaxAudits: 1,
		Seed: func() uint64 { return 1 }, Metrics: registry, Now: time.Now, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{plan: &rewrite.Plan{Claim: &rewrite.Claim{Epsilon: 2}}, worlds: []turn.World{{Schema: "d1"}}}
	a.jobs["k"], a.order = j, append(a.order, j)
	if err := a.resetEvidence(j, 1); err != nil || j.evidence == nil {
		t.Fatalf("evidence with the whole error rate: %v", err)
	}
	if err := a.resetEvidence(j, 1e-12); err == nil || j.evidence != nil {
		t.Fatal("evidence begins with a share of 1e-12")
	}
	if e := a.Status().Audits[0]; e.State != view.Queued || e.Report.Trials.D0 != 0 {
		t.Errorf("the status has %+v", e)
	}
	if _, err := registry.Gather(); err != nil || a.guard.panics.Load() != 0 {
		t.Errorf("%d panics, %v", a.guard.panics.Load(), err)
	}
}
