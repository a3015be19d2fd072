package eprocess_test

import (
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// TestNewGrid: the points are at most 2 % apart (.002 below .1), and those of every claim are the same, with the point
// that decides about the claim in place of its neighbour.
func TestNewGrid(t *testing.T) {
	t.Parallel()
	all, at := eprocess.NewGrid(0, true)
	if at != -1 {
		t.Errorf("without a claim the point of the claim is %d, want -1", at)
	}
	for i := 2; i < len(all); i++ {
		if from, to := all[i-1], all[i]; !(to > from) || to-from > max(.00201, .0201*from) {
			t.Errorf("the points %v and %v are too far apart", from, to)
		}
	}
	for _, claim := range []float64{0, .004, .01, .1, 1, 2.7, 13.9, 20} {
		grid, at := eprocess.NewGrid(claim, false)
		if !slices.IsSorted(grid) || at < 0 || !(grid[at] > claim) || grid[at] > claim*1.001+1e-5 {
			t.Errorf("claim %v: the point %d of %v decides", claim, at, grid)
			continue
		}
		others := slices.Delete(slices.Clone(grid), at, at+1)
		for _, e := range others {
			if !slices.Contains(all, e) {
				t.Errorf("claim %v: %v is no point of the grid without a claim", claim, e)
			}
		}
		if left := len(all) - len(others); left > 1 {
			t.Errorf("claim %v: %d points are left out, want 1 at most", claim, left)
		}
	}
}
