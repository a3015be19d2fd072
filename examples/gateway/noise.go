package main

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	mathrand "math/rand/v2"
)

// steps is the number of grid steps in the maximal contribution of one user to a sum.
const steps = 1024

// noisy adds discrete Laplace noise (Ghosh, Roughgarden, Sundararajan 2009: two-sided geometric) to a value in steps of
// grid. One user changes the value by at most bound; rounding to the grid adds one step to that.
func (e engine) noisy(value, bound, grid, epsilon float64) float64 {
	sensitivity := math.Ceil(bound / grid)
	if grid < bound { // a count is a whole number already
		sensitivity++
	}
	scale := sensitivity / epsilon
	uniform := strongUniform
	switch e.broken {
	case "half-noise":
		scale /= 2
	case "seeded":
		uniform = mathrand.New(mathrand.NewPCG(1, 2)).Float64
	}
	noise := geometric(scale, uniform) - geometric(scale, uniform)
	return (math.Round(value/grid) + noise) * grid
}

// geometric draws k = 0, 1, ... with probability proportional to exp(-k/scale), by inversion of a uniform number of 53
// bits: exact up to probabilities of about 1e-16, which is sufficient for an example.
func geometric(scale float64, uniform func() float64) float64 {
	return math.Floor(-scale * math.Log(1-uniform()))
}

// strongUniform draws from [0, 1) in steps of 2^-53, from the system's random number generator.
func strongUniform() float64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}
