// Package step has the one sequencing of an audit: search, control by the twin, confirmation, measurement, watching.
//
// An Audit is a value: everything that its trials need is in it, with what they have shown. Step takes it and gives it
// back, so that nothing else has it meanwhile, and a step can run in any process. It does no input or output but
// through its Player and its Limits. Slots run steps as turns of a process and keep between two of them only what can
// be made again: sessions and the tables of hoisted queries. Alone runs steps until an audit is decided.
package step

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// Limits are when a step ends before its trials have decided anything, and what is outside of it.
type Limits struct {
	Batch int                       // minimal number of rounds per batch; fewer for large results
	More  func(b replay.Batch) bool // takes each batch, whose rounds are in the evidence; false ends the step
	// Environment reads the present environment: evidence must not mix two. nil = it stays the same.
	Environment func(context.Context) (*environment.Environment, error)
	// Renew makes the copies anew, after the control of a suspicion: the control is repeated on them, and the violation
	// is confirmed on them. It returns nil if that cannot be done. nil = copies are not made anew.
	Renew func(context.Context) (*Worlds, error)
}

// Kinds of findings.
const (
	Read        FindingKind = iota // what trials read
	Suspected                      // trials show a violation, which a control or a confirmation has to show, too
	Unconfirmed                    // these did not show it: the search goes on
	Violation                      // a violation of one neighbour is confirmed
	Changed                        // a query that kept its claim no longer does
)

// FindingKind is a kind of findings.
type FindingKind uint8

// Finding is what a step has found.
type Finding struct {
	Kind      FindingKind
	Wealth    float64       // of Suspected: that is to be confirmed
	Neighbour int           // of Violation
	Reads     *replay.Reads // of Read
	Places    []int         // of Read: see replay.Statement
}

// ReplacedError says that the copies or the engine are not those of the evidence, which must not be used.
type ReplacedError struct{ Environment *environment.Environment }

func (*ReplacedError) Error() string { return "the copies or the engine were replaced" }

// Step runs trials of an audit until its stage ends or a limit is reached. It returns the audit in the stage that
// follows, unless there is an error, and what was found. After an error the evidence may have more trials, which are
// not verified, except in a measurement: then it is as before. After a *ReplacedError of another stage it must not be
// used. Unjudgeable says of other errors whether another step may succeed.
func Step(ctx context.Context, p Player, a Audit, l Limits) (Audit, []Finding, error) {
	s := step{Player: p, Audit: &a, limits: &l}
	var err error
	switch e := a.Evidence; {
	case a.Watch != nil:
		err = s.watch(ctx)
	case e.Measuring() || a.Measure > 0 && e.Confirming() && e.Found():
		err = s.measure(ctx)
	default:
		err = s.trials(ctx)
	}
	if err != nil && a.Resting != nil {
		a.Resting.Close()
		a.Resting = nil
	}
	return a, s.found, err
}

// step is a step in progress.
type step struct {
	Player
	*Audit
	limits  *Limits
	found   []Finding
	hasTwin bool // as of the last call of current
}

// current returns a *ReplacedError if the audit does not belong to the present environment.
func (s *step) current(ctx context.Context) error {
	if s.hasTwin = s.Twin != nil; s.limits.Environment == nil {
		return nil
	}
	now, err := s.limits.Environment(ctx)
	if err == nil && !s.same(now) {
		err = &ReplacedError{now}
	}
	if err == nil {
		s.hasTwin = s.controlled(now)
	}
	return err
}

// trials runs the trials of an audit without a verdict, and begins its next stage.
func (s *step) trials(ctx context.Context) error {
	err := s.rounds(ctx)
	ends := errors.As(err, new(*replay.EndsError))
	if ends || errors.As(err, new(*replay.ReadsError)) { // unless the copies were created again meanwhile
		if now := s.current(ctx); now != nil && (!ends || errors.As(now, new(*ReplacedError))) { // the server may be down
			err = now
		}
	}
	if err != nil {
		return err
	}
	if s.Evidence.Found() || s.Evidence.Decided() { // counters of what changes rows come late
		look(s.Player)
	}
	if err := s.current(ctx); err != nil { // do not report what two versions of the copies may have shown
		return err
	}
	return s.proceed(ctx)
}

// rounds runs the rounds of a stage. What can go on with the same sessions rests.
func (s *step) rounds(ctx context.Context) error {
	run, err := s.start(s.Seed)
	if err != nil {
		return err
	}
	e, stage, same := s.Evidence, s.Evidence.Stage(), false
	defer func() {
		if same && s.Hoist != nil && run.Rest() {
			s.Resting = run
			return
		}
		run.Close()
	}()
	reads, err := readsOf(ctx, run, e)
	if err != nil {
		return err
	}
	if reads != nil && s.Renewed == nil {
		s.found = append(s.found, Finding{Kind: Read, Reads: reads, Places: s.statement().Places})
	}
	err = gather(ctx, run, e, s.limits)
	same = err == nil && !e.Decided() && e.Stage() == stage // trials of another stage have other sessions
	return err
}

// start returns the replay that rests since the last step, or a new one.
func (s *step) start(seed uint64) (Trials, error) {
	if run := s.Resting; run != nil {
		s.Resting = nil
		return run, nil
	}
	if s.Renewed != nil {
		return s.Renewed.Player.Start(s.statement(), seed)
	}
	return s.Start(s.statement(), seed)
}

// proceed notes what the trials of a stage have shown, and begins what follows: the control of a violation on the twin
// of D0, and on copies that are made anew, and then its confirmation, on new trials of the whole query, so that no
// assumption of hoisting matters.
func (s *step) proceed(ctx context.Context) error {
	e, wealth := s.Evidence, s.Evidence.Wealth()
	if e.Found() && !e.Confirming() {
		if err := s.doubt(ctx); err != nil {
			return err
		}
	}
	s.found = append(s.found, Shown(s.Doubted, wealth, e)...)
	if s.Doubted = e.Stage() != evidence.Searching; !s.Doubted {
		s.Renewed = nil
	}
	return nil
}

// doubt begins what a suspicion needs next.
func (s *step) doubt(ctx context.Context) error {
	if s.limits.Renew != nil && s.Evidence.Controlling() && s.Renewed == nil {
		var err error
		if s.Renewed, err = s.limits.Renew(ctx); err != nil {
			return err
		}
		if s.Renewed != nil {
			return s.Evidence.Control()
		}
	}
	return s.Evidence.Proceed(s.hasTwin)
}

// Shown returns what evidence shows, which has a violation with some wealth to confirm if it is no search. doubted is
// set if that was found before.
func Shown(doubted bool, wealth float64, e *evidence.Evidence) (all []Finding) {
	switch doubts := e.Stage() != evidence.Searching; {
	case doubted && !doubts:
		return []Finding{{Kind: Unconfirmed}}
	case doubts && !doubted:
		return []Finding{{Kind: Suspected, Wealth: wealth}}
	case !e.Confirming() || !e.Found():
		return nil
	}
	for i := range e.Neighbours() {
		if e.Report(i).Verdict == analysis.Violation {
			all = append(all, Finding{Kind: Violation, Neighbour: i})
		}
	}
	return all
}

// measure runs trials with which the bound of a violation grows. They count only if the copies and the engine are the
// same at their end.
func (s *step) measure(ctx context.Context) error {
	e := s.Evidence
	before, err := e.MarshalBinary()
	if err != nil || !e.Measuring() && !e.Measure(s.Measure) {
		return err
	}
	run, err := s.start(s.Seed)
	if err == nil {
		defer run.Close()
		err = gather(ctx, run, e, s.limits)
	}
	if err == nil {
		look(s.Player)
		err = s.current(ctx)
	}
	if err != nil {
		if lost := e.UnmarshalBinary(before); lost != nil {
			return lost
		}
	}
	return err
}

// watch runs trials of the whole query for a change detector.
func (s *step) watch(ctx context.Context) error {
	run, err := s.start(s.Seed)
	if err != nil {
		return err
	}
	defer run.Close()
	for batch, err := range run.Stream(ctx, s.limits.Batch) {
		if err != nil {
			return err
		}
		for _, round := range batch.Rounds {
			if err := s.Watch.Add(round); err != nil {
				return err
			}
		}
		if !s.limits.More(batch) || s.Watch.Alarm() {
			break
		}
	}
	if !s.Watch.Alarm() {
		return nil
	}
	look(s.Player)
	s.found = append(s.found, Finding{Kind: Changed})
	return s.current(ctx) // trials on two versions of the copies or the engine show nothing
}
