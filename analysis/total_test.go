package analysis_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestTotals: groups whose noise cancels out in a sum are found, few and many, and groups with independent noise are no
// violation. Honest audits are at the confidence 0.999999: each fails this test at most once in a million seeds.
func TestTotals(t *testing.T) {
	t.Parallel()
	// groups returns n groups of which the first has one more on D0. Their noise adds up, with the weights, to Laplace noise
	// of the scale rest: that is a group's noise and a noisy total, each at epsilon 1 if rest is 1.
	groups := func(n int, weight func(i int) float64, rest float64) draw {
		return worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			noise, sum, squares := make([]float64, n), 0.0, 0.0
			for i := range noise {
				noise[i] = lap(r, 1)
				sum += weight(i) * noise[i]
				squares += weight(i) * weight(i)
			}
			own := rest * lap(r, 1)
			o := analysis.Outcome{}
			for i, x := range noise {
				count := 5.0
				if i == 0 {
					count += w
				}
				o.Rows = append(o.Rows, []analysis.Value{{Kind: analysis.Number, Num: float64(i)}, {Kind: analysis.Number, Num: count + x - (sum-own)*weight(i)/squares}})
			}
			return o
		})
	}
	one := func(int) float64 { return 1 }
	for name, c := range map[string]struct {
		leak bool
		d    draw
	}{
		"exact total of 40 groups":       {true, groups(40, one, 0)},
		"exact total of 150 groups":      {true, groups(150, one, 0)},
		"weighted total of 40 groups":    {true, groups(40, func(i int) float64 { return float64(1 + i%7) }, 0)},
		"total of 40 with little noise":  {true, groups(40, one, .01)},
		"total of 40 with its own noise": {false, groups(40, one, 1)},
		"40 groups, independent noise": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := analysis.Outcome{}
			for i := range 40 {
				x := 5 + lap(r, 1)
				if i == 0 {
					x += w
				}
				o.Rows = append(o.Rows, []analysis.Value{{Kind: analysis.Number, Num: float64(i)}, {Kind: analysis.Number, Num: x}})
			}
			return o
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt, want := analysis.Options{MaxTrials: 1000, Suspicion: true}, analysis.Violation
			if !c.leak {
				opt.Confidence, opt.MaxTrials, want = .999999, 300, analysis.NoEvidence
			}
			expect(t, want, 2, opt, 6, c.d)
			if c.leak {
				expect(t, want, 4, opt, 6, c.d)
			}
		})
	}
}
