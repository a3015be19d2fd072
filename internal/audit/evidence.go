package audit

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/replay"
)

// Evidence is what the trials of one query show: every neighbour against the same trials on D0. A violation of the first trials is a
// suspicion. It is reported when fresh trials have confirmed it: whole, each in a session of its own (see Confirm). It is not safe
// for concurrent use.
type Evidence struct {
	audits []*analysis.Audit  // by neighbour
	drifts []analysis.Drift   // of D0 and of each neighbour
	before []*analysis.Report // in a confirmation, of the neighbours that are not confirmed: what they showed; nil = it is confirmed
	budget int
}

// confirmBudget is how many times audit.max_trials a confirmation may take at most; see analysis.ConfirmationBudget.
const confirmBudget = 2

// NewEvidence begins the audit of a claim. opt is for each neighbour.
func NewEvidence(claim analysis.Claim, opt analysis.Options, neighbours int) (*Evidence, error) {
	e := &Evidence{drifts: make([]analysis.Drift, 1+neighbours), budget: confirmBudget * opt.MaxTrials}
	for range neighbours {
		a, err := analysis.New(claim, opt)
		if err != nil {
			return nil, err
		}
		e.audits = append(e.audits, a)
	}
	return e, nil
}

// Add takes one round: a trial on D0 and one on each neighbour; in a confirmation, on those that Separation does not skip.
func (e *Evidence) Add(round replay.Round) {
	e.drifts[0].Add(round[0])
	for i, a := range e.audits {
		if e.settled(i) {
			continue
		}
		e.drifts[i+1].Add(round[i+1])
		a.Add(round[0], round[i+1])
	}
}

// Report returns what one neighbour shows.
func (e *Evidence) Report(i int) analysis.Report {
	if e.settled(i) {
		return *e.before[i]
	}
	return analysis.Temper(e.audits[i].Report(), &e.drifts[0], &e.drifts[i+1])
}

// Audit returns the audit of one neighbour, for figures.
func (e *Evidence) Audit(i int) *analysis.Audit { return e.audits[i] }

// Decided reports whether further rounds cannot change the verdict: one neighbour is enough for a violation, and the budget is the
// same for all. A confirmation goes on while it may still confirm one.
func (e *Evidence) Decided() bool {
	some, all := false, true
	for i, a := range e.audits {
		if e.settled(i) {
			continue
		}
		some, all = some || a.Decided(), all && a.Decided()
	}
	if !e.Confirming() || !some {
		return some
	}
	return all || e.Found()
}

// Found reports whether a neighbour shows a violation: a suspicion before a confirmation, a verdict in one.
func (e *Evidence) Found() bool {
	for i, a := range e.audits {
		if !e.settled(i) && a.Decided() && e.Report(i).Verdict == analysis.Violation {
			return true
		}
	}
	return false
}

// Confirming reports whether a confirmation has begun.
func (e *Evidence) Confirming() bool { return e.before != nil }

// settled reports whether a confirmation is not about a neighbour.
func (e *Evidence) settled(i int) bool { return e.before != nil && e.before[i] != nil }

// Confirm begins the confirmation of what Found reports: the rounds that Add takes from now on are separate ones. What hoisted trials
// show is confirmed at the audit's own error rate, so that this rate rests on nothing that hoisting rests on.
func (e *Evidence) Confirm(hoisted bool) error {
	level := float64(analysis.ConfirmationLevel)
	if hoisted {
		level = 1
	}
	before := make([]*analysis.Report, len(e.audits))
	for i, a := range e.audits {
		r := e.Report(i)
		if r.Verdict != analysis.Violation {
			before[i] = &r
			continue
		}
		if err := a.Confirm(min(analysis.ConfirmationBudget(r.Trials.D0), e.budget), level); err != nil {
			return err
		}
	}
	e.before, e.drifts = before, make([]analysis.Drift, len(e.drifts))
	return nil
}

// Separation says how the trials of the rounds at hand are replayed: nil before a confirmation.
func (e *Evidence) Separation(varyText bool) *replay.Separation {
	if !e.Confirming() {
		return nil
	}
	s := &replay.Separation{VaryText: varyText, Skip: make([]bool, 1+len(e.audits))}
	for i := range e.audits {
		s.Skip[i+1] = e.settled(i)
	}
	return s
}

// Wealth returns the largest log-wealth of all neighbours, 0 at least.
func (e *Evidence) Wealth() float64 {
	most := 0.0
	for i := range e.audits {
		if w := float64(e.Report(i).WealthLog); !math.IsNaN(w) {
			most = max(most, w)
		}
	}
	return most
}

// Size returns about how many bytes of memory the evidence holds.
func (e *Evidence) Size() int {
	n := 0
	for i := range e.drifts {
		n += e.drifts[i].Size()
	}
	for _, a := range e.audits {
		n += a.Size()
	}
	return n
}
