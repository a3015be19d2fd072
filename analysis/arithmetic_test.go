package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestArithmetic: naive noise in floating point is found also if the query divides, multiplies or moves the sum before it
// answers. Noisy sums on a grid, or in hundredths, are no violation. Honest audits are at the confidence 0.999999: each
// fails this test at most once in a million seeds.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	naive := func(r *rand.Rand, w float64) float64 {
		u := r.Float64() - .5
		return w - math.Copysign(math.Log(1-2*math.Abs(u)), u)
	}
	hundredths := func(r *rand.Rand, w float64) float64 { return math.Round(100*(w+lap(r, 1))) / 100 }
	grid := func(r *rand.Rand, w float64) float64 { return w + lap(r, 1) }
	for name, do := range map[string]func(y float64) float64{
		"divided by 6":    func(y float64) float64 { return y / 6 },
		"divided by 1.19": func(y float64) float64 { return y / 1.19 },
		"times 1.1":       func(y float64) float64 { return y * 1.1 },
		"times 100":       func(y float64) float64 { return y * 100 },
		"plus 0.1":        func(y float64) float64 { return y + .1 },
		"minus 0.37":      func(y float64) float64 { return y - .37 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			audit := func(want analysis.Verdict, opt analysis.Options, noisy func(r *rand.Rand, w float64) float64) {
				expect(t, want, 1, opt, 7, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return value(do(noisy(r, w))) }))
			}
			audit(analysis.Violation, analysis.Options{MaxTrials: 2000}, naive)
			honest := analysis.Options{MaxTrials: 2000, Confidence: .999999}
			audit(analysis.NoEvidence, honest, grid)
			audit(analysis.NoEvidence, honest, hundredths)
		})
	}
}
