package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInvertPositive multiplies random positive definite matrices with their inverses.
func TestInvertPositive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7, 56} {
		m := make([]float64, n*n)
		for range 2 * n {
			x := make([]float64, n)
			for i := range x {
				x[i] = r.NormFloat64()
			}
			for i := range n {
				for j := range n {
					m[i*n+j] += x[i] * x[j]
				}
			}
		}
		inverse := slices.Clone(m)
		if !InvertPositive(inverse, n) {
			t.Fatalf("size %d: not inverted", n)
		}
		for i := range n {
			for j := range n {
				sum := 0.0
				if i == j {
					sum = -1
				}
				for k := range n {
					sum += m[i*n+k] * inverse[k*n+j]
				}
				if math.Abs(sum) > 1e-9 {
					t.Fatalf("size %d: product differs from 1 by %g at %d, %d", n, sum, i, j)
				}
			}
		}
	}
	if InvertPositive([]float64{1, 0, 1, 1}, 2) {
		t.Error("a singular matrix was inverted")
	}
}
