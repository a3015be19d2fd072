package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// bet is what one view of one score stakes in one block against one null.
type bet struct {
	null    eprocess.Null
	mix     eprocess.Mixture
	events  event.Events
	factors []eprocess.Factors // per component
	odds    []float64          // per world and bin, where every bin is bet on
}

// place learns the events of a view from the past of a table, and what every component stakes on them.
func (b *bet) place(h eprocess.Null, en entry, s *stake, v int, k *book) {
	b.null, b.mix = h, s.mix
	b.factors = b.factors[:0]
	t := en.table
	switch {
	case t.Paired != nil:
		b.events = t.Paired.Events
		return
	case t.Laws != nil:
		b.odds = slices.Grow(b.odds[:0], 2*t.Bins())[:2*t.Bins()]
		b.events = t.Laws.Place(h, b.odds)
		return
	case t.Fixed != nil:
		b.events = *t.Fixed
	default:
		view := s.views[v]
		if !t.HasNumbers() {
			view = event.Sorted
		}
		k.order = event.OrderOf(t, view, k.order)
		b.events = event.Choose(h, t, view, k.order)
	}
	if !b.events.Live[eprocess.TowardD0] && !b.events.Live[eprocess.TowardD1] {
		for range s.mix {
			b.factors = append(b.factors, eprocess.Factors{})
		}
		return
	}
	p := b.events.Estimate(t.Before[0])
	q := b.events.Estimate(t.Before[1])
	for _, c := range s.mix {
		b.factors = append(b.factors, c.FactorsOf(h, p, q, b.events.Live))
	}
}

// most writes the most that a pair adds to each component, 0 for less.
func (b *bet) most(t *event.Table, dst []float64) {
	for i := range dst {
		switch {
		case t.Paired != nil:
			dst[i] = t.Paired.Most(b.null, b.mix[i])
		case t.Laws != nil:
			k := len(b.odds) / 2
			dst[i] = max(0, slices.Max(b.odds[:k])+slices.Max(b.odds[k:]))
		default:
			f := &b.factors[i]
			dst[i] = max(0, slices.Max(f[0][:])+slices.Max(f[1][:]))
		}
	}
}
