package fit

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// This file solves with positive definite matrices, stored row by row, of which the lower triangle is given.

// factorize overwrites the lower triangle with Cholesky's factor. It reports whether the matrix is positive definite,
// by more than rounding.
func factorize(c []float64, n int) (factor blas64.Triangular, ok bool) {
	factor, ok = lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Data: c, Stride: n})
	const least = 1e-6 // of the factor's diagonal: its square is the variance that the variables before leave unexplained
	for i := range n {
		ok = ok && c[i*n+i] > least
	}
	return factor, ok
}

// SolvePositive solves C x = b. It overwrites b with x, and C.
func SolvePositive(c, b []float64) bool {
	factor, ok := factorize(c, len(b))
	if ok {
		lapack64.Potrs(factor, blas64.General{Rows: len(b), Cols: 1, Data: b, Stride: 1})
	}
	return ok
}

// InvertPositive overwrites a matrix with its inverse, both triangles of it.
func InvertPositive(c []float64, n int) bool {
	factor, ok := factorize(c, n)
	if !ok {
		return false
	}
	lapack64.Potri(factor) // succeeds: no element of the factor's diagonal is 0
	for i := range n {
		for j := range i {
			c[j*n+i] = c[i*n+j]
		}
	}
	return true
}
