package eprocess

import (
	"math"
	"slices"
)

// Shape of the grid of epsilons on which the lower bound lies. It is the same for every claim.
const (
	gridLeast = .01
	gridStep  = .002 // the least distance of neighbours
	gridRatio = 1.02 // the least ratio of neighbours
	gridMost  = 14   // an engine without noise needs more than a million pairs beyond this
)

// claimMargin is how far above the claim, relatively, the point of the grid lies that decides about the claim: so the
// bound is above the claim exactly when the claim is refuted.
const claimMargin = 1e-4

// NewGrid returns the epsilons at which a process is kept: 0, a series that is the same for every claim, and a point
// just above the claim, in place of one that is nearer to it than half a step. It also returns the index of that point.
// Without a claim the index is -1.
func NewGrid(claim float64, noClaim bool) (grid []float64, at int) {
	grid = append(grid, 0)
	for e := gridLeast; e < gridMost; e = max(e+gridStep, e*gridRatio) {
		grid = append(grid, e)
	}
	if noClaim {
		return grid, -1
	}
	point := claim + max(1e-6, claim*claimMargin)
	grid = slices.DeleteFunc(grid, func(e float64) bool {
		return e > 0 && math.Abs(e-point) < max(gridStep, (gridRatio-1)*point)/2
	})
	at, _ = slices.BinarySearch(grid, point)
	return slices.Insert(grid, at, point), at
}
