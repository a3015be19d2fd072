package lawfit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDistances compares the distances of sorted numbers from a centre, counted together, with those counted one by
// one.
func TestDistances(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var all []float64
	for range 800 {
		all = append(all, math.Round(8*r.ExpFloat64()*float64(1-2*r.IntN(2)))/8)
	}
	slices.Sort(all)
	for _, center := range []float64{0, .2, -40, 40} {
		var each, together distances
		for _, v := range all {
			each[distanceBin(math.Abs(v-center)/.9)]++
		}
		if together.add(all, center, .9); each != together {
			t.Errorf("distances from %v are %v, want %v", center, together, each)
		}
	}
}
