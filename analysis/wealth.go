package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// bet is what one view of one score stakes in one block against one null.
type bet struct {
	null    eprocess.Null
	mix     eprocess.Mixture
	events  events
	factors []eprocess.Factors // per component
	odds    []float64          // per world and bin, where every bin is bet on
}

// place learns the events of a view from the past of a table, and what every component stakes on them.
func (b *bet) place(h eprocess.Null, en entry, s *stake, v int, k *book) {
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
	if !b.events.live[eprocess.TowardD0] && !b.events.live[eprocess.TowardD1] {
		for range s.mix {
			b.factors = append(b.factors, eprocess.Factors{})
		}
		return
	}
	p := b.events.estimate(t.before[0])
	q := b.events.estimate(t.before[1])
	for _, c := range s.mix {
		b.factors = append(b.factors, c.FactorsOf(h, p, q, b.events.live))
	}
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
