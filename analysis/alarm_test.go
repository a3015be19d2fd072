package analysis_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

var long = flag.Bool("long", false, "run the statistical tests at full size (minutes)")

// TestFalseAlarms audits right mechanisms at their tight claim, looked at after every pair. The number of alarms is
// binomial with at most alpha = 5 % per run; each bound is the least with a false-alarm rate of this test below 10^-5.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	runs, pairs, most := 40, 800, 10 // P(Bin(40, .05) > 10) = 3e-6
	if *long {
		runs, pairs, most = 500, 5000, 50 // P(Bin(500, .05) > 50) = 2e-6
	}
	// A Gaussian of sensitivity 1 and sigma s is (epsilon, delta) for
	// delta = Phi(1/2s - epsilon s) - e^epsilon Phi(-1/2s - epsilon s).
	phi := func(x float64) float64 { return .5 * math.Erfc(-x/math.Sqrt2) }
	gaussDelta := func(epsilon, s float64) float64 {
		return phi(1/(2*s)-epsilon*s) - math.Exp(epsilon)*phi(-1/(2*s)-epsilon*s)
	}
	for _, c := range []struct {
		name           string
		epsilon, delta float64
		d              draw
	}{
		{"laplace_1", 1, 0, laplaceShift(1)},
		{"laplace_0.1", .1, 0, laplaceShift(.1)},
		{"geometric_1", 1, 0, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return count(geo(r, 1)), count(1 + geo(r, 1)) }},
		{"response_1", 1, 0, response(1)},
		{"response_0.1", .1, 0, response(.1)},
		{"response_3", 3, 0, response(3)},
		{"gaussian", 1, gaussDelta(1, 1), func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			return value(gauss(r, 1)), value(1 + gauss(r, 1))
		}},
		{"revealed_with_delta", 1, .05, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			if d0 = groups(lap(r, 1), lap(r, 1)); r.Float64() < .05 {
				d0 = groups(lap(r, 1), lap(r, 1), 1)
			}
			return d0, groups(lap(r, 1), lap(r, 1))
		}},
		{"equal_0", 0, 0, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return value(lap(r, 1)), value(lap(r, 1)) }},
		{"ten_groups", 1, 0, many(10, func(i int) float64 { return .125 * float64(b2i(i < 8)) })},
		{"one_noise_for_three_columns", 1, 0, worlds(func(r *rand.Rand, s float64) analysis.Outcome {
			z := s + lap(r, 1)
			return columns(z, 20+z, 7-10*z)
		})},
		{"noise_shared_in_part_by_ten_groups", 1, 0, worlds(func(r *rand.Rand, s float64) analysis.Outcome {
			z, xs := s+lap(r, 1), make([]float64, 10)
			for i := range xs {
				xs[i] = z + lap(r, .2)
			}
			return groups(xs...)
		})},
		{"integer_noise_on_an_integer", 1, 0, worlds(func(r *rand.Rand, s float64) analysis.Outcome {
			return value(.25 + s + geo(r, 1))
		})},
		{"noise_shared_by_the_worlds", 1, 0, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			z := lap(r, 1)
			return value(z), value(1 - z)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			alarms := 0
			for i := range runs {
				if detected(t, analysis.Claim{Epsilon: c.epsilon, Delta: c.delta}, pairs, uint64(i), c.d) <= pairs {
					alarms++
				}
			}
			t.Logf("%d alarms in %d audits of %d pairs", alarms, runs, pairs)
			if alarms > most {
				t.Errorf("%d alarms in %d audits of a right mechanism, at most %d expected", alarms, runs, most)
			}
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
