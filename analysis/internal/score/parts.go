package score

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Limits of the search for the parts of a joint score.
const (
	maxParts   = 3
	partsPast  = 1024    // kept pairs that are used
	partsCells = 1 << 18 // pairs times slots
)

// Part is a column or a group and its estimated share of the evidence of a joint score.
type Part struct {
	Where withheld.Text
	Share float64
}

// parts returns the columns and groups that carry most of a joint score, nil for other scores. The share of a slot is
// its part of the difference between the mean scores of both worlds; a score that is no sum over slots is represented
// by naive Bayes.
func (in *Input) parts(s *Series) []Part {
	if s.kind.event != JointEvent || len(in.Slots) < 2 {
		return nil
	}
	var weights []float64
	if m, ok := s.statistic.(weigher); ok {
		weights = m.weights(in)
	} else {
		weights = in.lensGaps()
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
		if len(parts) > 0 && share < parts[0].Share/4 {
			break
		}
		parts = append(parts, Part{Where: in.Place(i), Share: share})
	}
	return parts
}

// sampled returns the kept pairs that parts are computed from.
func (in *Input) sampled() Portion {
	return PortionOf(len(in.Slots[0].Past[0]), min(partsPast, max(64, partsCells/len(in.Slots))))
}

// lensGaps returns by how much the term of each slot in naive Bayes differs between the worlds on average.
func (in *Input) lensGaps() []float64 {
	gaps := make([]float64, len(in.Slots))
	s := in.specials.ofKind(laplaceScore)
	if s == nil {
		return gaps
	}
	p := in.sampled()
	lenses := s.statistic.(laplaceJoint).full
	for i := range lenses[:min(len(lenses), len(in.Slots))] {
		gaps[i] = max(0, in.gap(i, p, func(c code.Code) float64 { x, _ := lenses[i].terms(c); return x }))
	}
	return gaps
}

// gap is the difference between the means of a function of a slot's codes on D0 and on D1.
func (in *Input) gap(slot int, p Portion, of func(code.Code) float64) float64 {
	d := 0.0
	for w, sign := range [2]float64{1, -1} {
		for k := range p.N {
			d += sign * of(in.Slots[slot].Past[w][p.At(k)])
		}
	}
	return d / float64(max(p.N, 1))
}
