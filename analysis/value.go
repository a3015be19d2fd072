package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// slotScore is the value of one measure of one group key.
var slotScore = &kind{
	name: "value", make: func(slot int) statistic { return value{slot: slot} },
	single: .279, several: .324, keeps: true, event: NumberEvent, column: true,
}

// value scores the value of a slot by itself.
type value struct {
	memoryless
	slot int
}

func (v value) score(r *result) code.Code { return r.at(v.slot) }

// learn sets the bins of a slot, or the events where its worlds share their noise.
func (v value) learn(a *Audit, s *series, e *book.Epoch) {
	switch {
	case s.shared && s.table != nil && s.table.Paired == nil:
		a.separate(s, e)
	case s.shared:
		a.turnPaired(s)
	default:
		s.turn(a.pairs, a.slotBins(), &a.scratch)
	}
	s.independence.Renew(s.past, &a.scratch)
	a.reader.Words[s.slot%a.reader.Cells()].Want(s.binner.Categories)
}

func (v value) words(a *Audit, s *series, set uint64) withheld.Text {
	var where []withheld.Text
	r := a.reader
	if r.Keyed {
		where = append(where, r.GroupWords(s.slot/r.Cells()))
	}
	if s.binner.IsPresence(set) {
		if len(where) == 0 {
			return withheld.Public("a row present")
		}
		return withheld.Sprintf("%s present", withheld.Join(where, ", "))
	}
	words := a.binWords(s, set, nounOf(r.ValueWords(s.slot%r.Cells())))
	if len(r.Measures) > 0 {
		where = append(where, withheld.Public("column "+r.MeasureName(s.slot%r.Cells())+":"))
	} else if r.Keyed {
		return withheld.Sprintf("%s, %s", where[0], words)
	}
	if len(where) == 0 {
		return words
	}
	return withheld.Sprintf("%s %s", withheld.Join(where, ", "), words)
}
