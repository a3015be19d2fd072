package step

import (
	"context"
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/replay"
)

// Kind is what a turn is for.
type Kind uint8

// The kinds of turns.
const (
	First     Kind = iota // the first trials, which are few
	Further               // further trials, until there is a verdict
	Measuring             // trials with which the bound of a violation grows
	Watching              // a few trials of a decided audit, for its change detector
)

// KindOf returns the kind of a turn that is no Watching, with the number of turns that the audit has had with it.
func KindOf(measuring bool, turns int) Kind {
	switch {
	case measuring:
		return Measuring
	case turns <= 1:
		return First
	}
	return Further
}

// Lengths of turns. A turn ends after a batch and has at least one.
const (
	firstRounds = 50          // of a first turn, which is short: it is enough for a badly broken query
	firstBatch  = 5           // batch size at the start of a first turn
	Short       = time.Second // maximum of a first turn, minimum of another one, which may begin with opening sessions
	Longest     = 20 * time.Second
)

// Slots run steps as turns, several at a time. Their exported fields are set before the first one.
type Slots struct {
	Player      Player
	Environment func(context.Context) (*environment.Environment, error) // reads the present one
	Budget      *budget.Budget                                          // nil = no limit
	Now         func() time.Time
	Hoisting    func(sql string) *replay.Hoisting // nil = trials run the whole query
	VaryText    bool                              // see Audit
	Batch       int                               // minimal number of rounds per batch; fewer in first turns and for large results
	Rounds      int                               // approximate number of rounds per turn
	// Counted is called with every batch and the worlds whose trials in it do not count.
	Counted   func(b replay.Batch, skipped []bool)
	Recovered func(where string, r any) // takes a panic

	sessions sessions
}

// Hooks are called during a turn, by its goroutine.
type Hooks struct {
	// Pressing reports whether a new query waits: the turn then ends as soon as it is long enough.
	Pressing func() bool
	Least    time.Duration  // minimum of a turn that is not a first one, if nothing is pressing
	Advanced func(Progress) // takes the present results; may be nil
}

// Step is Step until a turn's share of trials is used.
func (s *Slots) Step(ctx context.Context, a Audit, kind Kind, h Hooks) (Audit, []Finding, error) {
	began, ran := s.Now(), 0
	limits := Limits{Batch: s.Batch, Environment: s.Environment}
	if kind == First || kind == Watching {
		limits.Batch = min(s.Batch, firstBatch)
	}
	limits.More = func(batch replay.Batch) bool {
		ran += len(batch.All())
		if kind == Watching {
			s.Counted(batch, nil)
		} else if s.Counted(batch, a.Evidence.Settled()); kind != Measuring {
			if a.Evidence.Found() {
				return false
			}
			if h.Advanced != nil {
				h.Advanced(a.Progress(true))
			}
		}
		return !s.over(kind, ran, s.Now().Sub(began), &h)
	}
	if kind == Watching {
		return Step(ctx, s.Player, a, limits)
	}
	kept := s.sessions.take(&a, s.Hoisting)
	a.VaryText, a.Hoist, a.Resting = s.VaryText, kept.hoist, kept.wake()
	after, found, err := Step(ctx, s.Player, a, limits)
	if !errors.As(err, new(*ReplacedError)) {
		s.sessions.rest(kept, after.Resting, s.Recovered)
	}
	after.Resting = nil
	return after, found, err
}

// over reports whether a turn that takes at least the given time, unless a new query waits for its first turn, ends
// after this many rounds and this time.
func (s *Slots) over(kind Kind, rounds int, took time.Duration, h *Hooks) bool {
	switch {
	case s.Budget.Spent():
		return true
	case kind == First || kind == Watching:
		return rounds >= firstRounds || took >= Short
	}
	return took >= Longest || took >= h.Least && rounds >= s.Rounds || took >= Short && h.Pressing()
}
