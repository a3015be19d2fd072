package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Event is the event with the strongest evidence against the claim. Its texts are withheld as far as they come from
// rows; the other fields hold the same without such texts, for programs.
type Event struct {
	// Score names the score: value, rows, repeat, joint_laplace, joint_gauss, fitted,
	// difference, fraction, joint_ratio, fineness, joint_products, joint_extreme, low_bit, order, total,
	// aggregate, exact or ends.
	Score       string        `json:"score"`
	Partition   withheld.Text `json:"partition"` // empty for scores of the whole result
	Direction   string        `json:"direction"` // D0 or D1: where the event is more likely
	Description withheld.Text `json:"description"`

	Kind   EventKind `json:"kind"`
	Column string    `json:"column,omitempty"` // the name that the statement gives it, or its number; empty for scores of several
	Tail   Tail      `json:"tail,omitempty"`   // which numbers of the score; empty where no number belongs to the event
	// D0 and D1 are the event's estimated probabilities in each world: its share of the trials since it was chosen and
	// of those that it was chosen from, with half a count added. Like every estimate at the event with the strongest
	// evidence, their ratio is biased upwards.
	D0 Float `json:"probability_d0"`
	D1 Float `json:"probability_d1"`
}

// EndsEvent returns the event that a statement ends its session on one copy alone; nil if that was not seen. No wealth
// belongs to it: it is a suspicion.
func EndsEvent(e *outcome.Ends) *Event {
	ended, kept, yes := e.OneCopy()
	if !yes {
		return nil
	}
	share := func(c outcome.CopyEnds) Float { return Float((float64(c.Ended) + 0.5) / float64(c.Trials+1)) }
	event := &Event{Score: "ends", Kind: ErrorEvent, Direction: "D1", Description: withheld.Sprintf("the engine ends the session"), D0: share(kept), D1: share(ended)}
	if ended.Place == 0 {
		event.Direction, event.D0, event.D1 = "D0", event.D1, event.D0
	}
	return event
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
type EventKind = score.EventKind

// The kinds of an event.
const (
	NumberEvent    = score.NumberEvent    // some numbers of one column: see Event.Tail
	TextEvent      = score.TextEvent      // one or several texts, or booleans, of one column
	NullEvent      = score.NullEvent      // NULL
	NotFiniteEvent = score.NotFiniteEvent // NaN or an infinity
	PresenceEvent  = score.PresenceEvent  // a group, or the row, is there
	AbsenceEvent   = score.AbsenceEvent   // a group, or the row, is not there
	ErrorEvent     = score.ErrorEvent     // an error
	ShapeEvent     = score.ShapeEvent     // another number of columns
	MixedEvent     = score.MixedEvent     // several of the above
	RowsEvent      = score.RowsEvent      // the number of rows
	RepeatEvent    = score.RepeatEvent    // the exact repeat of an earlier result
	BeyondEvent    = score.BeyondEvent    // a number that only one world has shown so far, or beyond all numbers of the other
	DigitsEvent    = score.DigitsEvent    // the lowest bits of numbers, or what they leave over a round one
	JointEvent     = score.JointEvent     // a score of several columns or groups
	OrderEvent     = score.OrderEvent     // the order of the rows
	UnseenEvent    = score.UnseenEvent    // an outcome that was not seen before
	FormEvent      = score.FormEvent      // a part of a text, or of what the server says beside the answer
	ExactEvent     = score.ExactEvent     // exact values, digits or characters, of one column or of the whole answer
)

// Tail is the set of numbers that belong to an event.
type Tail = score.Tail

// The tails of an event.
const (
	AnyTail     = score.AnyTail     // all numbers
	LowerTail   = score.LowerTail   // those below a threshold
	UpperTail   = score.UpperTail   // those from a threshold on
	OuterTail   = score.OuterTail   // those below one threshold and from another on
	MiddleTail  = score.MiddleTail  // those between two thresholds
	ExactTail   = score.ExactTail   // a single number
	SeveralTail = score.SeveralTail // several ranges
)
