package dependence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
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
			if got := nthDistance(values, x, n); got != want {
				t.Fatalf("distance %d of %v from %v is %v, want %v", n, values, x, got, want)
			}
		}
	}
}
