package analysis_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestDependentTrials: noise that outlives a trial is said; fresh noise of every shape is not (each warning has a
// chance of about e^-15, and the seeds are fixed).
func TestDependentTrials(t *testing.T) {
	t.Parallel()
	round := func(x float64, digits int) float64 {
		p := math.Pow(10, float64(digits))
		return math.Round(x*p) / p
	}
	walk := 0.0
	previous := [2]float64{}
	var cache []float64
	for _, c := range []struct {
		name  string
		pairs int
		say   string // in the warnings; empty for no warning at all
		d     draw
	}{
		{"decreasing_memory", 600, "successive answers on D0 depend", func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			walk = .6*walk + lap(r, 1)
			return value(walk), value(lap(r, 1))
		}},
		{"noise_of_the_trial_before", 600, "the answers on D1 and the next on D0 depend", func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			z := lap(r, 1)
			d0 = value(previous[1] + .2*z)
			previous[1] = lap(r, 1)
			return d0, value(previous[1])
		}},
		{"noise_shared_within_a_pair_in_part", 600, "of one pair depend", func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			z := lap(r, 1)
			return value(z + lap(r, .3)), value(z + lap(r, .3))
		}},
		{"answers_from_a_cache_5_digits", 600, "repeat an earlier one exactly", func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			x := round(lap(r, 1), 5)
			if len(cache) > 20 && r.Float64() < .1 {
				x = cache[r.IntN(len(cache))]
			}
			cache = append(cache, x)
			return value(x), value(round(lap(r, 1), 5))
		}},
		{"response", 2000, "", response(1)},
		{"laplace", 2000, "", laplaceShift(1)},
		{"integers", 2000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome { return count(s + geo(r, .1)) })},
		{"large_integers", 2000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome { return count(1e6 + s + geo(r, 1e-4)) })},
		{"decimals_5", 3000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome { return value(round(s+lap(r, 1), 5)) })},
		{"decimals_3_of_gauss", 3000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome { return value(round(s+gauss(r, 1), 3)) })},
		{"six_significant_digits", 3000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
			x := 1e4 + s + lap(r, 1)
			return value(round(x, 1))
		})},
		{"single_precision", 3000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome { return value(float64(float32(100 + s + lap(r, 1)))) })},
		{"groups_5_digits", 1000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
			return groups(round(s+lap(r, 1), 5), round(lap(r, 1), 2), math.Round(lap(r, 9)))
		})},
		{"groups_that_come_and_go", 1000, "", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
			xs := []float64{lap(r, 1), math.NaN(), math.NaN()}
			for i := range 2 {
				if r.Float64() < .02+.3*float64(i) {
					xs[i+1] = s + lap(r, 1)
				}
			}
			return groups(xs...)
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := analysis.New(analysis.Claim{Epsilon: 4}, analysis.Options{MaxTrials: c.pairs})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(8, 8))
			for range c.pairs {
				a.Add(c.d(r))
			}
			got := warnings(a.Report())
			if c.say == "" && got != "" || !strings.Contains(got, c.say) {
				t.Errorf("warnings %q, want %q", got, c.say)
			}
		})
	}
}
