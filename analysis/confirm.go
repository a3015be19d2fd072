package analysis

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
)

// Confirmation is the state of a violation on fresh trials, which share nothing with the trials that showed it. See
// [Audit.Confirm].
type Confirmation struct {
	State ConfirmationState `json:"state"`
	// Pairs is the number of fresh pairs so far, MaxPairs the greatest number. Report.Trials counts them as well.
	Pairs    int `json:"pairs"`
	MaxPairs int `json:"max_pairs"`
	// After is the number of pairs before the fresh ones. SuspectedLower is the bound that those showed, 0 if they
	// showed that answers never vary.
	After          int   `json:"after"`
	SuspectedLower Float `json:"suspected_epsilon_lower"`
}

// ConfirmationState is how far a confirmation is.
type ConfirmationState string

// The states of a confirmation.
const (
	ConfirmationRunning ConfirmationState = "running"
	Confirmed           ConfirmationState = "confirmed"
	NotConfirmed        ConfirmationState = "not_confirmed"
)

// suspected is what the trials before a confirmation showed.
type suspected struct {
	pairs      int     // of trials before the confirmation; 0 = no confirmation
	detectedAt int     // 0 = the answers never varied
	lower      float64 // the bound
	level      float64 // of the confirmation, as a multiple of the audit's error rate
	kept       int     // pairs of the past that were kept
	relation   int     // the relation between trials that showed most, of the slot, and the log of its ratio
	slot       int
	ratio      float64
}

// Confirm begins the confirmation of a violation. From now on pairs are of fresh trials, which the caller runs in
// separate sessions. Evidence, bound and tests of independence restart. What was learned is kept: the bets follow from
// earlier pairs, as all bets do, and the parts of the wealth keep their proportions. A confirmation therefore takes
// little more than the pairs that are needed when both laws are known. budget is the greatest number of fresh pairs.
// level is the error rate of the confirmation as a multiple of the audit's, from 1 to ConfirmationLevel; it is 1 if the
// first trials showed answers that never vary and no epsilon. Confirm returns an error if there is no violation, or if
// one is being confirmed already.
func (a *Audit) Confirm(budget int, level float64) error {
	o, v := &a.observed, &a.evidence
	switch {
	case a.phases.first.pairs > 0:
		return errors.New("analysis: the violation is being confirmed already")
	case v.detectedAt == 0 && !a.sameAnswer():
		return errors.New("analysis: there is no violation to confirm")
	case budget < 1 || !(level >= 1 && level <= ConfirmationLevel):
		return fmt.Errorf("analysis: a confirmation takes a budget of at least one pair and a level of 1 to %d, not %d and %v", ConfirmationLevel, budget, level)
	}
	a.phases.first = suspected{pairs: o.pairs, detectedAt: v.detectedAt, level: 1, relation: -1, ratio: math.Inf(-1)}
	if v.detectedAt > 0 {
		a.phases.first.lower, a.phases.first.level = v.lower(), level
	}
	for i, s := range o.scores.Slots {
		for r, e := range s.Independence.Each(s.Shared) {
			if e > a.phases.first.ratio {
				a.phases.first.relation, a.phases.first.slot, a.phases.first.ratio = r, i, e
			}
		}
	}
	v.climb()
	a.opts.MaxTrials = o.pairs + budget
	if v.detectedAt > 0 {
		v.forget()
	}
	a.setThreshold()
	v.detectedAt, a.nextHold, a.certificate, o.monotony = 0, 0, nil, monotony{}
	a.turn(false) // books the current block
	v.climb()
	v.restart()
	a.phases.first.kept = o.restart()
	return nil
}

// ConfirmationLevel is the greatest error rate of a confirmation as a multiple of the audit's. While trials are
// independent, the first trials keep the audit's rate, and any level is sound. This level bounds the rate of false
// violations if the first trials are worthless because they depend on each other undetected, in a way that ends with a
// session.
const ConfirmationLevel = 2

// SetShare gives the audit another share of the error rate (see Options.Share), a larger one: that of audits that are
// not made. Whether they are made must not depend on the results of the trials. It does nothing once a violation was
// found.
func (a *Audit) SetShare(share float64) {
	if a.phases.confirming() || a.evidence.detectedAt > 0 || !(share > a.opts.Share && share <= 1) {
		return
	}
	a.opts.Share = share
	a.setThreshold()
	a.nextLook, a.evidence.due = min(a.nextLook, a.observed.pairs+1), true
}

// setThreshold sets the wealth that a point of the claim takes for a violation.
func (a *Audit) setThreshold() {
	a.evidence.threshold = a.phases.wealthNeeded(a.opts.alpha()) + a.evidence.parts()
}

// wealthNeeded returns the log of the wealth that a violation takes at an error rate.
func (p *phases) wealthNeeded(alpha float64) float64 {
	switch {
	case !p.confirming():
		return -math.Log(alpha)
	case p.measuring() && p.first.detectedAt > 0:
		return -math.Log(measuredLevel(p.first.level, alpha))
	}
	return -math.Log(p.first.level * alpha)
}

// ConfirmationBudget returns the greatest number of fresh pairs for the confirmation of a violation that was shown by
// the given number of pairs. Some violations are found by luck in a quarter of the pairs that they usually take.
func ConfirmationBudget(pairs int) int { return max(leastBudget, budgetFactor*pairs) }

const (
	leastBudget  = 500
	budgetFactor = 8
)

// confirming reports whether the pairs now are of a confirmation.
func (p *phases) confirming() bool { return p.first.pairs > 0 }

// Unexplained reports whether a confirmation has ended without the violation, and nothing shows that trials depend on
// each other: no test of the first or of the fresh trials, nor first answers that never varied.
func (a *Audit) Unexplained() bool {
	f := &a.phases.first
	return a.phases.confirming() && !a.phases.measuring() && a.Decided() && a.evidence.detectedAt == 0 &&
		f.detectedAt > 0 && f.ratio < likelyRelation && a.observed.unsound() == ""
}

// Again returns an audit without evidence of the same claim, with the same options but for the budget and the error
// rate, which is multiplied by share. The error is that of New.
func (a *Audit) Again(share float64, budget int) (*Audit, error) {
	o := a.opts
	o.Share, o.MaxTrials = o.Share*share, budget
	return New(a.claim, o)
}

// confirmation returns the confirmation for the report, nil before it begins. v is the verdict after pairs of the most
// pairs.
func (p *phases) confirmation(v Verdict, pairs, most int, decided bool) *Confirmation {
	if !p.confirming() {
		return nil
	}
	c := &Confirmation{
		State: ConfirmationRunning, Pairs: p.atViolation(pairs) - p.first.pairs, MaxPairs: p.mostPairs(most) - p.first.pairs,
		After: p.first.pairs, SuspectedLower: Float(p.first.lower),
	}
	switch {
	case v == Violation:
		c.State = Confirmed
	case decided:
		c.State = NotConfirmed
	}
	return c
}

// likelyRelation is the log of the ratio from which a relation between trials is reported as the reason why a violation
// was not confirmed. The ratio is e^3; the first violation would already have been held back at a weighted average of
// 3.
const likelyRelation = 3

// unconfirmed returns the reason for the verdict while a confirmation has not shown the violation.
func (p *phases) unconfirmed(o *observations, decided bool) string {
	n := o.pairs - p.first.pairs
	if !decided {
		return fmt.Sprintf("%d pairs of trials show a violation, which is being confirmed on fresh sessions: %d pairs so far", p.first.pairs, n)
	}
	if r := p.first.relation; r >= 0 && p.first.ratio >= likelyRelation && p.first.slot < len(o.scores.Slots) {
		return fmt.Sprintf("trials depend on each other: %s, and %d pairs on fresh sessions do not confirm the violation that %d pairs showed",
			o.relationWords(r, p.first.slot), n, p.first.pairs)
	}
	return fmt.Sprintf("trials depend on each other: the violation that %d pairs showed is not confirmed on fresh sessions, in %d pairs", p.first.pairs, n)
}

// relationWords returns the words for a relation between trials and the slot that shows it, without values of rows.
func (o *observations) relationWords(r, slot int) string {
	words := fmt.Sprintf("%s (lag %d)", dependence.Relations[r].Words, dependence.Relations[r].Lag)
	if place := o.scores.SlotWords(slot).String(); place != "" {
		words += ", most in " + place
	}
	return words
}
