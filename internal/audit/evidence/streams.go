package evidence

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// streams are the hoisted trials of an audit, beside those of the whole query. Each kind has half of the error rate and
// a wealth of its own, so that the rate holds whatever hoisting does; the verdict that there is no evidence needs whole
// trials alone. While both run, the law of their answers is compared, world by world: evidence that they differ ends
// the hoisted trials, and what these have shown does not count.
type streams struct {
	shares  int              // kinds of trials that share the error rate: 2, or 1 = only the whole query is replayed
	claim   analysis.Claim   // of the hoisted trials
	opt     analysis.Options // of the hoisted trials
	hoisted []*analysis.Audit
	laws    []*analysis.Audit       // by world: of whole trials (as D0) and hoisted ones (as D1)
	refuted string                  // why hoisted trials do not count; "" = they do
	aside   map[int]*analysis.Audit // during a confirmation: those of the whole query of neighbours where only hoisted trials showed a violation
}

const (
	// wholeFirst is the number of rounds of the whole query before the first hoisted one: shorter audits have none.
	wholeFirst = 100
	// sameLaws is the confidence with which the answers of whole and hoisted trials have to differ before they count as
	// different, for all worlds together.
	sameLaws = 1 - 1e-6
)

// NewHoistable is New for a query whose trials may be hoisted: see AddHoisted.
func NewHoistable(claim analysis.Claim, opt analysis.Options, neighbours int) (*Evidence, error) {
	alone, err := New(claim, opt, neighbours)
	if err != nil || opt.NoClaim || 0 < opt.MaxTrials && opt.MaxTrials <= wholeFirst {
		return alone, err
	}
	half := opt
	half.Confidence = 1 - (1-alone.Report(0).Confidence)/2
	e, err := New(claim, half, neighbours)
	if err != nil { // the budget suffices for one kind of trials only
		return alone, nil
	}
	e.streams = streams{shares: 2, claim: claim, opt: half}
	return e, nil
}

// Shares returns the number of kinds of trials that share the error rate of the evidence: 1 or 2.
func (e *Evidence) Shares() int { return max(1, e.streams.shares) }

// WholeOnly reports whether the evidence takes no hoisted trials (any more).
func (e *Evidence) WholeOnly() bool {
	s := &e.streams
	if s.shares < 2 || s.refuted != "" || e.Confirming() {
		return true
	}
	for _, a := range s.hoisted {
		if !a.Exhausted() {
			return false
		}
	}
	return s.hoisted != nil
}

// Whole tells the evidence that its trials will not be hoisted, for a reason that does not depend on their results: the
// whole query gets the whole error rate. It does nothing after the first hoisted trials.
func (e *Evidence) Whole() {
	s := &e.streams
	if s.shares < 2 || s.hoisted != nil || s.refuted != "" || e.Confirming() {
		return
	}
	for _, a := range e.audits {
		a.Relax(1 - 2*(1-s.opt.Confidence))
	}
	*s = streams{}
}

// AddHoisted adds a round of hoisted trials. whole is a round of the whole query that belongs to no other hoisted one,
// nil = there is none; spared marks the worlds that both left out, D0 first.
func (e *Evidence) AddHoisted(round, whole []outcome.Outcome, spared []bool) error {
	s := &e.streams
	if e.WholeOnly() {
		return nil
	}
	if s.hoisted == nil {
		if err := s.begin(len(e.audits)); err != nil {
			return err
		}
	}
	for world := range round {
		if spared != nil && spared[world] {
			continue
		}
		e.trials++
		if i := world - 1; i >= 0 && !s.hoisted[i].Decided() {
			s.hoisted[i].Add(round[0], round[world])
		}
		if law := s.laws[world]; whole != nil && !law.Decided() {
			if law.Add(whole[world], round[world]); law.DetectedAt() > 0 {
				s.refute(fmt.Sprintf("the answers of hoisted trials on D%d have another distribution than those of whole trials", world))
				return nil
			}
		}
	}
	for _, a := range s.hoisted {
		if !a.Decided() || a.Exhausted() {
			continue
		}
		if r := a.Report(); r.Verdict != analysis.Violation {
			s.refute("hoisted trials are no evidence: " + r.Reason)
			return nil
		}
	}
	return nil
}

// Refute ends the hoisted trials: what they have shown does not count.
func (e *Evidence) Refute(reason string) {
	if !e.Confirming() {
		e.streams.refute(reason)
	}
}

// Hoisting adds to the report on hoisting what the evidence knows about it, for a neighbour.
func (e *Evidence) Hoisting(r hoisting.Report, neighbour int) hoisting.Report {
	s := &e.streams
	if s.refuted != "" {
		r.Hoisted, r.Reason = false, s.refuted
	}
	if neighbour < len(s.hoisted) {
		hoisted := s.hoisted[neighbour].Report()
		r.HoistedTrials = hoisted.Trials.D0
		if least := float64(hoisted.MinimalDetectable); !math.IsNaN(least) {
			r.MinimalDetectable = least
		}
	}
	return r
}

// begin begins the evidence of hoisted trials.
func (s *streams) begin(neighbours int) (err error) {
	if s.hoisted, err = begin(s.claim, s.opt, neighbours); err != nil {
		return fmt.Errorf("evidence of hoisted trials: %w", err)
	}
	opt := s.opt
	opt.Confidence, opt.Deterministic = 1-(1-sameLaws)/float64(1+neighbours), analysis.DeterministicIgnore
	if s.laws, err = begin(analysis.Claim{}, opt, 1+neighbours); err != nil {
		return fmt.Errorf("comparison of hoisted and whole trials: %w", err)
	}
	return nil
}

// found reports whether hoisted trials show a violation of a neighbour.
func (s *streams) found(i int) bool {
	if s.hoisted == nil {
		return false
	}
	a := s.hoisted[i]
	return a.Decided() && (a.DetectedAt() > 0 || !a.Exhausted()) && a.Report().Verdict == analysis.Violation
}

// wealth returns the log-wealth of the hoisted trials of a neighbour, 0 if there are none.
func (s *streams) wealth(i int) float64 {
	if s.hoisted == nil {
		return 0
	}
	return s.hoisted[i].Wealth()
}

// refute ends the hoisted trials.
func (s *streams) refute(reason string) {
	s.refuted, s.hoisted, s.laws, s.aside = reason, nil, nil, nil
}

// confirm notes that a confirmation begins, for which these audits are set aside.
func (s *streams) confirm(aside map[int]*analysis.Audit) {
	s.hoisted, s.laws, s.aside = nil, nil, aside
}

// size returns the approximate memory in bytes.
func (s *streams) size() (n int) {
	for _, all := range [][]*analysis.Audit{s.hoisted, s.laws} {
		for _, a := range all {
			n += a.Size()
		}
	}
	for _, a := range s.aside {
		n += a.Size()
	}
	return n
}
