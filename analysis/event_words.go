package analysis

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// what describes the event with the strongest evidence in words.
func (a *Audit) what(best *found) What {
	w := What{Basis: Likely, Parts: []Part{}}
	e := best.event
	if e == nil {
		w.Text = withheld.Public("the answer itself shows the dataset")
		return w
	}
	if w.Parts = a.parts(best.series); len(w.Parts) == 0 {
		w.Parts = []Part{}
	}
	often := fmt.Sprintf("%s of the answers on D0, %s on D1", percent(float64(e.D0)), percent(float64(e.D1)))
	w.Text = withheld.Sprintf("%s: %s", a.eventWords(best, w.Parts), often)
	return w
}

// eventWords describes an event without its probabilities.
func (a *Audit) eventWords(best *found, parts []Part) withheld.Text {
	s, e := best.series, best.event
	switch s.kind {
	case lowBitScore:
		switch {
		case e.Kind == AbsenceEvent:
			return withheld.Public("an answer without a number")
		case e.Tail == AnyTail:
			return withheld.Public("an answer with a number")
		}
		return withheld.Public("numbers whose lowest bits fit the noise of this dataset alone (floating point)")
	case finenessScore:
		return withheld.Public("numbers with more binary places than the noise of the other dataset gives (floating point)")
	case fractionScore:
		return withheld.Sprintf("some remainders of %s over a round number", a.place(s.slot))
	case contrastScore:
		return withheld.Sprintf("some differences of %s, which share their noise", partWords(parts))
	case productsScore:
		return withheld.Sprintf("numbers that vary together, %s", partWords(parts))
	case extremeScore:
		return withheld.Sprintf("an extreme value among %d columns and groups", len(a.slots))
	case orderScore:
		return withheld.Public("an order of the rows")
	case repeatScore:
		return withheld.Public("an exact repeat of an earlier answer")
	case rowsScore, seldomScore:
		return a.rowsWords(s, e, best.set)
	}
	switch e.Kind {
	case BeyondEvent:
		return withheld.Public("a number outside the range of the other dataset's answers")
	case RepeatEvent:
		return withheld.Public("a rare answer that repeats")
	case JointEvent:
		return withheld.Sprintf("%d columns and groups give it away together, %s", len(a.slots), partWords(parts))
	case ErrorEvent:
		return withheld.Sprintf("the query fails (%s)", a.binWords(s, best.set, nounOf("value", "values")))
	case ShapeEvent:
		return withheld.Public("an answer with other columns")
	case PresenceEvent:
		if !a.reader.Keyed {
			return withheld.Public("a row is returned")
		}
		return withheld.Sprintf("%s is present", a.group(s.slot))
	case AbsenceEvent:
		if !a.reader.Keyed {
			return withheld.Public("no row is returned")
		}
		return withheld.Sprintf("%s is missing", a.group(s.slot))
	}
	if s.kind == fittedScore {
		return withheld.Sprintf("values near one of the centres of %s", a.place(s.slot))
	}
	if e.Kind == NumberEvent && e.Tail == AnyTail {
		return withheld.Sprintf("any number in %s", a.place(s.slot))
	}
	return withheld.Sprintf("%s in %s", a.binWords(s, best.set, nounOf("values", "values")), a.place(s.slot))
}

// rowsWords describes an event of the number of rows or of errors.
func (a *Audit) rowsWords(s *series, e *Event, set uint64) withheld.Text {
	if e.Kind == ErrorEvent {
		return withheld.Sprintf("the query fails (%s)", a.binWords(s, set, nounOf("number of rows", "numbers of rows")))
	}
	return a.binWords(s, set, nounOf("number of rows", "numbers of rows"))
}

// place names a slot within a sentence.
func (a *Audit) place(slot int) withheld.Text {
	r := a.reader
	if slot/r.Cells() >= len(r.Labels) {
		return withheld.Public("the answer")
	}
	if len(r.Measures) == 0 {
		return a.group(slot)
	}
	column := withheld.Public("column " + r.MeasureName(slot%r.Cells()))
	if !r.Keyed {
		return column
	}
	return withheld.Sprintf("%s of %s", column, a.group(slot))
}

// group names the group of a slot.
func (a *Audit) group(slot int) withheld.Text {
	k := slot / a.reader.Cells()
	if !a.reader.Keyed {
		return withheld.Public("the row")
	}
	return withheld.New("group "+a.reader.GroupName(k).Reveal(), a.reader.GroupName(k).String())
}

// partWords names the parts of a joint score with their shares.
func partWords(parts []Part) withheld.Text {
	var words []withheld.Text
	together := 0.0
	for _, p := range parts {
		together += float64(p.Share)
		words = append(words, withheld.Sprintf("%s (%.0f %%)", p.Where, 100*float64(p.Share)))
	}
	switch {
	case len(parts) == 0:
		return withheld.Public("none more than others")
	case together < .5:
		return withheld.Sprintf("none much more than others (the strongest %d have %.0f %% of the evidence)", len(parts), math.Ceil(100*together))
	}
	return withheld.Sprintf("mostly %s", withheld.Join(words, ", "))
}
