package score

import (
	"math"
	"math/bits"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// EventKind is the kind of outcome that an event is.
type EventKind string

// The kinds of an event. Package analysis describes them.
const (
	NumberEvent    EventKind = "number"
	TextEvent      EventKind = "text"
	NullEvent      EventKind = "null"
	NotFiniteEvent EventKind = "not_finite"
	PresenceEvent  EventKind = "presence"
	AbsenceEvent   EventKind = "absence"
	ErrorEvent     EventKind = "error"
	ShapeEvent     EventKind = "shape"
	MixedEvent     EventKind = "mixed"
	RowsEvent      EventKind = "rows"
	RepeatEvent    EventKind = "repeat"
	BeyondEvent    EventKind = "beyond"
	DigitsEvent    EventKind = "digits"
	JointEvent     EventKind = "joint"
	OrderEvent     EventKind = "order"
	UnseenEvent    EventKind = "unseen"
	ExactEvent     EventKind = "exact"
	FormEvent      EventKind = "form"
)

// Tail is the set of numbers that belong to an event.
type Tail string

// The tails of an event. Package analysis describes them.
const (
	AnyTail     Tail = "any"
	LowerTail   Tail = "lower"
	UpperTail   Tail = "upper"
	OuterTail   Tail = "outer"
	MiddleTail  Tail = "middle"
	ExactTail   Tail = "exact"
	SeveralTail Tail = "several"
)

// EventKind returns the kind of a set of bins.
func (s *Series) EventKind(set uint64) EventKind {
	switch k := s.kind; {
	case k.eventOf != nil:
		return k.eventOf(s, set)
	case k.whole:
		return k.event
	case k.event == NumberEvent && s.Binner.IsPresence(set):
		return PresenceEvent
	}
	numbers, categories := set&(1<<s.Binner.Numeric()-1) != 0, s.categoryKind(set)
	switch {
	case numbers && categories != "":
		return MixedEvent
	case !numbers && categories == "":
		return UnseenEvent
	case !numbers:
		return categories
	}
	return s.kind.event
}

// categoryKind returns the kind that all known categories of a set have in common, "" without any.
func (s *Series) categoryKind(set uint64) (kind EventKind) {
	for i, id := range s.Binner.Categories {
		if set>>(s.Binner.Numeric()+i)&1 == 0 {
			continue
		}
		switch k := KindOfCategory(int(id.Category())); {
		case kind == "":
			kind = k
		case kind != k:
			return MixedEvent
		}
	}
	return kind
}

// KindOfCategory returns the kind of the event that is a single category.
func KindOfCategory(id int) EventKind {
	switch {
	case id == code.Absent:
		return AbsenceEvent
	case id == code.NullValue:
		return NullEvent
	case id == code.NotANumber, id == code.PlusInfinity, id == code.MinusInfinity:
		return NotFiniteEvent
	case id == code.OtherShape:
		return ShapeEvent
	case id == code.OtherError, id >= code.FirstError:
		return ErrorEvent
	}
	return TextEvent
}

// Tail returns which of the numeric bins are in a set.
func (s *Series) Tail(set uint64) Tail {
	b := &s.Binner
	n := b.Numeric()
	numbers := set & (1<<n - 1)
	if numbers == 0 {
		return ""
	}
	runs := bits.OnesCount64(numbers &^ (numbers << 1)) // of bins that follow each other
	low, high := numbers&1 == 1, numbers>>(n-1)&1 == 1
	switch {
	case runs == 1 && low && high:
		return AnyTail
	case runs == 1 && low:
		return LowerTail
	case runs == 1 && high:
		return UpperTail
	case runs == 2 && low && high:
		return OuterTail
	case runs > 1:
		return SeveralTail
	}
	first, after := bits.TrailingZeros64(numbers), bits.Len64(numbers)
	if math.Nextafter(b.Edges[first-1], math.Inf(1)) == b.Edges[after-1] {
		return ExactTail
	}
	return MiddleTail
}
