package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/lawfit"
)

// lawScore is the value of the only slot, bin by bin, against laws fitted to the past.
var lawScore = &kind{
	name: "value", make: func(int) statistic { return new(law) }, where: singleValue,
	single: .5, texts: .4, views: []event.View{event.Ascending}, prior: lawPrior, event: NumberEvent, column: true,
}

type law struct {
	value
	ranks [2]bins.Ranked
}

// learn fits the laws of a single value. There is no bet before both worlds have numbers that vary.
func (m *law) learn(a *Audit, s *series, _ *book.Epoch) {
	s.table = nil
	if len(a.slots) != 1 || a.slots[0].shared {
		return
	}
	past := a.slots[0].past
	if t := a.slots[0].table; a.ofKind(fittedScore) == nil {
		if a.pairs < 16 || t == nil || t.HasNumbers() {
			return
		}
		s.binner, s.learned = a.slots[0].binner, a.pairs
		s.table = t.WithPast()
		l := event.ShrunkLaws(t)
		s.table.Laws = &l
		return
	}
	var spreads [2]lawfit.Spread
	for w := range past {
		m.ranks[w].Update(past[w], a.stride, &a.scratch)
		var ok bool
		if spreads[w], ok = lawfit.SpreadOf(m.ranks[w].Values); !ok {
			return
		}
	}
	fitted := lawfit.Fit(spreads, [2][]float64{m.ranks[0].Values, m.ranks[1].Values})
	s.binner = bins.Binner{}
	s.binner.LearnCategories(past, &a.scratch)
	s.binner.Edges = fitted.Edges()
	s.learned = a.pairs
	s.table = event.NewTable(s.binner.Numeric(), s.binner.Bins())
	s.table.Pairs = len(past[0])
	for w, codes := range past {
		s.binner.CountNumbers(m.ranks[w].Values, s.table.Before[w])
		for _, c := range codes {
			if !code.IsNumber(c) {
				s.table.Before[w][s.binner.Bin(c)]++
			}
		}
	}
	l, ok := fitted.OnBins(&s.binner, s.table)
	if !ok {
		s.table = nil
		return
	}
	s.table.Laws = &l
}
