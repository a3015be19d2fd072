package evidence

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Kind is a kind of trials.
type Kind uint8

// The kinds of trials. Each has a share of the error rate and a wealth of its own, so that the rate holds whatever the
// others do.
const (
	// Whole trials run the whole query, many in a session. The verdict that there is no evidence counts them alone.
	Whole Kind = iota
	// Opening trials are the first statement of a session of their own: they show what a session gives once.
	Opening
	// Hoisted trials run the random part of the query alone.
	Hoisted
)

// stream is the evidence of trials of another kind than Whole.
type stream struct {
	share   float64           // of the error rate; 0 = no such trials
	audits  []*analysis.Audit // by neighbour; nil = there are none (yet)
	refuted string            // why they do not count; "" = they do
}

// streams are the trials of other kinds than Whole. While hoisted ones run, the law of their answers is compared with
// that of whole ones, world by world: evidence that they differ ends them, and what they have shown does not count.
type streams struct {
	claim   analysis.Claim
	opt     analysis.Options
	opening stream
	hoisted stream
	laws    []*analysis.Audit // by world: of whole trials (as D0) and hoisted ones (as D1)
	aside   map[int]aside     // during a confirmation, by neighbour: of those that whole trials did not accuse; else nil
}

// aside is the audit of whole trials while a violation that another kind of trials showed is confirmed.
type aside struct {
	Audit *analysis.Audit
	By    Kind
}

const (
	// wholeFirst is the number of whole rounds before the first hoisted one: shorter audits have none.
	wholeFirst = 100
	// openingPart: one of so many trials is an opening one, with openingShare of the error rate. Audits with a smaller
	// budget than leastOpening have none.
	openingPart  = 16
	openingShare = 1. / 8
	leastOpening = 400
	// sameLaws is the confidence with which the answers of whole and hoisted trials have to differ before they count as
	// different, for all worlds together.
	sameLaws = 1 - 1e-6
)

// NewReplayed is New for a query that is replayed: some of its trials are opening ones (see AddOpening), and some may
// be hoisted if hoist is set (see AddHoisted).
func NewReplayed(claim analysis.Claim, opt analysis.Options, neighbours int, hoist bool) (*Evidence, error) {
	opt = opt.For(claim)
	alone, err := New(claim, opt, neighbours)
	if err != nil || opt.NoClaim {
		return alone, err
	}
	s := streams{claim: claim, opt: opt}
	whole := 1.0
	if budget := alone.audits[0].Budget(); budget >= leastOpening {
		few := opt
		few.Share, few.MaxTrials, few.Suspicion = openingShare, budget/openingPart, true
		if s.opening.audits, err = begin(claim, few, neighbours); err == nil { // otherwise they could not refute the claim
			s.opening.share, whole = openingShare, 1-openingShare
		}
		if hoist {
			whole /= 2
			s.hoisted.share = whole
		}
	} else if hoist && budget > wholeFirst {
		whole = .5
		s.hoisted.share = whole
	}
	opt.Share = whole
	e, err := New(claim, opt, neighbours)
	if err != nil { // the budget suffices for one kind of trials only
		return alone, nil
	}
	e.streams = s
	return e, nil
}

// confirming reports whether a confirmation has begun: it takes whole trials alone.
func (s *streams) confirming() bool { return s.aside != nil }

// Share returns the share of the error rate that whole trials have.
func (s *streams) Share() float64 {
	return 1 - s.opening.share - s.hoisted.share
}

// WholeOnly reports whether the evidence takes no hoisted trials (any more).
func (e *Evidence) WholeOnly() bool { return e.Controlling() || !e.takes(&e.hoisted) }

// Opens reports whether the evidence takes (more) opening trials: one for openingPart whole ones.
func (e *Evidence) Opens() bool { return !e.Controlling() && e.takes(&e.opening) }

// takes reports whether the evidence takes trials of a kind.
func (e *Evidence) takes(x *stream) bool {
	if x.share == 0 || x.refuted != "" || e.confirming() {
		return false
	}
	for i, a := range x.audits {
		if !a.Exhausted() && !e.vacuous(i) {
			return true
		}
	}
	return x.audits == nil
}

// Whole tells the evidence that its trials will not be hoisted, for a reason that does not depend on their results:
// whole trials get the share of hoisted ones. It does nothing after the first hoisted trials.
func (e *Evidence) Whole() {
	s := &e.streams.hoisted
	if s.share == 0 || s.audits != nil || s.refuted != "" || e.Stage() != Searching {
		return
	}
	s.share = 0
	for _, a := range e.audits {
		a.SetShare(e.Share() * starts[0])
	}
}

// AddOpening adds a round of opening trials; spared marks the worlds that it leaves out, D0 first.
func (e *Evidence) AddOpening(round []outcome.Outcome, spared []bool) {
	if s := &e.streams.opening; e.Opens() {
		e.trials++
		s.add(e, round, spared)
		s.weigh("the first trials of sessions are no evidence: ")
	}
}

// AddHoisted adds a round of hoisted trials. whole is a round of the whole query that belongs to no other hoisted one,
// nil = there is none; spared marks the worlds that both left out, D0 first.
func (e *Evidence) AddHoisted(round, whole []outcome.Outcome, spared []bool) error {
	s := &e.streams
	if e.WholeOnly() {
		return nil
	}
	if s.hoisted.audits == nil {
		if err := s.beginHoisted(len(e.audits)); err != nil {
			return err
		}
	}
	e.trials++
	s.hoisted.add(e, round, spared)
	for world, law := range s.laws {
		if whole == nil || spared != nil && spared[world] || law.Decided() {
			continue
		}
		if law.Add(whole[world], round[world]); law.DetectedAt() > 0 {
			s.refute(fmt.Sprintf("the answers of hoisted trials on D%d have another distribution than those of whole trials", world))
			return nil
		}
	}
	if s.hoisted.weigh("hoisted trials are no evidence: "); s.hoisted.refuted != "" {
		s.refute(s.hoisted.refuted)
	}
	return nil
}

// Refute ends the hoisted trials: what they have shown does not count.
func (s *streams) Refute(reason string) {
	if !s.confirming() {
		s.refute(reason)
	}
}

// Hoisting adds to the report on hoisting what the evidence knows about it, for a neighbour.
func (s *streams) Hoisting(r hoisting.Report, neighbour int) hoisting.Report {
	x := &s.hoisted
	if x.refuted != "" {
		r.Hoisted, r.Reason = false, x.refuted
	}
	if neighbour < len(x.audits) {
		hoisted := x.audits[neighbour].Report()
		r.HoistedTrials = hoisted.Trials.D0
		if least := float64(hoisted.MinimalDetectable); !math.IsNaN(least) {
			r.MinimalDetectable = least
		}
	}
	return r
}

// OpeningTrials returns the number of opening trials on D0, for a neighbour.
func (s *streams) OpeningTrials(neighbour int) int {
	if x := &s.opening; neighbour < len(x.audits) {
		return x.audits[neighbour].Pairs()
	}
	return 0
}

// beginHoisted begins the evidence of hoisted trials.
func (s *streams) beginHoisted(neighbours int) (err error) {
	opt := s.opt
	opt.Share, opt.Suspicion = s.hoisted.share, true
	if s.hoisted.audits, err = begin(s.claim, opt, neighbours); err != nil {
		return fmt.Errorf("evidence of hoisted trials: %w", err)
	}
	opt.Share, opt.Suspicion, opt.Confidence, opt.Deterministic = 1, false, 1-(1-sameLaws)/float64(1+neighbours), analysis.DeterministicIgnore
	if s.laws, err = begin(analysis.Claim{}, opt, 1+neighbours); err != nil {
		return fmt.Errorf("comparison of hoisted and whole trials: %w", err)
	}
	return nil
}

// accuser returns the kind of trials, other than Whole, that shows a violation of a neighbour; Whole if none does.
func (s *streams) accuser(i int) Kind {
	switch {
	case s.opening.found(i):
		return Opening
	case s.hoisted.found(i):
		return Hoisted
	}
	return Whole
}

// of returns the evidence of trials of a kind other than Whole.
func (s *streams) of(k Kind) *stream {
	if k == Opening {
		return &s.opening
	}
	return &s.hoisted
}

// wealth returns the largest log-wealth of trials of other kinds than Whole, for a neighbour; at least 0.
func (s *streams) wealth(i int) float64 {
	most := 0.0
	for _, x := range []*stream{&s.opening, &s.hoisted} {
		if x.audits != nil {
			most = max(most, x.audits[i].Wealth())
		}
	}
	return most
}

// refute ends the hoisted trials.
func (s *streams) refute(reason string) {
	s.hoisted.refuted, s.hoisted.audits, s.laws = reason, nil, nil
}

// size returns the approximate memory in bytes.
func (s *streams) size() (n int) {
	for _, all := range [][]*analysis.Audit{s.opening.audits, s.hoisted.audits, s.laws} {
		for _, a := range all {
			n += a.Size()
		}
	}
	for _, a := range s.aside {
		n += a.Audit.Size()
	}
	return n
}

// add adds a round.
func (s *stream) add(e *Evidence, round []outcome.Outcome, spared []bool) {
	for i, a := range s.audits {
		if !a.Decided() && (spared == nil || !spared[i+1]) {
			e.trials++
			a.Add(round[0], round[i+1])
		}
	}
}

// weigh ends the trials of a kind if they are decided, before their budget is used, without a violation: because they
// depend on each other.
func (s *stream) weigh(what string) {
	for _, a := range s.audits {
		if !a.Decided() || a.Exhausted() {
			continue
		}
		if r := a.Report(); r.Verdict != analysis.Violation {
			s.refuted, s.audits = what+r.Reason, nil
			return
		}
	}
}

// found reports whether trials of a kind show a violation of a neighbour.
func (s *stream) found(i int) bool {
	if s.audits == nil {
		return false
	}
	a := s.audits[i]
	return a.Decided() && (a.DetectedAt() > 0 || !a.Exhausted()) && a.Report().Verdict == analysis.Violation
}
