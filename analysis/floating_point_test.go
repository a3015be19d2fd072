package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestFloatingPointAlone: a violation is said to be one of floating point alone while the other scores have no evidence
// of their own. The seeds are fixed.
func TestFloatingPointAlone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		scale      float64 // of the noise; the claim needs 1
		first, end bool    // floating point alone
	}{{1, true, true}, {.8, true, false}, {.5, false, false}} {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 4000})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		run := func() *analysis.Report {
			for !a.Decided() {
				x, y := math.Log((1-r.Float64())/(1-r.Float64())), math.Log((1-r.Float64())/(1-r.Float64()))
				a.Add(value(3+tc.scale*x), value(4+tc.scale*y))
			}
			report := a.Report()
			return &report
		}
		first := run()
		if err := a.Measure(4000); err != nil {
			t.Fatal(err)
		}
		if end := run(); first.FloatingPoint() != tc.first || end.FloatingPoint() != tc.end {
			t.Errorf("scale %g: floating point alone %v at the violation and %v after the measurement, want %v and %v (%v)",
				tc.scale, first.FloatingPoint(), end.FloatingPoint(), tc.first, tc.end, end.Finding.Causes)
		}
	}
}
