// Package evidence holds the evidence of the trials of one query: rounds in, reports out. Among the stages that replay
// queries or read recorded results, only this package uses package analysis, so that all of them judge alike. It is
// pure: no I/O, no clock, no randomness.
package evidence

import (
	"cmp"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Evidence compares the outcomes of one query on D0 with those on each neighbour. A violation in the first trials is a
// suspicion: it is reported after new trials have confirmed it, without hoisting and each in its own session (see
// Confirm), and if there is a twin of D0, after that has answered like D0 (see Control). It is not safe for concurrent
// use.
type Evidence struct {
	audits []*analysis.Audit // by neighbour: of trials of the whole query
	budget int               // of a confirmation, in pairs
	observed
	phases
	streams // of other trials
}

// confirmBudget times audit.max_trials bounds the trials of a confirmation; see analysis.ConfirmationBudget.
const confirmBudget = 2

// New begins the audit of a claim. opt applies to each neighbour. The error is an *analysis.InfeasibleError for a claim
// that cannot be refuted within opt.MaxTrials.
func New(claim analysis.Claim, opt analysis.Options, neighbours int) (*Evidence, error) {
	if opt = opt.For(claim); !opt.NoClaim {
		opt.Share = cmp.Or(opt.Share, 1) * starts[0]
	}
	opt.Suspicion = true
	return newEvidence(claim, opt, neighbours)
}

// NewRecorded is New for outcomes that are read from files, which no fresh trials confirm: in the order of their
// execution, or in random order, in which drift does not show.
func NewRecorded(claim analysis.Claim, opt analysis.Options, neighbours int, inOrder bool) (*Evidence, error) {
	e, err := newEvidence(claim, opt, neighbours)
	if err != nil {
		return nil, err
	}
	if e.recorded = true; !inOrder {
		e.drifts = nil
	}
	return e, nil
}

func newEvidence(claim analysis.Claim, opt analysis.Options, neighbours int) (*Evidence, error) {
	opt = opt.For(claim)
	e := &Evidence{observed: observed{drifts: make([]analysis.Drift, 1+neighbours)}, budget: confirmBudget * opt.MaxTrials}
	var err error
	e.audits, err = begin(claim, opt, neighbours)
	return e, err
}

func begin(claim analysis.Claim, opt analysis.Options, n int) (all []*analysis.Audit, err error) {
	for range n {
		a, err := analysis.New(claim, opt)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// Add adds one round: the outcomes on D0 and on each neighbour, or those of the present Stage. It ignores the outcomes
// of worlds that Settled marks.
func (e *Evidence) Add(round []outcome.Outcome) { e.AddPart(round, nil) }

// AddPart is Add for a round that may have left out worlds: spared marks them, D0 first; nil = none.
func (e *Evidence) AddPart(round []outcome.Outcome, spared []bool) {
	if e.Controlling() {
		e.addControl(round)
		return
	}
	e.count(0, round[0])
	for i, a := range e.audits {
		if e.settled(i) || spared != nil && spared[i+1] || e.exhausted(i) || e.vacuous(i) {
			continue
		}
		e.count(i+1, round[i+1])
		a.Add(round[0], round[i+1])
	}
	e.giveUp()
}

// Report returns the present result for one neighbour.
func (e *Evidence) Report(i int) analysis.Report {
	switch {
	case e.before != nil && e.before[i] != nil:
		return *e.before[i]
	case e.measured != nil && e.measured[i] != nil:
		return *e.measured[i]
	}
	return e.withControl(e.suspicion(i), i)
}

// suspicion returns the report of the present trials of a neighbour without the state of a control.
func (e *Evidence) suspicion(i int) analysis.Report {
	r := e.report(i, e.drifts)
	if r.Verdict == analysis.Violation {
		return r
	}
	if by := e.streams.accuser(i); by != Whole {
		return e.streams.of(by).audits[i].Report()
	}
	return r
}

// report returns the result of an audit during which the worlds drifted as given.
func (e *Evidence) report(i int, drifts []analysis.Drift) analysis.Report {
	r := e.audits[i].Report()
	if drifts != nil {
		r = analysis.Temper(r, &drifts[0], &drifts[i+1])
	}
	if e.failure != "" && !e.recorded {
		r.Warnings = append(r.Warnings, withheld.Sprintf("try the query, which fails with SQLSTATE %s, with psql in the shadow database, as the replay role", e.failure))
	}
	return e.withLeftOut(e.withReads(e.withUnconfirmed(r, i)), i)
}

// Neighbours returns the number of neighbours.
func (e *Evidence) Neighbours() int { return len(e.audits) }

// Audit returns the audit of one neighbour, for figures: that of the trials of the whole query.
func (e *Evidence) Audit(i int) *analysis.Audit { return e.audits[i] }

// Decided reports whether further rounds cannot change the verdict: one neighbour is sufficient for a violation, and
// otherwise the budget of each must be used, except of those without trials (see SetLeftOut). A confirmation continues as long as it may still confirm one. During a
// measurement it reports whether the measurement has ended, and during a control whether that has.
func (e *Evidence) Decided() bool {
	if e.Controlling() {
		return e.control.done()
	}
	if e.Measuring() {
		return e.measuredAll()
	}
	some, all := false, true
	for i, a := range e.audits {
		if e.settled(i) || e.vacuous(i) {
			continue
		}
		some, all = some || a.Decided() && !e.exhausted(i) || e.streams.accuser(i) != Whole, all && a.Decided()
	}
	if !e.Confirming() || !some {
		return some || all
	}
	return all || e.Found()
}

// Found reports whether a neighbour shows a violation: a suspicion before a confirmation, a verdict in one. During a
// control it reports whether that has passed.
func (e *Evidence) Found() bool {
	if e.Controlling() {
		return e.control.report().State == analysis.ControlPassed
	}
	for i, a := range e.audits {
		if !e.settled(i) && (a.Decided() || e.streams.accuser(i) != Whole) && e.Report(i).Verdict == analysis.Violation {
			return true
		}
	}
	return false
}

// Questionable reports whether the evidence is decided and a neighbour's verdict is not that there is no evidence.
// Trials may look like a violation, or depend on each other, only because of how they were replayed.
func (e *Evidence) Questionable() bool {
	if !e.Decided() {
		return false
	}
	for i := range e.audits {
		if !e.settled(i) && e.Report(i).Verdict != analysis.NoEvidence {
			return true
		}
	}
	return false
}

// Measure begins the measurement of the violation that Found reports, with at most the given number of rounds: the
// bounds of the neighbours that show it grow towards the true epsilon. It reports whether there is one that can be
// measured.
func (e *Evidence) Measure(rounds int) bool {
	measured, some := make([]*analysis.Report, len(e.audits)), false
	for i, a := range e.audits {
		r := e.Report(i)
		if e.settled(i) || r.Verdict != analysis.Violation || a.Measure(rounds) != nil {
			measured[i] = &r
			continue
		}
		some = true
	}
	if !some {
		return false
	}
	e.measured, e.between = measured, e.drifts
	if e.drifts != nil {
		e.drifts = make([]analysis.Drift, len(e.drifts))
	}
	return true
}

// measuredAll reports whether no neighbour needs further rounds of a measurement.
func (e *Evidence) measuredAll() bool {
	for i, a := range e.audits {
		if !e.settled(i) && a.MeasurementRuns() {
			return false
		}
	}
	return true
}

// Confirm begins the confirmation of what Found reports: from now on, Add takes trials with a session of their own,
// after a control with those of the twin in place of those of D0. A violation shown by hoisted trials, or by the first
// ones of sessions, is confirmed at the error rate of their part of the audit, so that this rate does not depend on
// what they assume. If it is not confirmed, whole trials go on; see giveUp.
func (e *Evidence) Confirm() error {
	before := make([]*analysis.Report, len(e.audits))
	set := map[int]aside{}
	for i := range e.audits {
		r, level := e.suspicion(i), float64(analysis.ConfirmationLevel)
		if e.control != nil {
			level = 1
		}
		switch {
		case r.Verdict != analysis.Violation:
			before[i] = &r
			continue
		case e.report(i, e.drifts).Verdict != analysis.Violation:
			level = 1
			by := e.streams.accuser(i)
			set[i] = aside{e.audits[i], by}
			e.audits[i] = e.streams.of(by).audits[i]
		}
		if err := e.audits[i].Confirm(min(analysis.ConfirmationBudget(r.Trials.D0), e.budget), level); err != nil {
			return err
		}
	}
	e.before, e.earlier = before, e.drifts
	s := &e.streams
	s.opening.audits, s.hoisted.audits, s.laws, s.aside = nil, nil, nil, set
	if e.drifts != nil {
		e.drifts = make([]analysis.Drift, len(e.drifts))
	}
	return nil
}

// Wealth returns the largest log-wealth of all neighbours, at least 0.
func (e *Evidence) Wealth() float64 {
	most := 0.0
	for i := range e.audits {
		if w := float64(e.Report(i).WealthLog); !math.IsNaN(w) {
			most = max(most, w)
		}
	}
	return most
}

// Size returns the approximate memory of the evidence in bytes.
func (e *Evidence) Size() int {
	n := 0
	for _, drifts := range [][]analysis.Drift{e.drifts, e.earlier, e.between} {
		for i := range drifts {
			n += drifts[i].Size()
		}
	}
	for _, a := range e.audits {
		n += a.Size()
	}
	if e.control != nil {
		n += e.control.Audit.Size()
	}
	return n + e.streams.size()
}

// Worst returns the most important neighbour, and the reports of all.
func (e *Evidence) Worst() (neighbour int, reports []analysis.Report) {
	reports = make([]analysis.Report, len(e.audits))
	for i := range reports {
		reports[i] = e.Report(i)
	}
	return Worst(reports), reports
}

// Worst returns the index of the most important report: a violation first, then one that is being controlled or
// confirmed or was not confirmed, then the highest lower bound, and last one without trials.
func Worst(reports []analysis.Report) int {
	worst := 0
	for i := range reports {
		if worse(&reports[i], &reports[worst]) {
			worst = i
		}
	}
	return worst
}

func worse(a, b *analysis.Report) bool {
	if (a.Verdict == analysis.Violation) != (b.Verdict == analysis.Violation) {
		return a.Verdict == analysis.Violation
	}
	if suspected := a.Confirmation != nil || a.Control != nil; suspected != (b.Confirmation != nil || b.Control != nil) {
		return suspected
	}
	if vacuous := a.ReasonCode == analysis.Vacuous; vacuous != (b.ReasonCode == analysis.Vacuous) {
		return !vacuous
	}
	return a.EpsilonLower > b.EpsilonLower
}
