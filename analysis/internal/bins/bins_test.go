package bins

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

func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		values := numbersOf(r, r.IntN(600))
		want := slices.Sorted(slices.Values(values))
		if new(Scratch).Sort(values); !slices.Equal(values, want) {
			t.Fatalf("sorted as %v, want %v", values, want)
		}
	}
}

func TestBinOfEveryWidth(t *testing.T) {
	var edges []float64
	for n := range 64 {
		b := Binner{Edges: edges}
		for i := range n + 1 {
			if got := b.Bin(float64(i) - .5); got != i {
				t.Errorf("%v is in bin %d of %d edges, want %d", float64(i)-.5, got, n, i)
			}
			if got := b.Bin(float64(i)); got != min(i+1, n) {
				t.Errorf("%d is in bin %d of %d edges, want %d", i, got, n, min(i+1, n))
			}
		}
		edges = append(edges, float64(n))
	}
}

// TestRanked compares what is read off sorted numbers with what the numbers show one by one.
func TestRanked(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var list, all []float64
	for n := range 40 {
		var more []float64
		for range n {
			more = append(more, math.Round(8*r.ExpFloat64()*float64(1-2*r.IntN(2)))/8)
		}
		all = append(all, more...)
		slices.Sort(more)
		list = MergeSorted(list, more)
	}
	slices.Sort(all)
	if !slices.Equal(list, all) {
		t.Fatal("merged numbers are not those sorted")
	}
	edges := []float64{-3, -1, -.125, 0, math.Nextafter(0, 1), .3, 2, 50}
	want := make([]int32, len(edges)+1)
	for _, x := range all {
		want[(&Binner{Edges: edges}).Bin(x)]++
	}
	got := make([]int32, len(edges)+1)
	if (&Binner{Edges: edges}).CountNumbers(all, got); !slices.Equal(got, want) {
		t.Errorf("counts by bin %v, want %v", got, want)
	}
}
