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

// phases are what came before the pairs of now: the trials that showed a violation, if it is being confirmed, and the
// violation, if it is being measured.
type phases struct {
	first    suspected // of a confirmation
	measured measured
}

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
	o, v := &a.observed, &a.evidence
	r := a.Report()
	switch {
	case a.phases.measured.pairs > 0:
		return errors.New("analysis: the violation is being measured already")
	case r.Verdict != Violation || v.detectedAt == 0:
		return errors.New("analysis: there is no violation with a bound to measure")
	case budget < 1:
		return fmt.Errorf("analysis: a measurement takes a budget of at least one pair, not %d", budget)
	}
	a.phases.measured = measured{pairs: o.pairs, most: a.opts.MaxTrials, lower: float64(r.EpsilonLower), next: o.pairs + max(firstMeasured, o.pairs-a.phases.first.pairs), last: float64(r.EpsilonLower)}
	a.opts.MaxTrials, a.certificate = o.pairs+budget, nil
	if t := a.phases.wealthNeeded(a.opts.alpha()) + v.parts(); t != v.threshold {
		v.require(t)
	}
	v.due = true
	return nil
}

// MeasurementRuns reports whether a measurement has begun and further pairs can raise the bound.
func (a *Audit) MeasurementRuns() bool {
	m := a.phases.measurement(&a.observed, a.opts.MaxTrials, a.Decided())
	return m != nil && m.State == MeasurementRunning
}

// measuring reports whether the pairs now are of a measurement.
func (p *phases) measuring() bool { return p.measured.pairs > 0 }

// atViolation returns the number of pairs at the violation: all pairs so far, unless it is being measured.
func (p *phases) atViolation(pairs int) int {
	if p.measuring() {
		return p.measured.pairs
	}
	return pairs
}

// mostPairs returns the number of pairs at which the verdict is due: the most of the phase, unless it is a measurement.
func (p *phases) mostPairs(most int) int {
	if p.measuring() {
		return p.measured.most
	}
	return most
}

// compare compares the bound with that at half as many pairs, at the end of a block. It ends the measurement of trials
// that certainly depend on each other.
func (p *phases) compare(o *observations, v *evidence) {
	m := &p.measured
	switch {
	case !p.measuring() || m.steady == steadyLooks:
		return
	case o.unsound() != "":
		m.steady = steadyLooks
		return
	case o.pairs < m.next:
		return
	}
	now := max(m.lower, v.lower())
	if m.steady++; now > m.last {
		m.steady = 0
	}
	m.last, m.next = now, o.pairs+(o.pairs-p.first.pairs)
}

// measurement returns the measurement for the report, nil before it begins.
func (p *phases) measurement(o *observations, most int, decided bool) *Measurement {
	m := &p.measured
	if !p.measuring() {
		return nil
	}
	r := &Measurement{State: MeasurementRunning, Pairs: o.pairs - m.pairs, MaxPairs: most - m.pairs, ReportedLower: Float(m.lower)}
	switch {
	case o.unsound() != "":
		r.State = MeasurementUnsound
	case m.steady == steadyLooks:
		r.State = Measured
	case decided:
		r.State = MeasurementExhausted
	}
	return r
}

// bound returns the bound of the report.
func (p *phases) bound(o *observations, v *evidence) float64 {
	lower := v.lower()
	if o.monotony.constant() || o.unsound() != "" {
		lower = 0
	}
	if p.measuring() {
		return max(p.measured.lower, lower)
	}
	if p.first.detectedAt > 0 {
		lower = min(lower, p.first.lower)
	}
	return lower
}

// measuredLevel returns the level of the bound during the measurement of a violation that was confirmed at c times
// alpha.
func measuredLevel(c, alpha float64) float64 { return alpha * math.Max(0, 1-c*alpha) }
