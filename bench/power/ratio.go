package power

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is the laws of results that are too many to be listed. Who knows both laws needs nothing of a result but
// its log-ratio L = ln p/q, which is sufficient: the law of L on D0 and on D1 has all the evidence that the laws have.
// L is cut into bins, whose masses on both worlds are exact or estimated without bias; the cut rounds g down.

// tally is masses of outcomes on D0 and D1 by log-ratio.
type tally struct {
	width float64
	bins  map[int]*[2]float64
}

// binOf returns the bin of a log-ratio; the infinite ones have bins of their own.
func (t *tally) binOf(l float64) int {
	switch {
	case math.IsInf(l, 1):
		return math.MaxInt
	case math.IsInf(l, -1):
		return math.MinInt
	}
	return int(math.Floor(l / t.width))
}

func (t *tally) add(l, p, q float64) {
	b := t.bins[t.binOf(l)]
	if b == nil {
		b = &[2]float64{}
		t.bins[t.binOf(l)] = b
	}
	b[0] += p
	b[1] += q
}

// laws returns the masses, made to sum to 1 in each world.
func (t *tally) laws() (p, q []float64) {
	var sum [2]float64
	for _, b := range t.bins {
		sum[0], sum[1] = sum[0]+b[0], sum[1]+b[1]
	}
	for _, b := range t.bins {
		p, q = append(p, b[0]/sum[0]), append(q, b[1]/sum[1])
	}
	return p, q
}

// sampled estimates the laws of the log-ratio from draws of a mechanism, so many on each world. A draw from the mixture
// of both worlds with the log-ratio L has the weight 2/(1+e^-L) on D0 and 2/(1+e^L) on D1: no bin is seen in one world
// only by chance.
func sampled(draw func(*rand.Rand) (d0, d1 analysis.Outcome), pairs int, seed uint64, ratio func(analysis.Outcome) float64) func() (p, q []float64) {
	return func() (p, q []float64) {
		r := rand.New(rand.NewPCG(seed, 20240607))
		t := tally{width: 1. / 256, bins: map[int]*[2]float64{}}
		for range pairs {
			x, y := draw(r)
			for _, o := range [2]analysis.Outcome{x, y} {
				l := ratio(o)
				t.add(l, 2/(1+math.Exp(-l)), 2/(1+math.Exp(l)))
			}
		}
		return t.laws()
	}
}

// repeated is the law of the sum of n independent numbers with the given law.
func repeated(n int, law []float64) []float64 {
	all := []float64{1}
	for range n {
		next := make([]float64, len(all)+len(law)-1)
		for j, y := range law {
			if y == 0 {
				continue
			}
			for i, x := range all {
				next[i+j] += x * y
			}
		}
		all = next
	}
	return all
}

// naiveRatio returns the log-ratio of [naiveLaplace] of scale 1 around x and around x + 1: how many of the 2^53 uniform
// numbers that it starts from give the result. Around 0 most results are possible in one world only.
func naiveRatio(x float64) func(o analysis.Outcome) float64 {
	same := func(y float64) float64 { return y }
	return naiveThenRatio(x, 0, same, same)
}

// naiveThenRatio is the same after something public is done to the result, of which undo is roughly the inverse: it is
// off by at most so many last places.
func naiveThenRatio(x float64, places int, do, undo func(y float64) float64) func(o analysis.Outcome) float64 {
	return func(o analysis.Outcome) float64 {
		answer := o.Rows[0][0].Num
		y, counts := undo(answer), [2]float64{}
		for range places {
			y = math.Nextafter(y, math.Inf(-1))
		}
		for range 2*places + 1 {
			if do(y) == answer {
				counts[0] += naiveCount(y, x)
				counts[1] += naiveCount(y, x+1)
			}
			y = math.Nextafter(y, math.Inf(1))
		}
		return math.Log(counts[0]) - math.Log(counts[1])
	}
}

// naiveCount is the number of uniform numbers that give y around a center.
func naiveCount(y, center float64) (n float64) {
	const near = 8 // rounding moves a result by less than so many of the uniform numbers
	middle := math.Round(0x1p52 * math.Exp(-math.Abs(y-center)))
	for m := max(1, middle-near); m <= min(middle+near, 0x1p52); m++ {
		z := -math.Log(m / 0x1p52) // m is 2^52 (1-2|u|)
		for _, z := range [2]float64{z, -z} {
			if center+z == y {
				n++
			}
		}
	}
	return n
}

// sharedRatio is the log-ratio of [sharedNoise] with Laplace noise of scale 1 for all groups and of the given scale for
// each, where the last group moves by 1.
func sharedRatio(own float64) func(o analysis.Outcome) float64 {
	return func(o analysis.Outcome) float64 {
		noise := make([]float64, len(o.Rows)) // the shared one and the group's own
		for i, row := range o.Rows {
			noise[i] = row[1].Num - float64(i)
		}
		d0 := sharedDensity(noise, own)
		noise[len(noise)-1]--
		return d0 - sharedDensity(noise, own)
	}
}

// sharedDensity is the logarithm of the integral over z of exp(-|z| - sum |x_i - z|/own). Between its knots, which are
// 0 and the x_i, the exponent is linear.
func sharedDensity(xs []float64, own float64) float64 {
	knots := append([]float64{0}, xs...)
	slices.Sort(knots)
	exponents := make([]float64, len(knots))
	top := math.Inf(-1)
	for i, z := range knots {
		exponents[i] = -math.Abs(z)
		for _, x := range xs {
			exponents[i] -= math.Abs(x-z) / own
		}
		top = max(top, exponents[i])
	}
	last := len(knots) - 1
	tail := 1 + float64(len(xs))/own // the slope beyond the knots
	sum := (math.Exp(exponents[0]-top) + math.Exp(exponents[last]-top)) / tail
	for i := range last {
		a, b, width := exponents[i]-top, exponents[i+1]-top, knots[i+1]-knots[i]
		if fall := math.Abs(b - a); fall > 0 {
			width *= -math.Expm1(-fall) / fall
		}
		sum += width * math.Exp(max(a, b))
	}
	return top + math.Log(sum)
}
