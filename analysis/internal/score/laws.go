package score

import (
	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/lawfit"
)

// lawScore is the value of the only slot, bin by bin, against laws fitted to the past.
var lawScore = &kind{
	name: "value", make: func(int) statistic { return new(law) }, where: singleValue,
	single: .5, texts: .4, views: []event.View{event.Ascending}, prior: LawPrior, event: NumberEvent, column: true,
}

type law struct {
	value
	ranks [2]bins.Ranked
}

// learn fits the laws of a single value. There is no bet before both worlds have numbers that vary.
func (m *law) learn(in *Input, s *Series) {
	s.Table = nil
	if len(in.Slots) != 1 || in.Slots[0].Shared {
		return
	}
	past := in.Slots[0].Past
	if t := in.Slots[0].Table; !in.specials.isNumber() {
		if in.pairs < 16 || t == nil || t.HasNumbers() {
			return
		}
		s.Binner, s.learned = in.Slots[0].Binner, in.pairs
		s.Table = t.WithPast()
		l := event.ShrunkLaws(t)
		s.Table.Laws = &l
		return
	}
	var spreads [2]lawfit.Spread
	for w := range past {
		m.ranks[w].Update(past[w], in.Stride, &in.scratch)
		var ok bool
		if spreads[w], ok = lawfit.SpreadOf(m.ranks[w].Values); !ok {
			return
		}
	}
	fitted := lawfit.Fit(spreads, [2][]float64{m.ranks[0].Values, m.ranks[1].Values})
	s.Binner = bins.Binner{}
	s.Binner.LearnCategories(past, &in.scratch)
	s.Binner.Edges = fitted.Edges()
	s.learned = in.pairs
	s.Table = event.NewTable(s.Binner.Numeric(), s.Binner.Bins())
	s.Table.Pairs = len(past[0])
	for w, codes := range past {
		s.Binner.CountNumbers(m.ranks[w].Values, s.Table.Before[w])
		for _, c := range codes {
			if !code.IsNumber(c) {
				s.Table.Before[w][s.Binner.Bin(c)]++
			}
		}
	}
	l, ok := fitted.OnBins(&s.Binner, s.Table)
	if !ok {
		s.Table = nil
		return
	}
	s.Table.Laws = &l
}

func (m *law) size() int { return 8 * (cap(m.ranks[0].Values) + cap(m.ranks[1].Values)) }
