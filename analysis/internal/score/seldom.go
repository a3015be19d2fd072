package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// This file holds the bet on engines whose results nearly all have one shape: on another number of rows, an error or
// other columns in a few of the trials, in one world alone.

// seldomScore is another number of rows, an error or another shape in few of the trials.
var seldomScore = &kind{
	name: "rows", make: func(int) statistic { return seldom{} }, where: everyResult,
	single: .001, several: .001, lent: seldomShare / (1 - seldomShare), views: []event.View{event.Ascending}, prior: LawPrior, event: RowsEvent,
	phrase: rowsPhrase,
}

type seldom struct{ rowCount }

// What the bet requires and receives.
const (
	leastSeldom = .3 // nats that it would have gained in the past
	seldomShare = .8 // of all wealth, lent once it would have gained as much
)

// learnLent starts the next table, and places the bet while at least 1 - event.RareOutcome of the trials of both worlds
// have the same number of rows, or the same error, and the others are in one world alone. Otherwise nothing is bet.
func (seldom) learnLent(in *Input, s *Series) float64 {
	live := s.Table != nil && s.Table.Laws != nil
	if s.Table != nil && in.pairs < 2*s.learned {
		s.carry()
	} else {
		s.learnSeldom(in.specials.ofKind(rowsScore), in.pairs)
	}
	t, most := s.Table, int32(0)
	for b := range t.Before[0] {
		if len(s.Binner.Edges) == 0 || b != 0 && b != t.Numeric-1 { // one number of rows, or one category
			most = max(most, t.Before[0][b]+t.Before[1][b])
		}
	}
	if in.pairs < bins.LeastCommon || float64(most) < 2*(1-event.RareOutcome)*float64(t.Pairs) {
		return 0
	}
	least := leastSeldom
	if live {
		least = 0
	}
	l, odds := event.ShrunkLaws(t), make([]float64, 2*t.Bins())
	if l.Place(in.null, odds); event.GainOf(odds, t.Before) <= least {
		return 0
	}
	t.Laws = &l
	if live {
		return 0
	}
	return seldomShare
}

// learnSeldom sets the bins from the past of the number of rows: the first number, those below, those above, and
// categories.
func (s *Series) learnSeldom(rows *Series, pairs int) {
	s.Binner = bins.Binner{Categories: rows.Binner.Categories}
	for _, c := range rows.Past[0] {
		if code.IsNumber(c) {
			s.Binner.Edges = []float64{c, math.Nextafter(c, math.Inf(1))}
			break
		}
	}
	s.Table, s.learned = event.NewTable(s.Binner.Numeric(), s.Binner.Bins()), pairs
	s.Past = rows.Past
	s.recount()
	s.Past = [2][]code.Code{}
}
