package analysis

import (
	"math"
	"math/bits"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Event is the event with the strongest evidence against the claim. Its texts are withheld as far as they come from rows; the other
// fields hold the same without such texts, for programs.
type Event struct {
	// Score names the score: value, rows, repeat, low_bit, joint_laplace, joint_gauss, fitted,
	// difference, joint_linear, fraction, joint_ratio, fineness, joint_products, joint_extreme, beyond or order.
	Score       string        `json:"score"`
	Partition   withheld.Text `json:"partition"` // empty for scores of the whole result
	Direction   string        `json:"direction"` // D0 or D1: where the event is more likely
	Description withheld.Text `json:"description"`

	Kind   EventKind `json:"kind"`
	Column string    `json:"column,omitempty"` // the name that the statement gives it, or its number; empty for scores of several
	Tail   Tail      `json:"tail,omitempty"`   // which numbers of the score; empty where no number belongs to the event
	// D0 and D1 are the event's estimated probabilities in each world: its share of the trials since it was chosen and of those
	// that it was chosen from, with half a count added. Like every estimate at the event with the strongest evidence, their
	// ratio is biased upwards.
	D0 Float `json:"probability_d0"`
	D1 Float `json:"probability_d1"`
}

// reveal returns a copy that prints with the values of rows; nil of nil.
func (e *Event) reveal() *Event {
	if e == nil {
		return nil
	}
	r := *e
	r.Partition, r.Description = e.Partition.Revealed(), e.Description.Revealed()
	return &r
}

// EventKind is the kind of outcome that an event is.
type EventKind string

// The kinds of an event.
const (
	NumberEvent    EventKind = "number"     // some numbers of one column: see Event.Tail
	TextEvent      EventKind = "text"       // one or several texts, or booleans, of one column
	NullEvent      EventKind = "null"       // NULL
	NotFiniteEvent EventKind = "not_finite" // NaN or an infinity
	PresenceEvent  EventKind = "presence"   // a group, or the row, is there
	AbsenceEvent   EventKind = "absence"    // a group, or the row, is not there
	ErrorEvent     EventKind = "error"      // an error
	ShapeEvent     EventKind = "shape"      // another number of columns
	MixedEvent     EventKind = "mixed"      // several of the above
	RowsEvent      EventKind = "rows"       // the number of rows
	RepeatEvent    EventKind = "repeat"     // the exact repeat of an earlier result
	BeyondEvent    EventKind = "beyond"     // a number that only one world has shown so far, or beyond all numbers of the other
	DigitsEvent    EventKind = "digits"     // the lowest bits of numbers, or what they leave over a round one
	JointEvent     EventKind = "joint"      // a score of several columns or groups
	OrderEvent     EventKind = "order"      // the order of the rows
	UnseenEvent    EventKind = "unseen"     // an outcome that was not seen before
)

// Tail is the set of numbers that belong to an event.
type Tail string

// The tails of an event.
const (
	AnyTail     Tail = "any"     // all numbers
	LowerTail   Tail = "lower"   // those below a threshold
	UpperTail   Tail = "upper"   // those from a threshold on
	OuterTail   Tail = "outer"   // those below one threshold and from another on
	MiddleTail  Tail = "middle"  // those between two thresholds
	ExactTail   Tail = "exact"   // a single number
	SeveralTail Tail = "several" // several ranges
)

// eventKind returns the kind of a set of bins.
func (s *series) eventKind(set uint64) EventKind {
	switch k := s.kind; {
	case k.eventOf != nil:
		return k.eventOf(s, set)
	case k.whole:
		return k.event
	case k.event == NumberEvent && s.binner.IsPresence(set):
		return PresenceEvent
	}
	numbers, categories := set&(1<<s.binner.Numeric()-1) != 0, s.categoryKind(set)
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
func (s *series) categoryKind(set uint64) (kind EventKind) {
	for i, id := range s.binner.Categories {
		if set>>(s.binner.Numeric()+i)&1 == 0 {
			continue
		}
		switch k := kindOfCategory(int(id.Category())); {
		case kind == "":
			kind = k
		case kind != k:
			return MixedEvent
		}
	}
	return kind
}

func kindOfCategory(id int) EventKind {
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

// tailOf returns which of the numeric bins are in a set.
func tailOf(b *bins.Binner, set uint64) Tail {
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
