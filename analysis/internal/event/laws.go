package event

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
)

// Laws are a working alternative on bins: the probabilities of every bin on D0 and on D1, each summing to 1. They
// follow from the past alone.
type Laws [2][]float64

// Place writes the log factors of the bet on every bin to odds (those on D0, then those on D1), and returns the events
// that it is made of: the bins whose ratio is beyond what the null allows.
func (l *Laws) Place(h eprocess.Null, odds []float64) (e Events) {
	k := len(l[0])
	h.BinFactors(l[0], l[1], odds[:k], odds[k:])
	for i := range k {
		switch p, q := l[0][i], l[1][i]; {
		case p > h.Ratio*q:
			e.Toward[eprocess.TowardD0] |= 1 << i
		case q > h.Ratio*p:
			e.Toward[eprocess.TowardD1] |= 1 << i
		}
	}
	e.Live = [3]bool{e.Toward[eprocess.TowardD0] != 0, false, e.Toward[eprocess.TowardD1] != 0}
	return e
}

// GainOf returns what log factors per bin make of counts.
func GainOf(odds []float64, counts [2][]int32) (g float64) {
	k := len(counts[0])
	for i := range k {
		g += float64(counts[0][i])*odds[i] + float64(counts[1][i])*odds[k+i]
	}
	return g
}

// RareOutcome is the part of the trials up to which an outcome that only one world has shown is taken for one that the
// other never has: its part of D0 has the prior Beta(1/4, 1/4).
const RareOutcome = .05

// ShrunkLaws is a working alternative on categories: their masses in both worlds together as they were in the past,
// divided by ratios that are drawn to 1 as far as they may be chance, but for rare outcomes of one world. A part
// 1/(n+1) of both laws is the same.
func ShrunkLaws(t *Table) Laws {
	n := float64(t.Pairs)
	return t.Divided(func(b int) float64 {
		k0, k1 := float64(t.Before[0][b]), float64(t.Before[1][b])
		if seen := k0 + k1; min(k0, k1) == 0 && seen >= 2 && seen <= RareOutcome*n {
			return (k0 + .25) / (seen + .5)
		}
		return t.shrunkPart(b)
	})
}

// shrunkPart is the part of D0 in a bin, drawn to a half as far as its difference from that may be chance.
func (t *Table) shrunkPart(b int) float64 {
	n := float64(t.Pairs)
	return 1 / (1 + math.Exp(-fit.ShrunkLogRatio(float64(t.Before[0][b]), float64(t.Before[1][b]), n, n)))
}

// NewLaws returns laws on the bins of a table, all zero.
func NewLaws(t *Table) Laws {
	k := t.Bins()
	both := make([]float64, 2*k)
	return Laws{both[:k:k], both[k:]}
}

// mass is the smoothed share of a bin in the past of both worlds together.
func (t *Table) mass(b int) float64 {
	return (float64(t.Before[0][b]+t.Before[1][b]) + .5) / (2*float64(t.Pairs) + .5*float64(t.Bins()))
}

// Divided returns the masses of both worlds together, divided between the worlds by the part of D0 in each bin. A part
// 1/(n+1) of both laws is the same.
func (t *Table) Divided(part func(b int) float64) Laws {
	l := NewLaws(t)
	for b := range t.Bins() {
		p, mass := part(b), t.mass(b)
		l[0][b], l[1][b] = mass*p, mass*(1-p)
	}
	l.ShareMasses(t, [2]float64{SumOf(l[0]), SumOf(l[1])})
	return l
}

// ShareMasses scales both laws and makes a part 1/(n+1) of them the same, so that no single outcome can cost much more
// than a factor n.
func (l *Laws) ShareMasses(t *Table, sums [2]float64) {
	n := float64(t.Pairs)
	for w := range l {
		for b := range l[w] {
			l[w][b] = (n*l[w][b]/sums[w] + t.mass(b)) / (n + 1)
		}
	}
}

// SumOf returns the sum of numbers.
func SumOf(p []float64) (sum float64) {
	for _, x := range p {
		sum += x
	}
	return sum
}
