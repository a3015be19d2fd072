package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// Limits of what a diagnosis is made from.
const (
	diagnosedSlots = 64
	diagnosedPast  = 4096    // kept pairs
	diagnosedCells = 1 << 15 // pairs times slots
)

// diagnosed returns what the causes of a violation are found from: the kept pairs of the slot of the event and of the
// first others.
func (o *observations) diagnosed(c Claim, q Query, best *found) diagnosis.Evidence {
	e := diagnosis.Evidence{
		Epsilon: c.Epsilon, Delta: c.Delta, Bound: q.Bound, Average: q.Average, Constant: o.monotony.constant(),
		Failures: o.failures, Trials: o.pairs,
	}
	for w := range 2 {
		e.Repeated = e.Repeated || o.monotony.broken[w] && o.repeatsTooOften(w)
	}
	if best.event != nil {
		e.Score, e.Kind, e.Tail = best.event.Score, string(best.event.Kind), string(best.event.Tail)
	}
	if o.scores.Reader == nil || len(o.scores.Slots) == 0 {
		return e
	}
	e.Keyed, e.Columns, e.Groups = o.scores.Reader.Keyed, o.scores.Reader.Cells(), len(o.scores.Reader.Labels)
	var chosen []int
	if s := best.series; s != nil && s.IsSlot() && s.Slot >= diagnosedSlots {
		chosen = append(chosen, s.Slot)
	}
	for i := range o.scores.Slots[:min(len(o.scores.Slots), diagnosedSlots-len(chosen))] {
		chosen = append(chosen, i)
	}
	p := score.PortionOf(len(o.scores.Slots[0].Past[0]), min(diagnosedPast, max(256, diagnosedCells/len(chosen))))
	for _, i := range chosen {
		e.Slots = append(e.Slots, o.diagnosedSlot(i, p))
	}
	return e
}

// diagnosedSlot returns the outcomes of one slot.
func (o *observations) diagnosedSlot(slot int, p score.Portion) diagnosis.Slot {
	s := o.scores.Slots[slot]
	d := diagnosis.Slot{Where: o.scores.Place(slot), Group: slot / o.scores.Reader.Cells(), Column: slot % o.scores.Reader.Cells(), Discrete: true, Shared: s.Shared}
	texts := map[code.Label]int{}
	for w := range s.Past {
		d.Numbers[w] = make([]float64, p.N)
		for k := range p.N {
			c := s.Past[w][p.At(k)]
			d.Numbers[w][k] = c
			if code.IsNumber(c) {
				d.Discrete = d.Discrete && c == math.Trunc(c)
				continue
			}
			switch code.CategoryOf(c) {
			case code.NotANumber, code.PlusInfinity, code.MinusInfinity:
				d.NotFinite[w]++
				continue
			}
			switch l := code.LabelOf(c); score.KindOfCategory(int(l.Category())) {
			case AbsenceEvent:
				d.Absent[w]++
			case NullEvent:
				d.Null[w]++
			case ErrorEvent:
				d.Errors[w]++
			case TextEvent:
				at, ok := texts[l]
				if !ok && len(texts) > diagnosedSlots {
					continue
				}
				if !ok {
					at = len(texts)
					texts[l] = at
					d.Texts[0], d.Texts[1] = append(d.Texts[0], 0), append(d.Texts[1], 0)
				}
				d.Texts[w][at]++
			}
		}
	}
	return d
}
