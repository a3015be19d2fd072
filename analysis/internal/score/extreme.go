package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// extremeScore is the greatest standardised value of a result.
var extremeScore = &kind{
	name: "joint_extreme", make: func(int) statistic { return new(extreme) }, where: severalSlots, several: .005,
	views: []event.View{event.Ascending}, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5}, event: JointEvent,
	phrase: func(in *Input, e *Event) withheld.Text {
		return withheld.Sprintf("an extreme value among %d columns and groups", len(in.Slots))
	},
}

// extreme scores a result by its most extreme value, in units of each slot's spread around its center. Where a random
// group leaks in every trial, each by itself shows a small part of it; the greatest value shows most of it in every
// trial.
type extreme struct {
	side    side
	centers []float64 // per slot
	scales  []float64 // per slot; 0 for one that is left out
}

// side says which value is the most extreme one.
type side uint8

const (
	greatestSide side = iota
	leastSide
	bothExtremes
	sideCount
)

// Limits of the score.
const (
	leastExtremeSlots = 3
	extremePast       = 1024
	extremeCells      = 1 << 17 // pairs times slots that are learned from
	extremeReach      = 1 << 10
	leastExtreme      = 12 // squared studentised gap of both events in the past, below which nothing is bet
)

// String returns the words for a side.
func (s side) String() string {
	return [...]string{"the greatest value", "the least value", "the value furthest from its center"}[s]
}

// of scores a result: the greatest standardised value, the least one with its sign changed, or the greatest distance. A
// result without numbers is absent.
func (m *extreme) of(at func(slot int) code.Code) code.Code {
	return m.all(at)[m.side]
}

// all returns the scores of all sides.
func (m *extreme) all(at func(slot int) code.Code) (scores [sideCount]code.Code) {
	most, least := math.Inf(-1), math.Inf(1)
	for slot, scale := range m.scales {
		if c := at(slot); scale > 0 && code.IsNumber(c) {
			z := (c - m.centers[slot]) / scale
			most, least = max(most, z), min(least, z)
		}
	}
	if most < least {
		return [sideCount]code.Code{code.Category(code.Absent), code.Category(code.Absent), code.Category(code.Absent)}
	}
	for i, z := range [sideCount]float64{most, -least, max(most, -least)} {
		scores[i] = boundedCode(z, extremeReach)
	}
	return scores
}

func (m *extreme) score(r *Result) code.Code { return m.of(r.at) }

func (m *extreme) words(in *Input, s *Series, set uint64) withheld.Text {
	return withheld.Sprintf("%s of %d partitions and columns, each in units of its spread: %s",
		withheld.Public(m.side.String()), len(m.centers), in.binWords(s, set, nounOf("value", "values")))
}

func (m *extreme) state(c *state.Codec) {
	state.Num(c, &m.side)
	c.All(&m.centers, &m.scales)
	c.Check(m.side < sideCount && len(m.centers) <= c.Slots && len(m.scales) == len(m.centers))
}

// fit chooses the side whose score has the strongest evidence against the claim in the past, and returns the past's
// scores. It reports whether the evidence is stronger than the choice of a side alone makes it.
func (m *extreme) fit(in *Input, _ *Series) (scores [2][]code.Code, differ bool) {
	slots := in.Slots
	p := PortionOf(len(slots[0].Past[0]), min(extremePast, max(256, extremeCells/len(slots))))
	*m = extreme{}
	some := 0
	for _, s := range slots {
		center, scale := s.standard()
		some += code.Bit(scale > 0)
		m.centers, m.scales = append(m.centers, center), append(m.scales, scale)
	}
	if some < leastExtremeSlots {
		return scores, false
	}
	var all [sideCount][2][]code.Code
	for w := range 2 {
		for i := range all {
			all[i][w] = make([]code.Code, p.N)
		}
		for k := range p.N {
			for i, x := range m.all(func(slot int) code.Code { return slots[slot].Past[w][p.At(k)] }) {
				all[i][w][k] = x
			}
		}
	}
	top := float64(leastExtreme)
	for i := range all {
		s := Series{kind: extremeScore, Past: all[i]}
		s.relearn(p.N, maxSpecialBins, &in.scratch)
		if z2 := event.Strength(in.null, s.Table, &in.order); z2 > top {
			top, differ, m.side, scores = z2, true, side(i), all[i]
		}
	}
	return scores, differ
}
