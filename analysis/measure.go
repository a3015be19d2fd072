package analysis

import (
	"errors"
	"fmt"
	"math"
)

// Measurement is the state of the trials after a violation, which raise its bound. See [Audit.Measure].
type Measurement struct {
	State MeasurementState `json:"state"`
	// Pairs is the number of pairs since the violation, MaxPairs the greatest number. Report.Trials counts them as
	// well.
	Pairs    int `json:"pairs"`
	MaxPairs int `json:"max_pairs"`
	// ReportedLower is the bound with which the violation was found.
	ReportedLower Float `json:"reported_epsilon_lower"`
}

// MeasurementState is how far a measurement is.
type MeasurementState string

// The states of a measurement.
const (
	MeasurementRunning   MeasurementState = "running"
	Measured             MeasurementState = "measured"  // the bound hardly grows any more
	MeasurementExhausted MeasurementState = "exhausted" // the bound grew until the budget was used
	MeasurementUnsound   MeasurementState = "unsound"   // the worlds changed, or trials depend on each other: the bound is that of the violation
)

// measured is what a violation showed before its measurement.
type measured struct {
	pairs  int     // 0 = no measurement
	most   int     // pairs with which the confirmation had ended
	lower  float64 // the bound
	next   int     // pairs at which the bound is compared with the one at the last comparison
	last   float64 // which was this
	steady int     // comparisons in a row in which it did not grow
}

// A measurement ends when the bound has not grown in steadyLooks comparisons in a row. The first is after firstMeasured
// pairs, each other one after twice as many pairs as the one before.
const (
	steadyLooks   = 2
	firstMeasured = 256
)

// Measure begins the measurement of a violation: with further pairs the bound grows towards the true epsilon, until
// four times as many pairs do not raise it by a step of its grid. budget is the greatest number of further pairs. The
// verdict stays. Measure returns an error if the audit has no violation with a bound, or if it is measured already.
//
// The error rate stays that of the audit, alpha. Let L1 be the bound of the first pairs, and L2 that of the
// confirmation at the level c alpha. The violation's bound is min(L1, L2): while the laws allow it both exceed the true
// epsilon with probability at most c alpha^2, because the second holds whatever the first pairs were. A bound of the
// confirmation's pairs at the level alpha(1 - c alpha) then exceeds it with the remaining probability, and the greater
// of both bounds is at the level alpha. Without a confirmation, the bound of all pairs at the level alpha simply goes
// on.
func (a *Audit) Measure(budget int) error {
	r := a.Report()
	switch {
	case a.measured.pairs > 0:
		return errors.New("analysis: the violation is being measured already")
	case r.Verdict != Violation || a.detectedAt == 0:
		return errors.New("analysis: there is no violation with a bound to measure")
	case budget < 1:
		return fmt.Errorf("analysis: a measurement takes a budget of at least one pair, not %d", budget)
	}
	a.measured = measured{pairs: a.pairs, most: a.opts.MaxTrials, lower: float64(r.EpsilonLower), next: a.pairs + max(firstMeasured, a.pairs-a.first.pairs), last: float64(r.EpsilonLower)}
	a.opts.MaxTrials, a.certificate = a.pairs+budget, nil
	if t := a.wealthNeeded(); t != a.threshold {
		a.threshold, a.front = t, -1
		a.advance()
	}
	a.due = true
	return nil
}

// measuring reports whether the pairs now are of a measurement.
func (a *Audit) measuring() bool { return a.measured.pairs > 0 }

// atViolation returns the number of pairs at the violation: all pairs so far, unless it is being measured.
func (a *Audit) atViolation() int {
	if a.measuring() {
		return a.measured.pairs
	}
	return a.pairs
}

// mostPairs returns the number of pairs at which the verdict is due.
func (a *Audit) mostPairs() int {
	if a.measuring() {
		return a.measured.most
	}
	return a.opts.MaxTrials
}

// compare compares the bound with that at half as many pairs, at the end of a block. It ends the measurement of trials
// that certainly depend on each other.
func (a *Audit) compare() {
	m := &a.measured
	switch {
	case !a.measuring() || m.steady == steadyLooks:
		return
	case a.unsound() != "":
		m.steady = steadyLooks
		return
	case a.pairs < m.next:
		return
	}
	now := max(m.lower, a.lower())
	if m.steady++; now > m.last {
		m.steady = 0
	}
	m.last, m.next = now, a.pairs+(a.pairs-a.first.pairs)
}

// measurement returns the measurement for the report, nil before it begins.
func (a *Audit) measurement() *Measurement {
	m := &a.measured
	if !a.measuring() {
		return nil
	}
	r := &Measurement{State: MeasurementRunning, Pairs: a.pairs - m.pairs, MaxPairs: a.opts.MaxTrials - m.pairs, ReportedLower: Float(m.lower)}
	switch {
	case a.unsound() != "":
		r.State = MeasurementUnsound
	case m.steady == steadyLooks:
		r.State = Measured
	case a.Decided():
		r.State = MeasurementExhausted
	}
	return r
}

// bound returns the bound of the report.
func (a *Audit) bound() float64 {
	lower := a.lower()
	if a.monotony.constant() || a.unsound() != "" {
		lower = 0
	}
	if a.measuring() {
		return max(a.measured.lower, lower)
	}
	if a.first.detectedAt > 0 {
		lower = min(lower, a.first.lower)
	}
	return lower
}

// measuredLevel returns the level of the bound during the measurement of a violation that was confirmed at c times
// alpha.
func measuredLevel(c, alpha float64) float64 { return alpha * math.Max(0, 1-c*alpha) }
