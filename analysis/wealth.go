package analysis

import (
	"math"
	"slices"
)

// bet is what one view of one score stakes in one block against one null.
type bet struct {
	null    null
	mix     mixture
	events  events
	factors []factors // per component
	odds    []float64 // per world and bin, where every bin is bet on
}

// place learns the events of a view from the past of a table, and what every component stakes on them.
func (b *bet) place(h null, en entry, s *stake, v int, k *book) {
	b.null, b.mix = h, s.mix
	b.factors = b.factors[:0]
	t := en.table
	switch {
	case t.paired != nil:
		b.events = t.paired.events
		return
	case t.laws != nil:
		b.odds = slices.Grow(b.odds[:0], 2*t.bins())[:2*t.bins()]
		b.events = t.laws.place(h, b.odds)
		return
	case t.fixed != nil:
		b.events = *t.fixed
	default:
		view := s.views[v]
		if !t.hasNumbers() {
			view = sorted
		}
		k.order = orderOf(t, view, k.order)
		b.events = chooseEvents(h, t, view, k.order)
	}
	if !b.events.live[towardD0] && !b.events.live[towardD1] {
		for range s.mix {
			b.factors = append(b.factors, factors{})
		}
		return
	}
	p := b.events.estimate(t.before[0])
	q := b.events.estimate(t.before[1])
	for _, c := range s.mix {
		b.factors = append(b.factors, c.factorsOf(h, p, q, b.events.live))
	}
}

// gain returns the log of what a component made of the counts of a block.
func (f *factors) gain(k0, k1 [3]int32) float64 {
	g := 0.0
	for c := range 3 {
		g += float64(k0[c])*f[0][c] + float64(k1[c])*f[1][c]
	}
	return g
}

// most writes the most that a pair adds to each component, 0 for less.
func (b *bet) most(t *table, dst []float64) {
	for i := range dst {
		switch {
		case t.paired != nil:
			dst[i] = t.paired.most(b.null, b.mix[i])
		case t.laws != nil:
			k := len(b.odds) / 2
			dst[i] = max(0, slices.Max(b.odds[:k])+slices.Max(b.odds[k:]))
		default:
			f := &b.factors[i]
			dst[i] = max(0, slices.Max(f[0][:])+slices.Max(f[1][:]))
		}
	}
}

// logSumExp returns ln(sum(exp(x))), minus infinity for none. What is not a number counts as no wealth: one place that went
// wrong does not hide what the others show.
func logSumExp(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		if d := v - top; d > -40 {
			sum += math.Exp(d)
		}
	}
	return top + math.Log(sum)
}

// logAdd returns ln(e^a + e^b). What is not a number counts as minus infinity.
func logAdd(a, b float64) float64 {
	if !(a >= b) { // or one is not a number
		a, b = b, a
	}
	if math.IsNaN(a) {
		a, b = b, a
	}
	if math.IsNaN(a) {
		return math.Inf(-1)
	}
	if !(b > math.Inf(-1)) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
