package eprocess

import (
	"math"
	"slices"
)

// Shape of the grid of epsilons on which the lower bound lies.
const (
	gridLeast  = .01
	gridCoarse = 1.25 // the ratio of neighbours up to a tenth of the claim
	gridRatio  = 1.1  // and from there on
	gridFine   = 1.03 // the ratio of neighbours where nothing is claimed, and the bound is all there is
	gridMost   = 14   // an engine without noise needs more than a million pairs beyond this
)

// claimMargin is how far above the claim, relatively, the point of the grid lies that decides about the claim: so the
// bound is above the claim exactly when the claim is refuted.
const claimMargin = 1e-4

// NewGrid returns the epsilons at which a process is kept: 0, a geometric series, and a point just above the claim.
// It also returns the index of that point. Without a claim the index is -1.
func NewGrid(claim float64, noClaim bool) (grid []float64, at int) {
	grid = append(grid, 0)
	for e := gridLeast; e < gridMost; {
		grid = append(grid, e)
		switch {
		case noClaim:
			e *= gridFine
		case e < claim/10:
			e *= gridCoarse
		default:
			e *= gridRatio
		}
	}
	if noClaim {
		return grid, -1
	}
	point := claim + max(1e-6, claim*claimMargin)
	grid = slices.DeleteFunc(grid, func(e float64) bool {
		return e > 0 && math.Abs(e-point) < .02*point
	})
	at, _ = slices.BinarySearch(grid, point)
	return slices.Insert(grid, at, point), at
}
