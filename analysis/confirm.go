package analysis

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
)

// Confirmation is how a violation fares on trials that share nothing with those that showed it. It is made by [Audit.Confirm].
type Confirmation struct {
	State ConfirmationState `json:"state"`
	// Pairs is the number of fresh pairs so far, MaxPairs how many there are at most. Report.Trials counts them as well.
	Pairs    int `json:"pairs"`
	MaxPairs int `json:"max_pairs"`
	// After is the number of pairs that came before the fresh ones, and SuspectedLower the bound that they showed: 0 where they showed
	// that answers never vary.
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
	pairs      int     // of trials; 0 = there is no confirmation
	detectedAt int     // 0 = the answers never varied
	lower      float64 // the bound
	level      float64 // of the confirmation, as a multiple of the audit's error rate
	kept       int     // pairs of the past that were kept
	relation   int     // the relation between trials that showed most, of the slot, and the log of its ratio
	slot       int
	ratio      float64
}

// Confirm begins the confirmation of a violation: pairs from now on are of fresh trials, which the caller takes in sessions of
// their own. Evidence, bound and tests of independence begin anew. What was learned stays: the bets follow from earlier pairs, as all
// bets do, and the parts of the wealth keep the proportions that they have won. So the price is little more than what somebody who knows
// both laws would need. budget is the greatest number of fresh pairs. level is the error rate of the confirmation as a multiple of the
// audit's, 1 to ConfirmationLevel; it is 1 where the first trials showed no epsilon, but answers that never vary. It returns an error where
// there is no violation, or where one is being confirmed already.
func (a *Audit) Confirm(budget int, level float64) error {
	switch {
	case a.first.pairs > 0:
		return errors.New("analysis: the violation is being confirmed already")
	case a.detectedAt == 0 && !a.sameAnswer():
		return errors.New("analysis: there is no violation to confirm")
	case budget < 1 || !(level >= 1 && level <= ConfirmationLevel):
		return fmt.Errorf("analysis: a confirmation takes a budget of at least one pair and a level of 1 to %d, not %d and %v", ConfirmationLevel, budget, level)
	}
	a.first = suspected{pairs: a.pairs, detectedAt: a.detectedAt, level: 1, relation: -1, ratio: math.Inf(-1)}
	if a.detectedAt > 0 {
		a.first.lower, a.first.level = a.lower(), level
	}
	for i, s := range a.slots {
		for r, e := range s.independence.Each(s.shared) {
			if e > a.first.ratio {
				a.first.relation, a.first.slot, a.first.ratio = r, i, e
			}
		}
	}
	a.climb()
	a.opts.MaxTrials = a.pairs + budget
	a.threshold = a.wealthNeeded()
	a.detectedAt, a.nextHold, a.certificate, a.monotony = 0, 0, nil, monotony{}
	a.turn(false) // books the block at hand
	a.climb()
	a.anew()
	return nil
}

// ConfirmationLevel is the greatest error rate of a confirmation as a multiple of the audit's. The first trials guard that rate, so that
// any level is sound while trials are independent. This one bounds the violations where the first trials are worthless, because they
// depend on each other in a way that nothing shows and that ends with a session.
const ConfirmationLevel = 2

// wealthNeeded returns the log of the wealth that a violation takes.
func (a *Audit) wealthNeeded() float64 {
	if !a.confirming() {
		return -math.Log(1 - a.opts.Confidence)
	}
	return -math.Log(a.first.level * (1 - a.opts.Confidence))
}

// ConfirmationBudget is the number of fresh pairs that a confirmation takes at most, of a violation that so many pairs showed. Some
// violations show by luck in a quarter of the pairs that they usually take.
func ConfirmationBudget(pairs int) int { return max(leastBudget, budgetFactor*pairs) }

const (
	leastBudget  = 500
	budgetFactor = 8
)

// anew lets evidence and tests begin anew with the block that was opened just now.
func (a *Audit) anew() {
	a.epoch.Anew = true
	a.lead.Renew()
	a.epoch.Opened = 0
	a.lead.Look(&a.book, a.epoch)
	a.front = -1
	a.advance()
	for _, s := range a.slots {
		s.watch = watch{}
		s.independence.Restart()
	}
	if len(a.slots) > 0 {
		a.first.kept = len(a.slots[0].past[0])
	}
	a.answers = answers{}
}

// confirming reports whether the pairs now are of a confirmation.
func (a *Audit) confirming() bool { return a.first.pairs > 0 }

// confirmation returns what the report says of it, nil before it begins. v is the verdict.
func (a *Audit) confirmation(v Verdict) *Confirmation {
	if !a.confirming() {
		return nil
	}
	c := &Confirmation{
		State: ConfirmationRunning, Pairs: a.pairs - a.first.pairs, MaxPairs: a.opts.MaxTrials - a.first.pairs,
		After: a.first.pairs, SuspectedLower: Float(a.first.lower),
	}
	switch {
	case v == Violation:
		c.State = Confirmed
	case a.Decided():
		c.State = NotConfirmed
	}
	return c
}

// likelyRelation is the log of the ratio from which a relation between trials is named as the reason for which a violation was not
// confirmed: e^3, where a conviction before would have waited from a weighted average of 3 on.
const likelyRelation = 3

// unconfirmed says how a confirmation stands that has shown no violation.
func (a *Audit) unconfirmed() string {
	n := a.pairs - a.first.pairs
	if !a.Decided() {
		return fmt.Sprintf("%d pairs of trials show a violation, which is being confirmed on fresh sessions: %d pairs so far", a.first.pairs, n)
	}
	if r := a.first.relation; r >= 0 && a.first.ratio >= likelyRelation && a.first.slot < len(a.slots) {
		return fmt.Sprintf("trials depend on each other: %s, and %d pairs on fresh sessions do not confirm the violation that %d pairs showed",
			a.relationWords(r, a.first.slot), n, a.first.pairs)
	}
	return fmt.Sprintf("trials depend on each other: the violation that %d pairs showed is not confirmed on fresh sessions, in %d pairs", a.first.pairs, n)
}

// relationWords names a relation between trials and the slot that shows it, without values of rows.
func (a *Audit) relationWords(r, slot int) string {
	words := fmt.Sprintf("%s (lag %d)", dependence.Relations[r].Words, dependence.Relations[r].Lag)
	if place := a.slotWords(slot).String(); place != "" {
		words += ", most in " + place
	}
	return words
}
