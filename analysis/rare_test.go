package analysis_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// rareKeys is a GROUP BY of 100 keys that one result in 20 has each; the first one's value has moved.
func rareKeys(r *rand.Rand, moved float64) analysis.Outcome {
	xs := make([]float64, 100)
	for i := range xs {
		if xs[i] = 100 + lap(r, 1); r.IntN(20) > 0 {
			xs[i] = math.NaN()
		}
	}
	xs[0] += moved
	return groups(xs...)
}

// modulo is a number that tells its phase modulo .37 alone.
func modulo(r *rand.Rand, phase float64) analysis.Outcome {
	return value(onGrid(.37 * (geo(r, .1) + phase + .6*(r.Float64()-.5))))
}

func clamped(r *rand.Rand, x float64) analysis.Outcome { return value(x + min(max(lap(r, 1), -3), 3)) }

func truncated(r *rand.Rand, x float64) analysis.Outcome {
	for {
		if z := lap(r, 1); math.Abs(z) <= 3 {
			return value(x + z)
		}
	}
}

// skewed has the mean 0, the variance 1 and the third moment 2 or -2.
func skewed(r *rand.Rand, sign float64) analysis.Outcome {
	return value(onGrid(sign * (r.ExpFloat64() - 1)))
}

// seldom is a pair of worlds of which D0 has a rare outcome with a probability.
func seldom(p float64, rare, common func(r *rand.Rand) analysis.Outcome) draw {
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		if d0 = common(r); r.Float64() < p {
			d0 = rare(r)
		}
		return d0, common(r)
	}
}

// TestRareLeaks holds, for leaks that few results show or that lie in the shape of a law, the median of three audits
// within about one and a half times what many take.
func TestRareLeaks(t *testing.T) {
	t.Parallel()
	none := func(*rand.Rand) analysis.Outcome { return word("none") }
	one := func(r *rand.Rand) analysis.Outcome { return groups(lap(r, 1)) }
	pure, some := analysis.Claim{Epsilon: 1}, analysis.Claim{Epsilon: 1, Delta: 1e-4}
	for _, c := range []struct {
		name  string
		claim analysis.Claim
		bar   int
		d     draw
	}{
		{"keys_that_few_results_have", pure, 800, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return rareKeys(r, 0), rareKeys(r, 50) }},
		{"period_that_is_no_round_number", pure, 260, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return modulo(r, 0), modulo(r, .5) }},
		{"clamped_noise", pure, 400, worlds(clamped)},
		{"truncated_noise", pure, 600, worlds(truncated)},
		{"third_moment", pure, 220, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return skewed(r, 1), skewed(r, -1) }},
		{"text_in_1_of_100", some, 2400, seldom(.01, func(*rand.Rand) analysis.Outcome { return word("one") }, none)},
		{"new_text_in_1_of_100", some, 2400, seldom(.01, func(r *rand.Rand) analysis.Outcome { return word(strconv.FormatUint(r.Uint64(), 10)) }, none)},
		{"second_row_in_1_of_100", some, 2600, seldom(.01, func(r *rand.Rand) analysis.Outcome { return groups(lap(r, 1), lap(r, 1)) }, one)},
		{"only_row_in_1_of_100", some, 2000, seldom(.01, func(r *rand.Rand) analysis.Outcome { return groups(lap(r, 1)) }, func(*rand.Rand) analysis.Outcome { return groups() })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := median(t, c.claim, 3, 5000, c.d)
			t.Logf("median %d pairs", got)
			if got > c.bar {
				t.Errorf("median %d pairs to detection, want at most %d", got, c.bar)
			}
		})
	}
}

// TestRareAndRight: the same kinds of answers at their tight claim. Nine or more alarms in 20 audits have a probability
// of 7e-8 at a rate of .05.
func TestRareAndRight(t *testing.T) {
	longtest.Skip(t)
	longtest.SkipFast(t)
	t.Parallel()
	flip := func(r *rand.Rand, x float64) float64 {
		if r.Float64() >= pOf(1) {
			return 1 - x
		}
		return x
	}
	for _, c := range []struct {
		name  string
		pairs int
		one   func(r *rand.Rand, x float64) analysis.Outcome
	}{
		{"rare_keys", 150, rareKeys},
		{"modulo", 400, func(r *rand.Rand, x float64) analysis.Outcome { return modulo(r, flip(r, x)/2) }},
		{"clamped", 400, func(r *rand.Rand, x float64) analysis.Outcome { return clamped(r, flip(r, x)) }},
		{"third_moment", 400, func(r *rand.Rand, x float64) analysis.Outcome { return skewed(r, 2*flip(r, x)-1) }},
		{"second_row", 1000, func(r *rand.Rand, x float64) analysis.Outcome {
			if r.Float64() < .04*math.Exp(-x) {
				return groups(lap(r, 1), lap(r, 1))
			}
			return groups(lap(r, 1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			alarms := 0
			for seed := range uint64(20) {
				alarms += b2i(detected(t, analysis.Claim{Epsilon: 1}, c.pairs, seed, worlds(c.one)) <= c.pairs)
			}
			if alarms > 8 {
				t.Errorf("%d alarms in 20 audits", alarms)
			}
		})
	}
}
