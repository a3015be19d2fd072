package audit_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/curve"
)

// TestCurveInWorkers: a worker on another machine audits a claim that is a curve. The finding names the curve and the
// point that is refuted; a later auditor restores both, and reports nothing again.
func TestCurveInWorkers(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers, o.MeasureTrials = 0, 300 })
	stop := l.begin(t)
	const sql = "SELECT noisy(count(*), 0.2) FROM people /*dp_curve='mu=0.268'*/"
	l.Submit(query(sql))
	l.worker(t, "one", nil)
	e := l.decided(t)[0]
	stop()
	want := curve.Curve("mu=0.268")
	r := e.Report
	if r.Verdict != analysis.Violation || r.Claimed.Curve != want || !(r.EpsilonLower > r.Claimed.Epsilon) || r.Measurement == nil || !(r.CurveLower.Parameter() > .26) {
		t.Fatalf("%s, %+v, epsilon %v, curve %s, measurement %v", r.Reason, r.Claimed, r.EpsilonLower, r.CurveLower, r.Measurement)
	}
	l.mu.Lock()
	found := l.findings
	l.mu.Unlock()
	if len(found) != 1 || found[0].Curve != want || found[0].Epsilon != float64(r.Claimed.Epsilon) || found[0].Delta != r.Claimed.Delta || !strings.Contains(found[0].Reason, "the curve mu=0.268 does not hold") {
		t.Errorf("findings %+v", found)
	}
	l.restart(t, nil)
	defer l.begin(t)()
	l.restored(t)
	l.until(t, "the violation", func(s view.Status) bool { return len(s.Audits) == 1 && s.Audits[0].Standing != nil })
	again := l.Status().Audits[0]
	if s := again.Standing; s.Curve != want || s.Claimed != r.Claimed.Epsilon || s.Delta != r.Claimed.Delta || again.Report.Claimed.Curve != want {
		t.Errorf("restored: violation %+v, claim %+v", s, again.Report.Claimed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.findings) != len(found) {
		t.Errorf("%d findings after a restart, %d before", len(l.findings), len(found))
	}
}
