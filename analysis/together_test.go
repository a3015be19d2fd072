package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// signed is two numbers of one law, the signs of which agree with the given probability.
func signed(r *rand.Rand, agree float64) (x, y float64) {
	x, y = lap(r, 1), lap(r, 1)
	if r.Float64() < agree != (x*y > 0) {
		y = -y
	}
	return x, y
}

// alike is n normal numbers, every two of them with the given correlation.
func alike(r *rand.Rand, n int, correlation float64) []float64 {
	xs, z := make([]float64, n), gauss(r, math.Sqrt(correlation))
	for i := range xs {
		xs[i] = z + gauss(r, math.Sqrt(1-correlation))
	}
	return xs
}

// oneMoves is n groups of which a random one is moved.
func oneMoves(r *rand.Rand, n int, by float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = lap(r, 1)
	}
	xs[r.IntN(n)] += by
	return xs
}

// leaksTogether are leaks of which no column or group shows anything, or little, by itself.
var leaksTogether = []struct {
	name string
	bar  int // pairs: about three standard errors above the median measured
	say  string
	d    draw
}{
	{"sign_follows_the_other_column", 100, "vary together", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return columns(signed(r, .95-.9*s))
	})},
	{"four_columns_alike_or_not", 70, "vary together", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return columns(alike(r, 4, .99*s)...)
	})},
	{"two_of_forty_groups", 160, "vary together", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		xs := alike(r, 40, 0)
		xs[7], xs[31] = signed(r, .95-.9*s)
		return groups(xs...)
	})},
	{"two_of_a_hundred_groups", 160, "vary together", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		xs := alike(r, 100, 0)
		xs[7], xs[91] = signed(r, .95-.9*s)
		return groups(xs...)
	})},
	{"pairs_of_a_hundred_groups", 160, "vary together", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		xs := alike(r, 100, 0)
		for i := 0; i < 100; i += 2 {
			xs[i+1] = (.9-1.8*s)*xs[i] + math.Sqrt(1-.81)*xs[i+1]
		}
		return groups(xs...)
	})},
	{"a_random_group_of_twenty_moves", 200, "the largest value of all groups", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return groups(oneMoves(r, 20, 5*s)...)
	})},
	{"a_random_group_of_twenty_moves_down", 200, "the smallest value of all groups", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return groups(oneMoves(r, 20, 5*(s-1))...)
	})},
}

// TestLeaksTogether holds the median of pairs to detection, and what is said.
func TestLeaksTogether(t *testing.T) {
	t.Parallel()
	claim := analysis.Claim{Epsilon: 1}
	for _, c := range leaksTogether {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := median(t, claim, 11, 2000, c.d)
			r := run(t, claim, 2000, 5, c.d)
			t.Logf("median %d pairs: %+v", got, r.Event)
			if got > c.bar {
				t.Errorf("median %d pairs to detection, want at most %d", got, c.bar)
			}
			if !contains(r.Event, c.say) || r.Event.Kind != analysis.JointEvent {
				t.Errorf("event %+v does not say %q", r.Event, c.say)
			}
		})
	}
}
