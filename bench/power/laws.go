package power

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
)

// law gives the probability of x or less.
type law func(x float64) float64

func laplaceLaw(center, b float64) law {
	return func(x float64) float64 {
		if d := (x - center) / b; d > 0 {
			return 1 - .5*math.Exp(-d)
		}
		return .5 * math.Exp((x-center)/b)
	}
}

func gaussLaw(center, sigma float64) law {
	return func(x float64) float64 { return .5 * math.Erfc(-(x-center)/(sigma*math.Sqrt2)) }
}

func laplaceShiftLaws(epsilon float64) func() ([]float64, []float64) {
	return func() ([]float64, []float64) {
		return analysis.Cut(laplaceLaw(0, 1/epsilon), laplaceLaw(1, 1/epsilon), 0, 1, 400)
	}
}

// gaussDelta is the delta that a Gaussian mechanism of sensitivity 1 needs at an epsilon (Balle and Wang 2018, theorem
// 8).
func gaussDelta(epsilon, sigma float64) float64 {
	phi := func(x float64) float64 { return .5 * math.Erfc(-x/math.Sqrt2) }
	return phi(1/(2*sigma)-epsilon*sigma) - math.Exp(epsilon)*phi(-1/(2*sigma)-epsilon*sigma)
}

// gaussSigma is the least sigma that is (epsilon, delta) for sensitivity 1.
func gaussSigma(epsilon, delta float64) float64 {
	lo, hi := .01, 1000.0
	for range 200 {
		if mid := lo + (hi-lo)/2; gaussDelta(epsilon, mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func geometricLaws(epsilon float64) func() ([]float64, []float64) {
	return func() (p, q []float64) {
		a := math.Exp(-epsilon)
		for x := -60; x <= 61; x++ {
			c := (1 - a) / (1 + a)
			p = append(p, c*math.Pow(a, math.Abs(float64(x))))
			q = append(q, c*math.Pow(a, math.Abs(float64(x-1))))
		}
		return p, q
	}
}

func responseLaws(k int, p float64) func() ([]float64, []float64) {
	return func() ([]float64, []float64) {
		x, y := make([]float64, k), make([]float64, k)
		for i := range x {
			x[i], y[i] = (1-p)/float64(k-1), (1-p)/float64(k-1)
		}
		x[0], y[1] = p, p
		return x, y
	}
}
