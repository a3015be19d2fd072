package evidence

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// control compares D0 with its twin, a second copy of the same data, after trials have shown a violation. Noise that
// belongs to a copy differs between the two, and no test of the trials of D0 and a neighbour can see it.
type control struct {
	Audit    *analysis.Audit
	Separate bool // each trial has a separate session, as the first ones of sessions showed the violation
	Anew     bool // the copies were made anew after a first control
}

// done reports whether further trials cannot change the outcome.
func (c *control) done() bool {
	return c.Audit.Exhausted() || c.report().State != analysis.ControlRunning
}

func (c *control) report() *analysis.Control {
	r := analysis.ControlOf(c.Audit)
	r.Recreated = c.Anew
	return r
}

// Control begins the control of what Found reports: from now on, Add takes the trials of rounds on D0 and on the twin.
// If it passes, Confirm goes on with trials on the twin in place of D0. A second call before that repeats the control,
// for copies that were made anew in the meantime: from then on, Add takes the trials on these.
func (e *Evidence) Control() error {
	pairs, opening := 0, true
	for i := range e.audits {
		if r := e.suspicion(i); r.Verdict == analysis.Violation {
			pairs = max(pairs, r.Trials.D0)
			opening = opening && e.report(i, e.drifts).Verdict != analysis.Violation && e.streams.accuser(i) == Opening
		}
	}
	a, err := e.audits[0].Control(analysis.ControlBudget(pairs, e.budget))
	if err != nil {
		return err
	}
	e.control = &control{a, opening, e.control != nil}
	e.readsKnown = false // the trials read another copy
	return nil
}

// Controlling reports whether rounds are those of a control, or a control has ended the audit.
func (p *phases) Controlling() bool { return p.control != nil && !p.Confirming() }

// TwinInPlace reports whether the trials of the twin are in the place of those of D0: in a confirmation after a
// control, and in the measurement after that.
func (p *phases) TwinInPlace() bool { return p.control != nil && p.Confirming() }

// addControl adds one round of a control: the outcomes on D0 and on the twin.
func (e *Evidence) addControl(round []outcome.Outcome) {
	if !e.control.done() {
		e.trials += 2
		e.control.Audit.Add(round[0], round[1])
	}
}

// withControl adds the state of the control to a report.
func (e *Evidence) withControl(r analysis.Report, i int) analysis.Report {
	switch {
	case e.recorded || r.Verdict != analysis.Violation && r.Confirmation == nil:
		return r
	case e.control == nil && r.Verdict == analysis.Violation && r.Confirmation != nil:
		r.Control = &analysis.Control{State: analysis.ControlMissing}
	case e.Controlling():
		return e.withWeakControl(r.Controlled(e.control.report()))
	case e.TwinInPlace() && !(e.before != nil && e.before[i] != nil):
		r.Control = e.control.report()
		return e.withWeakControl(r)
	}
	return r
}

// strongControl is the number of pairs of the first trials from which their control has its full length.
const strongControl = 1000

// withWeakControl adds to a report that the budget shortens the control.
func (e *Evidence) withWeakControl(r analysis.Report) analysis.Report {
	if most := e.budget / confirmBudget; most < strongControl {
		r.Warnings = append(slices.Clone(r.Warnings), withheld.Sprintf("max_trials is %d: below %d, the control on the twin of D0 is shorter, and noise that belongs to a copy may pass it",
			most, strongControl))
	}
	return r
}
