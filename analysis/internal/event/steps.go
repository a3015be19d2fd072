package event

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// This file holds a working alternative on the bins of a number that assumes no family of laws: the masses of both
// worlds together as they were in the past, divided by ratios that are constant over stretches of bins. Every edge
// between bins ends a stretch with probability stepRate, the part of D0 in each stretch has the law Beta(1/2, 1/2), and
// the average over all ways to cut the bins into stretches, weighted by how likely each makes the past, is computed
// exactly (Fearnhead 2006). Ratios that are steep, or jump where the support of one world ends, cost it no more than
// others.

const (
	stepRate   = .15
	leastSteps = 24 // pairs before which the fitted laws stand alone
)

// stepLaws returns the alternative, and the log-likelihood of the worlds of the past numbers given their bins under it.
func stepLaws(t *Table) (l Laws, evidence float64) {
	k := t.Numeric
	stretch := make([]float64, k*(k+1)) // of bins i to j-1: the log-likelihood with what the prior says of their edges
	end, stay := math.Log(stepRate), math.Log1p(-stepRate)
	for i := range k {
		k0, k1, l := int32(0), int32(0), 0.0
		for j := i + 1; j <= k; j++ {
			if b0, b1 := t.Before[0][j-1], t.Before[1][j-1]; b0|b1 != 0 {
				k0, k1 = k0+b0, k1+b1
				l = eprocess.KrichevskyTrofimov(k0, k1)
			}
			s := l + float64(j-i-1)*stay
			if j < k {
				s += end
			}
			stretch[i*(k+1)+j] = s
		}
	}
	first, last := make([]float64, k+1), make([]float64, k+1) // of the bins before an edge, and of those behind it
	var terms [bins.MaxBins]float64
	for j := 1; j <= k; j++ {
		for i := range j {
			terms[i] = first[i] + stretch[i*(k+1)+j]
		}
		first[j] = eprocess.LogSumExp(terms[:j])
	}
	for i := k - 1; i >= 0; i-- {
		for j := i + 1; j <= k; j++ {
			terms[j-i-1] = stretch[i*(k+1)+j] + last[j]
		}
		last[i] = eprocess.LogSumExp(terms[:k-i])
	}
	evidence = first[k]
	part := make([]float64, k) // of D0 in each bin
	for i := range k {
		k0, k1 := int32(0), int32(0)
		for j := i + 1; j <= k; j++ {
			k0, k1 = k0+t.Before[0][j-1], k1+t.Before[1][j-1]
			p := math.Exp(first[i]+stretch[i*(k+1)+j]+last[j]-evidence) * (float64(k0) + .5) / (float64(k0+k1) + 1)
			if !(p > 1e-9) {
				continue
			}
			for b := i; b < j; b++ {
				part[b] += p
			}
		}
	}
	return t.Divided(func(b int) float64 {
		if b < k {
			return min(max(part[b], 1e-9), 1-1e-9)
		}
		return t.shrunkPart(b)
	}), evidence
}

// worldsGiven is the log-likelihood of the worlds of past numbers given their bins, under laws; misfit says whether
// they fit worse than laws that are right do in five of six cases, by their chi-square.
func (l *Laws) worldsGiven(t *Table) (e float64, misfit bool) {
	square, bins := 0.0, 0.0
	for b := range t.Numeric {
		k0, k1 := float64(t.Before[0][b]), float64(t.Before[1][b])
		if k0+k1 == 0 {
			continue
		}
		p := l[0][b] / (l[0][b] + l[1][b])
		if k0 > 0 {
			e += k0 * max(math.Log(p), eprocess.Ruin)
		}
		if k1 > 0 {
			e += k1 * max(math.Log1p(-p), eprocess.Ruin)
		}
		d := k0 - (k0+k1)*p
		square += d * d / max((k0+k1)*p*(1-p), 1e-3)
		bins++
	}
	return e, square > bins+math.Sqrt(2*bins)
}

// MixSteps averages fitted laws with the alternative by stretches, weighted by how well each separates the worlds in
// the past.
func (l *Laws) MixSteps(t *Table) {
	if t.Pairs < leastSteps {
		return
	}
	e, misfit := l.worldsGiven(t)
	if !misfit {
		return
	}
	steps, evidence := stepLaws(t)
	part := 1 / (1 + math.Exp(e-evidence))
	if !(part > 1e-3) {
		return
	}
	for w := range l {
		for b := range l[w] {
			l[w][b] += part * (steps[w][b] - l[w][b])
		}
	}
}
