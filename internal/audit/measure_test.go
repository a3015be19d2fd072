package audit_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// TestMeasured: after a violation the bound grows, also in the next process, and the violation is reported once.
func TestMeasured(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.MeasureTrials = 500 })
	stop := l.begin(t)
	l.Submit(query(leakyQuery))
	at := l.wait(t, "it is measured", func(e view.Entry) bool { return e.Report.Measurement != nil && e.Report.Measurement.Pairs > 0 })
	if at.Verdict != string(analysis.Violation) || at.Report.Measurement.ReportedLower > 1 {
		t.Errorf("verdict %s, %+v; want a violation just above the claim of 0.5", at.Verdict, at.Report.Measurement)
	}
	stop()
	before := l.Status().Audits[0]
	l.restart(t, nil)
	stop = l.begin(t)
	defer stop()
	l.restored(t)
	if e := l.Status().Audits[0]; e.Report.Trials.D0 < before.Report.Trials.D0 || e.Verdict != string(analysis.Violation) {
		t.Errorf("%s after %d pairs, want the violation of the process before with %d", e.Verdict, e.Report.Trials.D0, before.Report.Trials.D0)
	}
	e := l.wait(t, "the measurement ends", func(e view.Entry) bool { return e.State == view.Decided })
	if m := e.Report.Measurement; m == nil || m.State == analysis.MeasurementRunning || m.Pairs > 500 || e.Report.EpsilonLower < 2*m.ReportedLower {
		t.Errorf("bound %v, %+v; want twice the bound of the violation", e.Report.EpsilonLower, m)
	}
	if len(l.findings) != 1 {
		t.Errorf("%d findings, want one", len(l.findings))
	}
}

// TestMeasurementOfOldCopies: a measurement ends when the copies are replaced, and leaves the violation as it was.
func TestMeasurementOfOldCopies(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.MeasureTrials = 1_000_000 })
	r.Submit(query(leakyQuery))
	r.run(t)
	r.wait(t, "it is measured", func(e view.Entry) bool { return e.State == view.Measuring && e.Report.Measurement.Pairs > 0 })
	r.remake(t, 40, 40) // no person is missing: the same query is honest now
	e := r.wait(t, "the measurement ends", func(e view.Entry) bool { return e.State == view.Decided })
	if e.Verdict != string(analysis.Violation) || e.Restarts != 0 || e.Report.EpsilonLower < e.Report.Measurement.ReportedLower {
		t.Errorf("%s, %d restarts, bound %v; want the violation", e.Verdict, e.Restarts, e.Report.EpsilonLower)
	}
}
