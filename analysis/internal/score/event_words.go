package score

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Event is a set of bins of a score, with what describes it.
type Event struct {
	Series *Series
	Set    uint64
	Kind   EventKind
	Tail   Tail
	Parts  []Part // of a joint score; nil for others
}

// EventOf returns the event that is a set of bins of a score.
func (in *Input) EventOf(s *Series, set uint64) *Event {
	return &Event{Series: s, Set: set, Kind: s.EventKind(set), Tail: s.Tail(set), Parts: in.parts(s)}
}

// EventWords describes an event in a sentence, without its probabilities.
func (in *Input) EventWords(e *Event) withheld.Text {
	s := e.Series
	if s.kind.phrase != nil {
		return s.kind.phrase(in, e)
	}
	switch e.Kind {
	case BeyondEvent:
		return withheld.Public("a number outside the range of the other dataset's answers")
	case RepeatEvent:
		return withheld.Public("a rare answer that repeats")
	case JointEvent:
		return withheld.Sprintf("%d columns and groups give it away together, %s", len(in.Slots), partWords(e.Parts))
	case ErrorEvent:
		return withheld.Sprintf("the query fails (%s)", in.binWords(s, e.Set, nounOf("value", "values")))
	case ShapeEvent:
		return withheld.Public("an answer with other columns")
	case PresenceEvent:
		if !in.Reader.Keyed {
			return withheld.Public("a row is returned")
		}
		return withheld.Sprintf("%s is present", in.group(s.Slot))
	case AbsenceEvent:
		if !in.Reader.Keyed {
			return withheld.Public("no row is returned")
		}
		return withheld.Sprintf("%s is missing", in.group(s.Slot))
	}
	if s.kind.near != nil {
		return s.kind.near(in, e)
	}
	if e.Kind == NumberEvent && e.Tail == AnyTail {
		return withheld.Sprintf("any number in %s", in.Place(s.Slot))
	}
	return withheld.Sprintf("%s in %s", in.binWords(s, e.Set, nounOf("values", "values")), in.Place(s.Slot))
}

// publicPhrase is the phrase of all events of a kind of score.
func publicPhrase(words string) func(*Input, *Event) withheld.Text {
	return func(*Input, *Event) withheld.Text { return withheld.Public(words) }
}

// Place names a slot within a sentence.
func (y *Layout) Place(slot int) withheld.Text {
	r := y.Reader
	if slot/r.Cells() >= len(r.Labels) {
		return withheld.Public("the answer")
	}
	if len(r.Measures) == 0 {
		return y.group(slot)
	}
	column := withheld.Public("column " + r.MeasureName(slot%r.Cells()))
	if !r.Keyed {
		return column
	}
	return withheld.Sprintf("%s of %s", column, y.group(slot))
}

// group names the group of a slot.
func (y *Layout) group(slot int) withheld.Text {
	k := slot / y.Reader.Cells()
	if !y.Reader.Keyed {
		return withheld.Public("the row")
	}
	return withheld.New("group "+y.Reader.GroupName(k).Reveal(), y.Reader.GroupName(k).String())
}

// partWords names the parts of a joint score with their shares.
func partWords(parts []Part) withheld.Text {
	var words []withheld.Text
	together := 0.0
	for _, p := range parts {
		together += p.Share
		words = append(words, withheld.Sprintf("%s (%.0f %%)", p.Where, 100*p.Share))
	}
	switch {
	case len(parts) == 0:
		return withheld.Public("none more than others")
	case together < .5:
		return withheld.Sprintf("none much more than others (the strongest %d have %.0f %% of the evidence)", len(parts), math.Ceil(100*together))
	}
	return withheld.Sprintf("mostly %s", withheld.Join(words, ", "))
}
