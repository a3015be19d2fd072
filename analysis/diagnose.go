package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// Limits of what a diagnosis is made from.
const (
	diagnosedSlots = 64
	diagnosedPast  = 4096    // kept pairs
	diagnosedCells = 1 << 15 // pairs times slots
)

// diagnosed returns what the causes of a violation are found from: the kept pairs of the slot of the event and of the first others.
func (a *Audit) diagnosed(best *found) diagnosis.Evidence {
	e := diagnosis.Evidence{
		Epsilon: a.claim.Epsilon, Delta: a.claim.Delta, Constant: a.monotony.constant(),
		Failures: a.failures, Trials: a.pairs,
	}
	for w := range 2 {
		e.Repeated = e.Repeated || a.monotony.broken[w] && a.repeatsTooOften(w)
	}
	if best.event != nil {
		e.Score, e.Kind, e.Tail = best.event.Score, string(best.event.Kind), string(best.event.Tail)
	}
	if a.reader == nil || len(a.slots) == 0 {
		return e
	}
	e.Keyed, e.Columns, e.Groups = a.reader.Keyed, a.reader.Cells(), len(a.reader.Labels)
	var chosen []int
	if s := best.series; s != nil && s.kind == slotScore && s.slot >= diagnosedSlots {
		chosen = append(chosen, s.slot)
	}
	for i := range a.slots[:min(len(a.slots), diagnosedSlots-len(chosen))] {
		chosen = append(chosen, i)
	}
	p := newPortion(len(a.slots[0].past[0]), min(diagnosedPast, max(256, diagnosedCells/len(chosen))))
	for _, i := range chosen {
		e.Slots = append(e.Slots, a.diagnosedSlot(i, p))
	}
	return e
}

// diagnosedSlot returns the outcomes of one slot.
func (a *Audit) diagnosedSlot(slot int, p portion) diagnosis.Slot {
	s := a.slots[slot]
	d := diagnosis.Slot{Where: a.place(slot), Group: slot / a.reader.Cells(), Column: slot % a.reader.Cells(), Discrete: true, Shared: s.shared}
	texts := map[code.Label]int{}
	for w := range s.past {
		d.Numbers[w] = make([]float64, p.n)
		for k := range p.n {
			c := s.past[w][p.at(k)]
			d.Numbers[w][k] = c
			if code.IsNumber(c) {
				d.Discrete = d.Discrete && c == math.Trunc(c)
				continue
			}
			switch l := code.LabelOf(c); kindOfCategory(int(l.Category())) {
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
