package analysis_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// revealing adds noise of epsilon 1, but gives the true value in some trials.
func revealing(part float64) draw {
	return worlds(func(r *rand.Rand, x float64) analysis.Outcome {
		if r.Float64() < part {
			return value(x)
		}
		return value(x + lap(r, 1))
	})
}

// leaksSeldom are leaks in few of the trials.
var leaksSeldom = []struct {
	name string
	bar  int // pairs: about three standard errors above the median measured
	say  string
	d    draw
}{
	{"true_value", 500, "seen before in that world alone", revealing(.03)},
	{"far_out", 2400, "beyond the range of the other world", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		x := lap(r, 1)
		if r.Float64() < .03-.027*s {
			x += 30
		}
		return value(x)
	})},
	{"little_noise", 1300, "column x", worlds(func(r *rand.Rand, x float64) analysis.Outcome {
		if r.IntN(10) == 0 {
			return value(x + lap(r, .1))
		}
		return value(x + lap(r, 1))
	})},
}

// TestLeaksSeldom holds the median of pairs to detection, and what is said.
func TestLeaksSeldom(t *testing.T) {
	t.Parallel()
	claim := analysis.Claim{Epsilon: 1}
	for _, c := range leaksSeldom {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := median(t, claim, 21, 8000, c.d)
			r := run(t, claim, 8000, 5, c.d)
			t.Logf("median %d pairs: %+v", got, r.Event)
			if got > c.bar {
				t.Errorf("median %d pairs to detection, want at most %d", got, c.bar)
			}
			if !contains(r.Event, c.say) {
				t.Errorf("event %+v does not say %q", r.Event, c.say)
			}
		})
	}
}
