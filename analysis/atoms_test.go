package analysis_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// searched is a percentile in [0, 100] by noisy binary search: with probability .17 a step finds too few values, and
// the answer is exactly the middle of what is left. Each step goes up with a probability of its world.
func searched(up [2]float64) draw {
	return worlds(func(r *rand.Rand, world float64) analysis.Outcome {
		lo, hi := 0., 100.
		for range 8 {
			if r.Float64() < .17 {
				return value((lo + hi) / 2)
			}
			if middle := (lo + hi) / 2; r.Float64() < up[int(world)] {
				lo = middle
			} else {
				hi = middle
			}
		}
		return value(lo + (hi-lo)*r.Float64())
	})
}

// TestValuesWithMass: values that come again and again in both worlds are no sign of trials that depend on each other,
// whether the claim holds or not.
func TestValuesWithMass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		up   [2]float64
		want analysis.Verdict
	}{
		"honest": {[2]float64{.5, .52}, analysis.NoEvidence},
		"wrong":  {[2]float64{.3, .7}, analysis.Violation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				r := run(t, analysis.Claim{Epsilon: 1}, 1500, seed, searched(c.up))
				if r.Verdict != c.want || r.Deterministic != nil {
					t.Errorf("seed %d: %s (%s), want %s; %+v", seed, r.Verdict, r.Reason, c.want, r.Deterministic)
				}
			}
		})
	}
}

// TestDecimalNoise: noise that is rounded to decimals before it is added repeats answers as often as so few digits give,
// although the rounding of sums writes more digits now and then (50 + 4.02 = 54.019999999999996).
func TestDecimalNoise(t *testing.T) {
	t.Parallel()
	for _, digits := range []float64{100, 1000} {
		for seed := range uint64(6) {
			r := run(t, analysis.Claim{Epsilon: 1}, 800, seed, worlds(func(r *rand.Rand, world float64) analysis.Outcome {
				return value(50 + world + math.Round(lap(r, 1)*digits)/digits)
			}))
			if r.Verdict != analysis.NoEvidence || r.Deterministic != nil {
				t.Errorf("1/%g, seed %d: %s (%s); %+v", digits, seed, r.Verdict, r.Reason, r.Deterministic)
			}
		}
	}
}

// TestStepsBehindFunctions: rounded answers that a query divides by a public number, or of which it takes a root or a
// logarithm, repeat no more often than others that are rounded. The seeds are fixed.
func TestStepsBehindFunctions(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(float64) float64{
		"divided":  func(x float64) float64 { return x / 6 },
		"root":     func(x float64) float64 { return math.Sqrt(math.Abs(x)) },
		"log":      func(x float64) float64 { return math.Log1p(math.Abs(x)) },
		"quotient": func(x float64) float64 { return 1000 / (math.Abs(x) + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				r := run(t, analysis.Claim{Epsilon: 1}, 2000, seed, worlds(func(r *rand.Rand, world float64) analysis.Outcome {
					return value(f(math.Round(1024*(3+world+lap(r, 1))) / 1024))
				}))
				if r.Verdict == analysis.Inconclusive { // a violation by chance is rare enough at this confidence
					t.Errorf("seed %d: %s", seed, r.Reason)
				}
			}
		})
	}
}

// TestReusedValues: values that come again in one world alone are reused noise, also beside values with mass.
func TestReusedValues(t *testing.T) {
	t.Parallel()
	reuse := func(r *rand.Rand) func(world float64) analysis.Outcome {
		var past [2][]float64
		return func(world float64) analysis.Outcome {
			w := int(world)
			switch x := r.Float64(); {
			case x < .17:
				return value(50)
			case x < .6 && len(past[w]) > 0:
				return value(past[w][r.IntN(len(past[w]))])
			}
			past[w] = append(past[w], world+math.Sqrt(2)*r.NormFloat64())
			return value(past[w][len(past[w])-1])
		}
	}
	a, err := analysis.New(analysis.Claim{Epsilon: 2}, analysis.Options{MaxTrials: 1500})
	if err != nil {
		t.Fatal(err)
	}
	answer := reuse(rand.New(rand.NewPCG(1, 1)))
	for range 1500 {
		a.Add(answer(0), answer(1))
	}
	if r := a.Report(); r.Verdict != analysis.Inconclusive || !strings.Contains(r.Reason, "repeat earlier ones exactly") {
		t.Errorf("%s (%s)", r.Verdict, r.Reason)
	}
}
