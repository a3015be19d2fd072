package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// numbersOf draws n numbers of one of several kinds: continuous, whole, all of one size, of any size, close together
// but for one, equal.
func numbersOf(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	form := r.IntN(6)
	for i := range values {
		switch form {
		case 0:
			values[i] = 100 + r.NormFloat64()
		case 1:
			values[i] = float64(r.IntN(9) - 4)
		case 2:
			values[i] = -r.Float64()
		case 3:
			for values[i] = math.NaN(); math.IsNaN(values[i]) || math.IsInf(values[i], 0); {
				values[i] = math.Float64frombits(r.Uint64())
			}
		case 4:
			values[i] = 1 + r.Float64()*1e-9
			values[0] = -1e300
		default:
			values[i] = 7
		}
	}
	return values
}

func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		values := numbersOf(r, r.IntN(600))
		want := slices.Sorted(slices.Values(values))
		if analysis.Sort(values); !slices.Equal(values, want) {
			t.Fatalf("sorted as %v, want %v", values, want)
		}
	}
}

func TestNthDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		values := slices.Sorted(slices.Values(numbersOf(r, 1+r.IntN(40))))
		x := values[r.IntN(len(values))]
		if r.IntN(2) == 0 {
			x = math.Nextafter(x, x/2-1)
		}
		var distances []float64
		for _, v := range values {
			distances = append(distances, math.Abs(v-x))
		}
		slices.Sort(distances)
		for n, want := range distances {
			if got := analysis.NthDistance(values, x, n); got != want {
				t.Fatalf("distance %d of %v from %v is %v, want %v", n, values, x, got, want)
			}
		}
	}
}

func TestBinOfEveryWidth(t *testing.T) {
	var edges []float64
	for n := range 64 {
		for i := range n + 1 {
			if got := analysis.Bin(edges, float64(i)-.5); got != i {
				t.Errorf("%v is in bin %d of %d edges, want %d", float64(i)-.5, got, n, i)
			}
			if got := analysis.Bin(edges, float64(i)); got != min(i+1, n) {
				t.Errorf("%d is in bin %d of %d edges, want %d", i, got, n, min(i+1, n))
			}
		}
		edges = append(edges, float64(n))
	}
}

func TestRemainder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	moduli := []float64{1000, 10, .1, .01, 1e-3, 1e-6, 0x1p-20, 0x1p-30, .37}
	for range 200_000 {
		x, m := math.Float64frombits(r.Uint64()), moduli[r.IntN(len(moduli))]
		switch r.IntN(4) {
		case 0:
			x = r.NormFloat64() * math.Pow(10, float64(r.IntN(12)-3))
		case 1:
			x = math.Round(r.NormFloat64()*1000) * m
		case 2:
			x = math.Nextafter(math.Round(r.NormFloat64()*1000)*m, 0)
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if got, want := analysis.Remainder(x, m), math.Mod(x, m); got != want {
			t.Fatalf("%v modulo %v is %v, want %v", x, m, got, want)
		}
	}
}
