package book

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// Bet is what one view of one score stakes in one block against one null.
type Bet struct {
	null    eprocess.Null
	mix     eprocess.Mixture
	events  event.Events
	Factors []eprocess.Factors // per component
	Odds    []float64          // per world and bin, where every bin is bet on
}

// place learns the events of a view from the past of a table, and what every component stakes on them.
func (b *Bet) place(h eprocess.Null, en Entry, s *stake, v int, k *Book) {
	b.null, b.mix = h, s.mix
	b.Factors = b.Factors[:0]
	t := en.Table
	switch {
	case t.Paired != nil:
		b.events = t.Paired.Events
		return
	case t.Laws != nil:
		b.Odds = slices.Grow(b.Odds[:0], 2*t.Bins())[:2*t.Bins()]
		b.events = t.Laws.Place(h, b.Odds)
		return
	case t.Fixed != nil:
		b.events = *t.Fixed
	default:
		view := s.views[v]
		if !t.HasNumbers() {
			view = event.Sorted
		}
		k.Order = event.OrderOf(t, view, k.Order)
		b.events = event.Choose(h, t, view, k.Order)
	}
	if !b.events.Live[eprocess.TowardD0] && !b.events.Live[eprocess.TowardD1] {
		for range s.mix {
			b.Factors = append(b.Factors, eprocess.Factors{})
		}
		return
	}
	p := b.events.Estimate(t.Before[0])
	q := b.events.Estimate(t.Before[1])
	for _, c := range s.mix {
		b.Factors = append(b.Factors, c.FactorsOf(h, p, q, b.events.Live))
	}
}

// most writes the most that a pair adds to each component, 0 for less.
func (b *Bet) most(t *event.Table, dst []float64) {
	for i := range dst {
		switch {
		case t.Paired != nil:
			dst[i] = t.Paired.Most(b.null, b.mix[i])
		case t.Laws != nil:
			k := len(b.Odds) / 2
			dst[i] = max(0, slices.Max(b.Odds[:k])+slices.Max(b.Odds[k:]))
		default:
			f := &b.Factors[i]
			dst[i] = max(0, slices.Max(f[0][:])+slices.Max(f[1][:]))
		}
	}
}
