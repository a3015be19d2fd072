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

// TestFraction: the step of whole numbers that are divided by an unknown number and rounded to a few digits is found, and
// there is none in other rounded numbers. The seeds are fixed.
func TestFraction(t *testing.T) {
	for name, c := range map[string]struct {
		step     float64
		decimals int
		of       func(r *rand.Rand) float64
	}{
		"a share of 300":       {1. / 300, 6, func(r *rand.Rand) float64 { return math.Round(13500+20*laplace(r)) / 300 }},
		"a share of 29999":     {1. / 29999, 7, func(r *rand.Rand) float64 { return math.Round(1.3e6+2000*laplace(r)) / 29999 }},
		"twice a share":        {2. / 299, 5, func(r *rand.Rand) float64 { return 2 * math.Round(13500+20*laplace(r)) / 299 }},
		"negative":             {1. / 7, 3, func(r *rand.Rand) float64 { return math.Round(20*laplace(r)) / 7 }},
		"rounded noise":        {0, 6, func(r *rand.Rand) float64 { return 45 + laplace(r)/math.Pi }},
		"noise of many digits": {0, 15, func(r *rand.Rand) float64 { return 45 + laplace(r)/math.Pi }},
		"too fine a share":     {0, 4, func(r *rand.Rand) float64 { return math.Round(1.3e6+2000*laplace(r)) / 29999 }},
	} {
		for seed := range uint64(50) {
			r, p := rand.New(rand.NewPCG(seed, 9)), math.Pow(10, float64(c.decimals))
			values := make([]float64, maxResolutionPairs)
			for i := range values {
				values[i] = math.Round(c.of(r)*p) / p
			}
			if got := fractionOf(values, .5/p); math.Abs(got-c.step) > 1e-9*c.step {
				t.Errorf("%s, seed %d: %v, want %v", name, seed, got, c.step)
			}
		}
	}
}

func laplace(r *rand.Rand) float64 { return r.ExpFloat64() - r.ExpFloat64() }
