package score

import (
	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// exactScore is a result compared whole, by the exact bytes of its values: see package exact. It is bet on once
// questions show more than the claim allows.
var exactScore = &kind{
	name: "exact", make: func(int) statistic { return new(exactly) }, where: everyResult,
	single: .001, several: .001, lent: exactShare / (1 - exactShare), views: []event.View{event.Ascending}, prior: WholePrior,
	lopsided: true, looksBack: true, whole: true, chance: leastWhole,
	eventOf: func(s *Series, _ uint64) EventKind {
		switch m := s.statistic.(*exactly); {
		case m.digits:
			return DigitsEvent
		case m.form:
			return FormEvent
		}
		return ExactEvent
	},
	phrase: func(in *Input, _ *Event) withheld.Text { return in.exactWords() },
}

// exactShare is the part of all wealth that is lent to the score.
const exactShare = .12

// leastWhole is the squared studentised gap of both events in the past (searched) from which the score is bet on: the best
// of many questions has so much of what it shows by chance.
const leastWhole = 16

// IsExact reports whether the score compares results whole.
func (s *Series) IsExact() bool { return s.kind == exactScore }

type exactly struct {
	found  bool // it was bet on
	digits bool // the best one is about digits that a float64 may have left
	form   bool // it is about a part of a text or of what the server says
}

func (*exactly) score(r *Result) code.Code { return r.exact }

func (m *exactly) state(c *state.Codec) { c.All(&m.found, &m.digits, &m.form) }

// learnLent starts the next table, of about the latest half of the pairs.
func (m *exactly) learnLent(in *Input, s *Series) float64 {
	if !in.Exact.Found() {
		s.Table = nil
		return 0
	}
	m.digits = in.Exact.Fine()
	m.form, _ = in.Exact.Form()
	s.Binner = bins.Binner{Edges: exact.Edges}
	s.Table = event.NewTable(s.Binner.Numeric(), s.Binner.Bins())
	s.Table.Lopsided = true
	s.Table.Pairs = in.Exact.Past(&s.Table.Before)
	switch {
	case m.found:
		return 0
	case event.Strength(in.searched(), s.Table, &in.order) < leastWhole:
		s.Table = nil
		return 0
	}
	m.found = true
	return exactShare
}

func (*exactly) words(in *Input, _ *Series, _ uint64) withheld.Text {
	return withheld.Sprintf("an answer with %s that the other dataset has less often", in.exactWords())
}

// exactWords says which questions tell the worlds apart, without a value.
func (in *Input) exactWords() withheld.Text {
	what, column := in.Exact.Best()
	switch {
	case what == "":
		return withheld.Public("exact values")
	case column < 0 || column >= in.Reader.Width:
		return withheld.Public(what + " of the whole answer, or of what the server says beside it")
	}
	return withheld.Public(what + " of column " + in.Reader.ColumnName(column))
}
