package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestRanked compares what is read off sorted numbers with what the numbers show one by one.
func TestRanked(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var list, all []float64
	for n := range 40 {
		var more []float64
		for range n {
			more = append(more, math.Round(8*lap(r, 1))/8)
		}
		all = append(all, more...)
		slices.Sort(more)
		list = analysis.MergeSorted(list, more)
	}
	slices.Sort(all)
	if !slices.Equal(list, all) {
		t.Fatal("merged numbers are not those sorted")
	}
	edges := []float64{-3, -1, -.125, 0, math.Nextafter(0, 1), .3, 2, 50}
	want := make([]int32, len(edges)+1)
	for _, x := range all {
		want[analysis.Bin(edges, x)]++
	}
	if got := analysis.CountNumbers(edges, all); !slices.Equal(got, want) {
		t.Errorf("counts by bin %v, want %v", got, want)
	}
}
