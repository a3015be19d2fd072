package analysis_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestAggregates: groups that are noisy each while an aggregate of them is exact are found; the same with noise in the
// aggregate is no violation. The honest audit is at the confidence 0.999999: it fails this test at most once in a
// million seeds.
func TestAggregates(t *testing.T) {
	t.Parallel()
	noisy := func(r *rand.Rand) []float64 {
		xs := make([]float64, 40)
		for i := range xs {
			xs[i] = lap(r, 2)
		}
		return xs
	}
	// top sets one group at random, which always is the largest one.
	top := func(r *rand.Rand, x float64) analysis.Outcome {
		xs := noisy(r)
		xs[r.IntN(len(xs))] = 100 + x
		return groups(xs...)
	}
	for name, c := range map[string]struct {
		leak bool
		d    draw
	}{
		"an exact largest value": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return top(r, w) })},
		"a largest value with noise": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return top(r, w+lap(r, 1))
		})},
		"an exact number of different values": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			xs := noisy(r)
			for _, k := range r.Perm(len(xs))[:3+int(w)] { // three or four groups are alike
				xs[k] = -7
			}
			return groups(xs...)
		})},
		"the group of the largest value": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			xs, at := noisy(r), 3+int(w)
			for i := range xs {
				xs[i] += 50 * (r.Float64() - .5)
			}
			for i := range xs {
				if xs[i] > xs[at] {
					xs[i], xs[at] = xs[at], xs[i]
				}
			}
			return groups(xs...)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt, want := analysis.Options{MaxTrials: 1000, Suspicion: true}, analysis.Violation
			if !c.leak {
				opt.Confidence, opt.MaxTrials, want = .999999, 300, analysis.NoEvidence
			}
			if r := expect(t, want, 1, opt, 9, c.d); c.leak && name != "the group of the largest value" && r.Event.Score != "aggregate" {
				t.Errorf("found by %s", r.Event.Score)
			}
			if c.leak {
				expect(t, want, 4, opt, 9, c.d)
			}
		})
	}
}
