package score

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// aggregateScore is a function of one column over all groups of a result. Each group may have its noise while the
// largest one is exact, or always is that of the group with the largest true value.
var aggregateScore = &kind{
	name: "aggregate", make: func(int) statistic { return new(aggregate) }, where: severalSlots, several: .005,
	views: []event.View{event.Ascending, event.Sorted}, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5},
	event: JointEvent, whole: true, column: true,
	phrase: func(in *Input, e *Event) withheld.Text {
		return e.Series.statistic.(*aggregate).name(in)
	},
}

// aggregate scores a result by an aggregate of one column.
type aggregate struct {
	column int // of the reader's measures
	which  aggregation
}

type aggregation uint8

const (
	smallest aggregation = iota
	largest
	rangeOfGroups
	groupOfSmallest
	groupOfLargest
	distinctValues
	aggregations // their number
)

// Limits of the score.
const (
	leastAggregated = 3 // groups
	aggregatedPast  = 256
	aggregatedCells = 1 << 16 // pairs times slots
	leastAggregate  = 16      // squared studentised gap of both events in the past: chance makes 11 over all aggregates
)

// all returns the aggregates of a column, that of distinct values if asked for: absent where a result has no number.
func (m *aggregate) all(at func(slot int) code.Code, slots, cells int, distinct bool) (scores [aggregations]code.Code) {
	low, high, atLow, atHigh := math.Inf(1), math.Inf(-1), 0, 0
	var seen []float64
	for slot, group := m.column, 0; slot < slots; slot, group = slot+cells, group+1 {
		c := at(slot)
		if !code.IsNumber(c) {
			continue
		}
		if distinct {
			seen = append(seen, c)
		}
		if c < low {
			low, atLow = c, group
		}
		if c > high {
			high, atHigh = c, group
		}
	}
	if low > high {
		for i := range scores {
			scores[i] = code.Category(code.Absent)
		}
		return scores
	}
	slices.Sort(seen)
	return [aggregations]code.Code{
		code.Number(low), code.Number(high), code.Number(high - low),
		code.Category(code.FirstText + atLow), code.Category(code.FirstText + atHigh), code.Code(len(slices.Compact(seen))),
	}
}

func (m *aggregate) score(r *Result) code.Code {
	return m.all(r.at, len(r.Codes), max(r.cells, 1), m.which == distinctValues)[m.which]
}

func (m *aggregate) fit(in *Input, s *Series) (scores [2][]code.Code, differ bool) {
	cells := in.Reader.Cells()
	slots := in.Slots
	if len(slots) < leastAggregated*cells {
		return scores, false
	}
	p := PortionOf(len(slots[0].Past[0]), min(aggregatedPast, max(64, aggregatedCells/len(slots))))
	top, best := float64(leastAggregate), *m
	var stay []int
	if s.Table != nil {
		stay = []int{m.column}
	}
	for _, column := range in.inTurn(cells, mostAggregated, 1, stay...) {
		var all [aggregations][2][]code.Code
		m.column = column
		if in.sharesNoise(slots, column, cells) {
			continue
		}
		for w := range 2 {
			for k := range p.N {
				for i, x := range m.all(func(slot int) code.Code { return slots[slot].Past[w][p.At(k)] }, len(slots), cells, true) {
					all[i][w] = append(all[i][w], x)
				}
			}
		}
		for i := range all {
			t := Series{kind: aggregateScore, Past: all[i]}
			t.relearn(p.N, maxSpecialBins, &in.scratch)
			if z2 := event.Strength(in.searched(), t.Table, &in.order); z2 > top {
				top, differ, best, scores = z2, true, aggregate{column, aggregation(i)}, all[i]
			}
		}
	}
	*m, s.Slot = best, best.column
	return scores, differ
}

// sharesNoise reports whether the worlds share the noise of a group in a column.
func (in *Input) sharesNoise(slots []*Series, column, cells int) bool {
	for slot := column; slot < len(slots); slot += cells {
		if slots[slot].Shared {
			return true
		}
	}
	return false
}

// weights: no group has a separate part.
func (m *aggregate) weights(in *Input) []float64 { return make([]float64, len(in.Slots)) }

// name says what is scored.
func (m *aggregate) name(in *Input) withheld.Text {
	of := [aggregations]string{
		"the smallest value of all groups", "the largest value of all groups", "the distance of the smallest and the largest value of all groups",
		"which group has the smallest value", "which group has the largest value", "the number of different values of all groups",
	}[m.which]
	if r := in.Reader; m.column < len(r.Measures) {
		of += ", column " + r.MeasureName(m.column)
	}
	return withheld.Public(of)
}

func (m *aggregate) words(in *Input, s *Series, set uint64) withheld.Text {
	if m.which == groupOfSmallest || m.which == groupOfLargest {
		return m.name(in)
	}
	return withheld.Sprintf("%s: %s", m.name(in), in.binWords(s, set, nounOf("value", "values")))
}

func (m *aggregate) state(c *state.Codec) {
	state.Num(c, &m.column)
	state.Num(c, &m.which)
	c.Check(m.which < aggregations && m.column >= 0 && m.column < max(c.Slots, 1))
}
