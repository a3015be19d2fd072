package audit_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// TestDiscoveries: with the false discovery rate, audits that begin after a violation have a larger share of the error
// rate, with a ledger and without, and in the next process.
func TestDiscoveries(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const alpha = 1e-6
	change := func(o *audit.Options) {
		o.Family, o.Discoveries, o.Workers = true, true, 1
		o.Analysis = analysis.Options{Confidence: 1 - alpha, MaxTrials: 400}
	}
	check := func(e view.Entry, j, reported int) {
		t.Helper()
		want := alpha * multiplicity.DiscoveryShare(j, reported)
		if got := 1 - e.Report.Confidence; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("audit %d after %d violations has the error rate %g, want %g", j, reported, got, want)
		}
	}
	memory := newRig(t, change)
	memory.run(t)
	memory.Submit(query(leakyQuery))
	memory.decided(t)
	memory.Submit(query(honestQuery))
	entries := memory.decided(t)
	check(entries[0], 1, 0)
	check(entries[1], 2, 1)

	l := newLedgerRig(t, change)
	stop := l.begin(t)
	l.Submit(query(leakyQuery))
	l.decided(t)
	stop()
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	l.Submit(query(honestQuery))
	entries = l.decided(t)
	stop()
	if len(entries) != 2 || entries[0].Report.Verdict != analysis.Violation {
		t.Fatalf("%d audits, the first %s; want 2, the first a violation", len(entries), entries[0].Report.Verdict)
	}
	check(entries[1], 2, 1)
}
