package evidence

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// starts are the shares of the starts of the whole trials of a neighbour, of the error rate of whole trials: together all
// of it.
var starts = [...]float64{7. / 8, 7. / 64, 1. / 64}

// Unconfirmed counts the suspicions of a neighbour that fresh trials did not confirm.
type Unconfirmed struct {
	Suspicions int
	Pairs      int // of the whole trials that showed them
}

// giveUp ends a confirmation that has failed. What another kind of trials showed does not count any more, and whole
// trials go on where they were. If whole trials showed it, they begin again: with new evidence, the rest of their
// budget and a share of the error rate. The evidence stays as it is if none of them can go on.
func (e *Evidence) giveUp() {
	s := &e.streams
	if !e.Confirming() || e.Measuring() || e.recorded {
		return
	}
	for i, a := range e.audits {
		if !e.settled(i) && !a.Decided() {
			return
		}
	}
	if e.Found() {
		return
	}
	next, unconfirmed := slices.Clone(e.audits), append([]Unconfirmed(nil), e.unconfirmed...)
	if unconfirmed == nil {
		unconfirmed = make([]Unconfirmed, len(e.audits))
	}
	some := false
	for i := range e.audits {
		if e.settled(i) {
			continue
		}
		unconfirmed[i].Suspicions++
		if x, ok := s.aside[i]; ok {
			next[i], some = x.Audit, true
		} else if a := e.again(i); a != nil {
			unconfirmed[i].Pairs += e.audits[i].Report().Confirmation.After
			next[i], some = a, true
		}
	}
	if !some {
		return
	}
	e.audits, e.unconfirmed = next, unconfirmed
	e.before, e.control, e.drifts, e.earlier, s.aside = nil, nil, e.earlier, nil, nil
	const reason = "trials showed a violation that fresh trials of the whole query did not confirm"
	s.opening.refuted, s.hoisted.refuted = reason, reason
}

// again returns new evidence of the whole trials of a neighbour after a suspicion that was not confirmed; nil if they
// are known to depend on each other, began too often, or have no budget left with which they could refute the claim.
func (e *Evidence) again(i int) *analysis.Audit {
	a, past := e.audits[i], Unconfirmed{}
	if e.unconfirmed != nil {
		past = e.unconfirmed[i]
	}
	left := e.budget/confirmBudget - past.Pairs - a.Report().Confirmation.After
	if past.Suspicions+1 >= len(starts) || left < 1 || !a.Unexplained() {
		return nil
	}
	fresh, err := a.Again(starts[past.Suspicions+1]/starts[past.Suspicions], left)
	if err != nil {
		return nil
	}
	return fresh
}

// withUnconfirmed adds the suspicions of a neighbour that were not confirmed to its report.
func (e *Evidence) withUnconfirmed(r analysis.Report, i int) analysis.Report {
	if e.unconfirmed == nil || e.unconfirmed[i].Suspicions == 0 {
		return r
	}
	r.UnconfirmedSuspicions = e.unconfirmed[i].Suspicions
	if e.unconfirmed[i].Pairs > 0 {
		r.Warnings = append(slices.Clone(r.Warnings), withheld.Sprintf("%d pairs of trials showed a violation that fresh trials did not confirm; the audit went on with new trials",
			e.unconfirmed[i].Pairs))
	}
	return r
}
