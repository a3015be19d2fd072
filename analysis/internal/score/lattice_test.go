package score

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLattice: the step of rounded answers is found after what a query does to them, and there is none in answers that
// are not rounded. The seeds are fixed.
func TestLattice(t *testing.T) {
	for name, c := range map[string]struct {
		step float64
		of   func(float64) float64
	}{
		"none":              {1. / 1024, func(x float64) float64 { return x }},
		"divided by 6":      {1. / 1024 / 6, func(x float64) float64 { return x / 6 }},
		"times 1.1":         {1.1 / 1024, func(x float64) float64 { return x * 1.1 }},
		"a share of 997":    {1. / 1024 / 997, func(x float64) float64 { return x / 997 }},
		"divided, moved":    {1. / 1024 / 7, func(x float64) float64 { return x/7 + .1 }},
		"far from 0":        {1. / 1024 / 3, func(x float64) float64 { return (x + 12345) / 3 }},
		"not rounded":       {0, func(x float64) float64 { return math.Sqrt(math.Abs(x) + 1) }},
		"numbers too large": {0, func(x float64) float64 { return x * 0x1p1020 * 0x1p2 }},
	} {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 7))
			values := make([]float64, maxResolutionPairs)
			for i := range values {
				values[i] = c.of(math.Round(1024*(5+r.ExpFloat64()-r.ExpFloat64())) / 1024)
			}
			if got := latticeOf(values); math.Abs(got-c.step) > 1e-9*c.step {
				t.Errorf("%s, seed %d: %v, want %v", name, seed, got, c.step)
			}
		}
	}
	for _, few := range [][]float64{nil, {1}, {1, 1}} {
		if got := latticeOf(few); got != 0 {
			t.Errorf("%v: %v, want 0", few, got)
		}
	}
}
