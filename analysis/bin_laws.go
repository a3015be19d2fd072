package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
)

// laws are a working alternative on bins: the probabilities of every bin on D0 and on D1, each summing to 1. They follow
// from the past alone.
type laws [2][]float64

// place writes the log factors of the bet on every bin to odds (those on D0, then those on D1), and returns the events
// that it is made of: the bins whose ratio is beyond what the null allows.
func (l *laws) place(h eprocess.Null, odds []float64) (e events) {
	k := len(l[0])
	h.BinFactors(l[0], l[1], odds[:k], odds[k:])
	for i := range k {
		switch p, q := l[0][i], l[1][i]; {
		case p > h.Ratio*q:
			e.toward[eprocess.TowardD0] |= 1 << i
		case q > h.Ratio*p:
			e.toward[eprocess.TowardD1] |= 1 << i
		}
	}
	e.live = [3]bool{e.toward[eprocess.TowardD0] != 0, false, e.toward[eprocess.TowardD1] != 0}
	return e
}

// gainOf returns what log factors per bin make of counts.
func gainOf(odds []float64, counts [2][]int32) (g float64) {
	k := len(counts[0])
	for i := range k {
		g += float64(counts[0][i])*odds[i] + float64(counts[1][i])*odds[k+i]
	}
	return g
}

// rareOutcome is the part of the trials up to which an outcome that only one world has shown is taken for one that the other
// never has: its part of D0 has the prior Beta(1/4, 1/4).
const rareOutcome = .05

// shrunkLaws is a working alternative on categories: their masses in both worlds together as they were in the past, divided
// by ratios that are drawn to 1 as far as they may be chance, but for rare outcomes of one world. A part 1/(n+1) of both laws is the
// same.
func shrunkLaws(t *table) laws {
	n := float64(t.pairs)
	return t.divided(func(b int) float64 {
		k0, k1 := float64(t.before[0][b]), float64(t.before[1][b])
		if seen := k0 + k1; min(k0, k1) == 0 && seen >= 2 && seen <= rareOutcome*n {
			return (k0 + .25) / (seen + .5)
		}
		return t.shrunkPart(b)
	})
}

// shrunkPart is the part of D0 in a bin, drawn to a half as far as its difference from that may be chance.
func (t *table) shrunkPart(b int) float64 {
	n := float64(t.pairs)
	return 1 / (1 + math.Exp(-fit.ShrunkLogRatio(float64(t.before[0][b]), float64(t.before[1][b]), n, n)))
}

// newLaws returns laws on the bins of a table, all zero.
func newLaws(t *table) laws {
	k := t.bins()
	both := make([]float64, 2*k)
	return laws{both[:k:k], both[k:]}
}

// mass is the smoothed share of a bin in the past of both worlds together.
func (t *table) mass(b int) float64 {
	return (float64(t.before[0][b]+t.before[1][b]) + .5) / (2*float64(t.pairs) + .5*float64(t.bins()))
}

// divided returns the masses of both worlds together, divided between the worlds by the part of D0 in each bin. A part 1/(n+1) of
// both laws is the same.
func (t *table) divided(part func(b int) float64) laws {
	l := newLaws(t)
	for b := range t.bins() {
		p, mass := part(b), t.mass(b)
		l[0][b], l[1][b] = mass*p, mass*(1-p)
	}
	l.shareMasses(t, [2]float64{sumOf(l[0]), sumOf(l[1])})
	return l
}

// shareMasses scales both laws and makes a part 1/(n+1) of them the same, so that no single outcome can cost much more than a factor n.
func (l *laws) shareMasses(t *table, sums [2]float64) {
	n := float64(t.pairs)
	for w := range l {
		for b := range l[w] {
			l[w][b] = (n*l[w][b]/sums[w] + t.mass(b)) / (n + 1)
		}
	}
}

func sumOf(p []float64) (sum float64) {
	for _, x := range p {
		sum += x
	}
	return sum
}
