package power

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
)

// onGrid rounds noise to multiples of 2^-20, so that its lowest bits tell nothing.
func onGrid(x float64) float64 { return math.Round(x*0x1p20) / 0x1p20 }

// naiveLaplace is the textbook's inversion in floating point, whose lowest bits leak (Mironov 2012).
func naiveLaplace(r *rand.Rand, b float64) float64 {
	u := r.Float64() - .5
	return -math.Copysign(b*math.Log(1-2*math.Abs(u)), u)
}

func lap(r *rand.Rand, b float64) float64 {
	x := onGrid(r.ExpFloat64() * b)
	if r.Uint64()&1 == 0 {
		return -x
	}
	return x
}

func gauss(r *rand.Rand, sigma float64) float64 { return onGrid(r.NormFloat64() * sigma) }

// geometric draws two-sided geometric noise with parameter e^-epsilon.
func geometric(r *rand.Rand, epsilon float64) float64 {
	one := func() float64 { return math.Floor(r.ExpFloat64() / epsilon) }
	return one() - one()
}

// number is a number as a server sends it.
func number(x float64) analysis.Value {
	return analysis.Value{Kind: analysis.Number, Num: x, Text: strconv.FormatFloat(x, 'g', -1, 64)}
}

// value is a result of one row and one float column.
func value(x float64) analysis.Outcome {
	return analysis.Outcome{
		Columns: []analysis.Column{{Name: "x"}},
		Rows:    [][]analysis.Value{{number(x)}},
	}
}

// word is a result of one row and one text column.
func word(s string) analysis.Outcome {
	return analysis.Outcome{
		Columns: []analysis.Column{{Name: "answer", Discrete: true}},
		Rows:    [][]analysis.Value{{{Kind: analysis.Text, Text: s}}},
	}
}

func index(i int) analysis.Outcome { return word(strconv.Itoa(i)) }

// groups is a result of a GROUP BY: a row per number, none for NaN.
func groups(xs []float64) analysis.Outcome {
	o := analysis.Outcome{Columns: []analysis.Column{{Name: "k", Discrete: true}, {Name: "n"}}}
	for i, x := range xs {
		if !math.IsNaN(x) {
			o.Rows = append(o.Rows, []analysis.Value{number(float64(i)), number(x)})
		}
	}
	return o
}

// columns is a result of one row and one float column per number.
func columns(xs ...float64) analysis.Outcome {
	o := analysis.Outcome{Rows: [][]analysis.Value{nil}}
	for i, x := range xs {
		o.Columns = append(o.Columns, analysis.Column{Name: "c" + strconv.Itoa(i)})
		o.Rows[0] = append(o.Rows[0], number(x))
	}
	return o
}

// sharedNoise is n groups with one noise for all and Laplace noise of their own of the given scale; the last one's
// answer has moved.
func sharedNoise(r *rand.Rand, n, moved int, noise, own float64) analysis.Outcome {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64(i) + noise + lap(r, own)
	}
	xs[n-1] += float64(moved)
	return groups(xs)
}

// answers is a result of one row per query and one boolean answer each.
func answers(above []bool) analysis.Outcome {
	o := analysis.Outcome{Columns: []analysis.Column{{Name: "q", Discrete: true}, {Name: "above", Discrete: true}}}
	for i, b := range above {
		v := analysis.Value{Kind: analysis.Bool}
		if b {
			v.Num = 1
		}
		o.Rows = append(o.Rows, []analysis.Value{number(float64(i)), v})
	}
	return o
}

// noisyVector adds Laplace noise to every entry.
func noisyVector(r *rand.Rand, xs []float64, b float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = x + lap(r, b)
	}
	return out
}

// noisyMax returns the index and the value of the greatest noisy entry.
func noisyMax(xs []float64, noise func() float64) (at int, top float64) {
	top = math.Inf(-1)
	for i, x := range xs {
		if y := x + noise(); y > top {
			at, top = i, y
		}
	}
	return at, top
}

// choose draws an index with the given weights.
func choose(r *rand.Rand, weights []float64) int {
	all := 0.0
	for _, w := range weights {
		all += w
	}
	u := r.Float64() * all
	for i, w := range weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// respond is k-ary randomised response: the truth with probability p, else another category.
func respond(r *rand.Rand, truth, k int, p float64) int {
	if r.Float64() < p {
		return truth
	}
	return (truth + 1 + r.IntN(k-1)) % k
}

// sparse is the sparse vector technique, in the variants of Lyu, Su and Li (2017, figure 1), sensitivity 1 and cut-off
// 1: noise b0 on the threshold t and b1 on every query.
type sparse struct {
	t, b0, b1 float64
	endless   bool // no cut-off
	numeric   bool // the noisy answer is given away with the first positive
}

func (s sparse) run(r *rand.Rand, queries []float64) analysis.Outcome {
	t := s.t + lap(r, s.b0)
	above := make([]bool, len(queries))
	for i, q := range queries {
		x := q
		if s.b1 > 0 {
			x += lap(r, s.b1)
		}
		if x < t {
			continue
		}
		above[i] = true
		switch {
		case s.numeric:
			o := index(i)
			o.Columns = append(o.Columns, analysis.Column{Name: "answer"})
			o.Rows[0] = append(o.Rows[0], number(x))
			return o
		case !s.endless:
			return index(i)
		}
	}
	if s.endless {
		return answers(above)
	}
	if o := index(-1); s.numeric {
		o.Columns = append(o.Columns, analysis.Column{Name: "answer"})
		o.Rows[0] = append(o.Rows[0], analysis.Value{Kind: analysis.Null})
		return o
	}
	return index(-1)
}
