package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// found is the event that gained most, and its estimated likelihood ratio.
type found struct {
	event  *Event
	ratio  float64
	series *series // the score, nil without an event
	set    uint64  // the bins of the event
}

// strongest returns the event of the view that holds most of the wealth against the claim, NaN and nil before anything was
// learned.
func (a *Audit) strongest() found {
	best := book.Standing{Wealth: math.Inf(-1)}
	for st := range a.lead.Standings(&a.book, a.epoch) {
		if st.Wealth > best.Wealth && atStake(st.Events) {
			best = st
		}
	}
	if best.Events == nil {
		return found{ratio: math.NaN()}
	}
	return a.describe(a.named(best.Entry.Score), best.Entry.Table, best.Events)
}

// atStake reports whether anything is bet on events.
func atStake(e *event.Events) bool {
	return e.Toward[eprocess.TowardD0]|e.Toward[eprocess.TowardD1] != 0
}

// named returns the series of a score that has wealth, nil for none.
func (a *Audit) named(id book.ScoreID) *series {
	for _, list := range [2][]*series{a.specials, a.slots} {
		for _, s := range list {
			if s.staked && s.id == id {
				return s
			}
		}
	}
	return nil
}

// describe returns the one of a view's two events with the greater likelihood ratio, with its description.
func (a *Audit) describe(s *series, t *event.Table, e *event.Events) found {
	side, ratio, p, q := eprocess.TowardD0, 0.0, 0.0, 0.0
	for _, d := range [2]int{eprocess.TowardD0, eprocess.TowardD1} {
		if e.Toward[d] == 0 {
			continue
		}
		x, y := t.Frequency(e, d)
		if d == eprocess.TowardD1 {
			x, y = y, x
		}
		if r := x / y; r > ratio {
			side, ratio, p, q = d, r, x, y
		}
	}
	direction, other := "D0", "D1"
	ev := &Event{Score: s.kind.name, D0: Float(p), D1: Float(q)}
	if side == eprocess.TowardD1 {
		direction, other = "D1", "D0"
		ev.D0, ev.D1 = ev.D1, ev.D0
	}
	set := e.Toward[side]
	ev.Direction, ev.Kind, ev.Tail, ev.Column = direction, s.eventKind(set), tailOf(&s.binner, set), a.columnOf(s)
	if s.kind == slotScore {
		ev.Partition = a.reader.GroupName(s.slot / a.reader.Cells())
	}
	how := "more likely on " + direction
	if n := float64(t.Pairs) + float64(sum(t.During[0])); q*(n+1) <= .5 && p*(n+1) > 1 && s.plain(set) {
		how = "only on " + direction + ", never on " + other
	}
	ev.Description = withheld.Sprintf("%s %s", s.statistic.words(a, s, set), how)
	return found{ev, ratio, s, set}
}

// plain reports whether an event is not a part of a range of numbers.
func (s *series) plain(set uint64) bool {
	numbers := uint64(1)<<s.binner.Numeric() - 1
	return s.kind != slotScore && s.kind.keeps ||
		set&numbers == 0 || set&numbers == numbers
}

func sum(counts []int32) (n int) {
	for _, c := range counts {
		n += int(c)
	}
	return n
}
