package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// Limits of the search for the parts of a joint score.
const (
	maxParts   = 3
	partsPast  = 1024    // kept pairs that are used
	partsCells = 1 << 18 // pairs times slots
)

// parts returns the columns and groups that carry most of a joint score, nil for other scores. The share of a slot is its part of
// the difference between the mean scores of both worlds; a score that is no sum over slots is represented by naive Bayes.
func (a *Audit) parts(s *series) []Part {
	if s == nil || s.kind.event != JointEvent || len(a.slots) < 2 {
		return nil
	}
	var weights []float64
	switch m := s.statistic.(type) {
	case *contrast:
		weights = make([]float64, len(a.slots))
		for _, t := range m.terms[:min(2, len(m.terms))] {
			weights[t.slot] = 1
		}
	case *discriminant:
		weights = a.termGaps(m.terms)
	default:
		weights = a.lensGaps()
	}
	sum := 0.0
	order := make([]int, len(weights))
	for i, w := range weights {
		order[i] = i
		sum += w
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(weights[j], weights[i]) })
	var parts []Part
	for _, i := range order[:min(maxParts, len(order))] {
		share := weights[i] / sum
		if len(parts) > 0 && share < float64(parts[0].Share)/4 {
			break
		}
		parts = append(parts, Part{Where: a.place(i), Share: Float(share)})
	}
	return parts
}

// sampled returns the kept pairs that parts are computed from.
func (a *Audit) sampled() portion {
	return newPortion(len(a.slots[0].past[0]), min(partsPast, max(64, partsCells/len(a.slots))))
}

// lensGaps returns by how much the term of each slot in naive Bayes differs between the worlds on average.
func (a *Audit) lensGaps() []float64 {
	gaps := make([]float64, len(a.slots))
	s := a.ofKind(laplaceScore)
	if s == nil {
		return gaps
	}
	p := a.sampled()
	lenses := s.statistic.(laplaceJoint).full
	for i := range lenses[:min(len(lenses), len(a.slots))] {
		gaps[i] = max(0, a.gap(i, p, func(c code.Code) float64 { x, _ := lenses[i].terms(c); return x }))
	}
	return gaps
}

// termGaps does the same for the terms of a combination.
func (a *Audit) termGaps(terms []term) []float64 {
	gaps := make([]float64, len(a.slots))
	p := a.sampled()
	for _, t := range terms {
		gaps[t.slot] += a.gap(t.slot, p, func(c code.Code) float64 {
			if !code.IsNumber(c) {
				return 0
			}
			return t.weight * min(max(c-t.center, -t.reach), t.reach)
		})
	}
	for i := range gaps {
		gaps[i] = math.Abs(gaps[i])
	}
	return gaps
}

// gap is the difference between the means of a function of a slot's codes on D0 and on D1.
func (a *Audit) gap(slot int, p portion, of func(code.Code) float64) float64 {
	d := 0.0
	for w, sign := range [2]float64{1, -1} {
		for k := range p.n {
			d += sign * of(a.slots[slot].past[w][p.at(k)])
		}
	}
	return d / float64(max(p.n, 1))
}
