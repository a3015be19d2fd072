package analysis

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Control is the state of the control of a violation: fresh trials on D0 and on its twin, a second copy of the same
// data. If their answers differ, what they show belongs to the copy, and the difference between D0 and D1 may, too.
type Control struct {
	State ControlState `json:"state"`
	// Pairs is the number of pairs of trials on D0 and the twin so far, MaxPairs the greatest number.
	Pairs    int `json:"pairs"`
	MaxPairs int `json:"max_pairs"`
	// WealthLog is the log of the wealth against the claim that D0 and the twin answer alike, to which epsilon 0 belongs.
	WealthLog Float `json:"wealth_log"`
	// Recreated reports that the copies were made anew after a first control: this one, and the confirmation after it, are
	// on the new copies.
	Recreated bool `json:"recreated"`
	// Event is what differs most between D0 and the twin; null unless the control has blocked the violation.
	Event *ControlEvent `json:"event,omitempty"`
}

// ControlEvent is an event with its estimated probabilities on D0 and on the twin.
type ControlEvent struct {
	Partition   withheld.Text `json:"partition"`
	Description withheld.Text `json:"description"`
	D0          Float         `json:"probability_d0"`
	Twin        Float         `json:"probability_twin"`
}

// ControlState is how far a control is.
type ControlState string

// The states of a control.
const (
	ControlMissing ControlState = "no_twin" // there was none: violations are not controlled
	ControlRunning ControlState = "running"
	ControlPassed  ControlState = "passed"
	ControlBlocked ControlState = "blocked" // the answers on D0 and the twin differ, probably
	ControlNamed   ControlState = "named"   // they differ certainly
)

// Blocks reports whether the answers on D0 and the twin differ, so that there is no verdict.
func (c *Control) Blocks() bool {
	return c != nil && (c.State == ControlBlocked || c.State == ControlNamed)
}

// The wealth at its end with which a control blocks a violation, and that at which it ends and names the cause. If D0
// and the twin have one law, a control blocks with a probability of at most 1/BlockingWealth + 1/NamingWealth.
const (
	BlockingWealth = 20
	NamingWealth   = 1000
)

const (
	leastControl  = 100
	controlFactor = 8
)

// ControlBudget returns the number of pairs for the control of a violation that was shown by the given number of pairs,
// at most most: see docs/statistics.md.
func ControlBudget(pairs, most int) int {
	return min(max(leastControl, controlFactor*pairs), max(most, leastControl/8))
}

// Control returns the audit of D0, as D0, and its twin, as D1, at epsilon 0, with the options of this audit, for the
// given number of pairs.
func (a *Audit) Control(pairs int) (*Audit, error) {
	o := a.opts
	o.Share, o.Suspicion, o.NoClaim, o.Deterministic = 1, false, false, DeterministicIgnore
	o.Confidence, o.MaxTrials = 1-1./NamingWealth, pairs
	return New(Claim{}, o)
}

// ControlOf returns the report on a control.
func ControlOf(a *Audit) *Control {
	now, highest := a.Wealth(), a.HighestWealth()
	c := &Control{State: ControlRunning, Pairs: a.Pairs(), MaxPairs: a.Budget(), WealthLog: Float(now)}
	switch {
	case highest >= math.Log(NamingWealth):
		c.State, c.WealthLog = ControlNamed, Float(highest)
	case !a.Exhausted():
	case now >= math.Log(BlockingWealth):
		c.State = ControlBlocked
	default:
		c.State = ControlPassed
	}
	if !c.Blocks() {
		return c
	}
	if e := a.Report().Event; e != nil {
		c.Event = &ControlEvent{e.Partition, e.Description, e.D0, e.D1}
	}
	return c
}

// reveal returns a copy that prints with the values of rows; nil of nil.
func (c *Control) reveal() *Control {
	if c == nil || c.Event == nil {
		return c
	}
	r, e := *c, *c.Event
	e.Partition, e.Description = e.Partition.Revealed(), e.Description.Revealed()
	r.Event = &e
	return &r
}

// BlockedReason begins the reason of a violation that its control has blocked.
const BlockedReason = "answers differ between two copies of the same data"

// Controlled returns the report of a violation that is not confirmed yet with the state of its control.
func (r Report) Controlled(c *Control) Report {
	pairs := r.Trials.D0
	switch {
	case c.Blocks():
		certain := "probably"
		if c.State == ControlNamed {
			certain = "certainly"
		}
		r = r.inconclusive(fmt.Sprintf("%s: %d pairs of trials showed a violation, but %d pairs on D0 and its twin, which has the same rows, differ, too (%s; wealth %.3g). "+
			"What differs belongs to the copy: a materialised view or a table with noise, or a cache or a pool of noise. Draw it anew in every answer, or audit what fills it",
			BlockedReason, pairs, c.Pairs, certain, math.Exp(float64(c.WealthLog))))
	case c.State == ControlRunning:
		r = r.inconclusive(fmt.Sprintf("%d pairs of trials show a violation, which is being controlled on D0 and its twin: %d of %d pairs so far", pairs, c.Pairs, c.MaxPairs))
	}
	r.Control = c
	return r
}
