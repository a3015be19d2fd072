package power

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is laws of mechanisms in closed form, or by integration over one number.

// maxLaw is the law of the greatest of n.
func maxLaw(l law, n float64) law { return func(x float64) float64 { return math.Pow(l(x), n) } }

// truncatedLaw is a law given that the number lies between lo and hi.
func truncatedLaw(l law, lo, hi float64) law {
	a, b := l(lo), l(hi)
	return func(x float64) float64 { return (l(min(max(x, lo), hi)) - a) / (b - a) }
}

// disjoint are results that no two datasets have in common: shared, rounded or reused noise that leaves no doubt. Its g
// is 2 ln(1 + 1/R), the most that any mechanism has.
func disjoint() (p, q []float64) { return []float64{1, 0}, []float64{0, 1} }

// histogramLaws are n groups that each lose epsilon. Between the centres the log-ratio of a group falls evenly from
// epsilon to -epsilon, beyond them it is constant. So with the tails at 0 and 2 cells, and the cells at the odd numbers
// between, the sum over the groups tells their log-ratio.
func histogramLaws(n int, epsilon float64, cells int) func() ([]float64, []float64) {
	return func() ([]float64, []float64) {
		p, q := analysis.Cut(laplaceLaw(0, 1/epsilon), laplaceLaw(1, 1/epsilon), 0, 1, cells)
		spread := func(masses []float64) []float64 {
			out := make([]float64, 2*cells+1)
			for i, m := range masses {
				out[min(max(2*i-1, 0), 2*cells)] += m
			}
			return repeated(n, out)
		}
		return spread(p), spread(q)
	}
}

func binomialLaws(n int, p0, p1 float64) func() ([]float64, []float64) {
	return func() (p, q []float64) { return binomial(n, p0), binomial(n, p1) }
}

// binomial returns the probabilities of 0 to n successes.
func binomial(n int, p float64) []float64 {
	b := make([]float64, n+1)
	for k := range b {
		all, _ := math.Lgamma(float64(n + 1))
		in, _ := math.Lgamma(float64(k + 1))
		out, _ := math.Lgamma(float64(n - k + 1))
		b[k] = math.Exp(all - in - out + xlog(k, p) + xlog(n-k, 1-p))
	}
	return b
}

// xlog is k ln p, 0 for k = 0.
func xlog(k int, p float64) float64 {
	if k == 0 {
		return 0
	}
	return float64(k) * math.Log(p)
}

// thresholds calls f with cells of the threshold t + Laplace noise of scale b: each one's middle and mass.
func thresholds(t, b float64, f func(x, mass float64)) {
	const cells, reach = 40_000, 25 // beyond 25 scales lies 1e-11
	l := laplaceLaw(t, b)
	width := 2 * reach * b / cells
	for i := range cells {
		lo := t - reach*b + float64(i)*width
		f(lo+width/2, l(lo+width)-l(lo))
	}
}

// firstAbove is the sparse vector technique that stops at the first positive answer: the probabilities of its index,
// and last of none.
func (s sparse) firstAbove(queries []float64) []float64 {
	p := make([]float64, len(queries)+1)
	thresholds(s.t, s.b0, func(t, mass float64) {
		for i, q := range queries {
			below := laplaceLaw(q, s.b1)(t)
			p[i] += mass * (1 - below)
			mass *= below
		}
		p[len(queries)] += mass
	})
	return p
}

// allAbove is the technique without a cut-off on two blocks of five equal queries: how many of each are above is
// sufficient. Without noise on the queries a block is above as a whole.
func (s sparse) allAbove(queries []float64) []float64 {
	p := make([]float64, 36)
	thresholds(s.t, s.b0, func(t, mass float64) {
		var above [2][]float64
		for i, q := range [2]float64{queries[0], queries[5]} {
			switch {
			case s.b1 > 0:
				above[i] = binomial(5, 1-laplaceLaw(q, s.b1)(t))
			case q < t:
				above[i] = []float64{1, 0, 0, 0, 0, 0}
			default:
				above[i] = []float64{0, 0, 0, 0, 0, 1}
			}
		}
		for i, x := range above[0] {
			for j, y := range above[1] {
				p[6*i+j] += mass * x * y
			}
		}
	})
	return p
}

// firstAnswer is the technique that gives the first positive answer away: the masses of index and answer in cells, and
// last of none. The answer x to query i has the density f(x-q_i) H_i(x), where H_i(x) is the probability that the
// threshold is at most x and above all queries before.
func (s sparse) firstAnswer(queries []float64) []float64 {
	var none float64
	var density []float64
	h := make([]float64, len(queries))
	n := 0
	thresholds(s.t, s.b0, func(t, mass float64) {
		if n++; n%20 == 0 {
			for i, q := range queries {
				density = append(density, h[i]*math.Exp(-math.Abs(t-q)/s.b1))
			}
		}
		for i, q := range queries {
			h[i] += mass
			mass *= laplaceLaw(q, s.b1)(t)
		}
		none += mass
	})
	all := 0.0
	for _, d := range density {
		all += d
	}
	for i := range density {
		density[i] *= (1 - none) / all
	}
	return append(density, none)
}

// lawsOf are the laws of one function of the input.
func lawsOf[T any](d0, d1 T, f func(T) []float64) func() (p, q []float64) {
	return func() (p, q []float64) { return f(d0), f(d1) }
}
