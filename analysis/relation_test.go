package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// columns is a result of one row and one float column per number.
func columns(xs ...float64) analysis.Outcome {
	var o analysis.Outcome
	var row []analysis.Value
	for i, x := range xs {
		o.Columns = append(o.Columns, analysis.Column{Name: string(rune('a' + i))})
		row = append(row, analysis.Value{Kind: analysis.Number, Num: x})
	}
	o.Rows = [][]analysis.Value{row}
	return o
}

// inverted draws Laplace noise of scale 1 by inversion in floating point, whose lowest bits leak (Mironov 2012).
func inverted(r *rand.Rand) float64 {
	u := r.Float64() - .5
	return -math.Copysign(math.Log(1-2*math.Abs(u)), u)
}

// world draws one result from the true answers' shift: 0 on D0, 1 on D1.
func worlds(one func(r *rand.Rand, shift float64) analysis.Outcome) draw {
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) { return one(r, 0), one(r, 1) }
}

// leaksBetween are leaks that no value by itself shows: every value has the noise that it claims.
var leaksBetween = []struct {
	name string
	bar  int    // pairs: about three standard errors above the median measured
	say  string // in the event's description
	d    draw
}{
	{"one_noise_for_two_columns", 60, "column b", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z := lap(r, 1)
		return columns(10+z+s, 20+z)
	})},
	{"opposite_noise_in_two_columns", 60, "column b", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z := lap(r, 1)
		return columns(10+z+s, 20-z)
	})},
	{"sum_and_count_share_their_noise", 60, "column b", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z := lap(r, 1)
		return columns(1000+10*z+3*s, 20+z+s)
	})},
	{"one_noise_for_twenty_columns", 60, "column", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z, xs := lap(r, 1), make([]float64, 20)
		for i := range xs {
			xs[i] = float64(i*i) + z
		}
		xs[7] += s
		return columns(xs...)
	})},
	{"one_noise_for_two_hundred_groups", 60, "partition", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z, xs := lap(r, 1), make([]float64, 200)
		for i := range xs {
			xs[i] = float64(i) + z
		}
		xs[17] += s
		return groups(xs...)
	})},
	{"noise_shared_in_part_by_ten_groups", 120, "partition", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z, xs := gauss(r, 3), make([]float64, 10)
		for i := range xs {
			xs[i] = z + gauss(r, .3)
		}
		xs[4] += s
		return groups(xs...)
	})},
	{"noise_shared_in_part_by_a_hundred_groups", 120, "partition", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		z, xs := gauss(r, 3), make([]float64, 100)
		for i := range xs {
			xs[i] = z + gauss(r, .5)
		}
		for i := range 10 {
			xs[10*i] += s
		}
		return groups(xs...)
	})},
	{"integer_noise_leaves_the_fraction", 60, "left over", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return value(10.25 + 1.5*s + geo(r, .05))
	})},
	{"rounded_noise_leaves_the_digits", 60, "left over", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return value(10.1234 + 1.5002*s + math.Round(lap(r, 20)*1000)/1000)
	})},
	{"noise_in_floating_point", 92, "too fine for", worlds(func(r *rand.Rand, s float64) analysis.Outcome {
		return value(s + inverted(r))
	})},
}

// TestLeaksBetweenValues holds the median of pairs to detection, and what is said.
func TestLeaksBetweenValues(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	claim := analysis.Claim{Epsilon: 1}
	for _, c := range leaksBetween {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := median(t, claim, 11, 2000, c.d)
			r := run(t, claim, 2000, 5, c.d)
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
