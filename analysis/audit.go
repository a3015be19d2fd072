package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// The values that go in, named here so that they can be built from outside this module's internals.
type (
	// Outcome is the result of one trial.
	Outcome = outcome.Outcome
	// Column describes one column of a result.
	Column = outcome.Column
	// Value is one field of one row.
	Value = outcome.Value
	// Kind is the kind of a value.
	Kind = outcome.Kind
)

// The kinds of a value.
const (
	Null   = outcome.Null
	Number = outcome.Number
	Text   = outcome.Text
	Bool   = outcome.Bool
)

// Audit gathers evidence about one query on one pair of neighbouring datasets. It is not safe for concurrent use.
type Audit struct {
	claim Claim
	opts  Options

	observed observations
	evidence evidence
	apart    apart
	phases   phases

	nextTurn int // pairs at which the current block ends
	nextLook int
	nextHold int // pairs at which the next check is made whether a violation may be reported
	divideAt int // pairs at which wealth is divided among the scores again

	certificate *certificate // the event of the fixed budget, nil before half of it is used
	growths     growths      // no part of the state
	explained   explained    // no part of the state
}

// New starts an audit of a claim. It returns an *InfeasibleError when the budget is too small for any method to convict
// the claim, and an error that names every fault for a claim or an option out of its range.
func New(c Claim, o Options) (*Audit, error) {
	o = o.For(c).withDefaults()
	if err := validate(c, o); err != nil {
		return nil, err
	}
	if o.NoClaim {
		c.Epsilon = 0
		c.Curve = ""
	} else if err := feasible(c, o); err != nil {
		return nil, err
	}
	a := &Audit{
		claim: c, opts: o, observed: newObservations(), evidence: newEvidence(c, o),
		nextTurn: 1, nextLook: 1, divideAt: score.FirstDivision,
	}
	a.evidence.begin(&book.Epoch{})
	a.apart = newApart(a.evidence.lead.Null)
	a.observed.scores.Options = o.scores()
	a.observed.scores.Exact = exact.New(o.Unordered, o.FloatingPoint.lowBits() != score.Counted)
	return a, nil
}

// Add adds one pair of trials: a fresh execution on D0 and one on D1. The caller may change their rows afterwards.
func (a *Audit) Add(d0, d1 Outcome) {
	o := &a.observed
	h := a.fingerprints(&d0, &d1)
	// The first pair that differs still counts with the bets that were placed before it: bets that depended on it would
	// be unfair.
	varies := o.monotony.pairs >= frozenPairs && o.monotony.constant() && h != o.monotony.first
	o.add(&d0, &d1, h, a.nextTurn)
	if o.scores.Reader != nil {
		o.read(&d0, &d1, h, false, a.opts.MaxTrials, a.certificate)
	}
	if o.pairs == firstRetained {
		o.beginExact()
	}
	if !varies && (o.pairs >= a.nextLook || o.pairs >= a.nextTurn) {
		a.look()
	}
	if varies || o.pairs >= a.nextTurn {
		a.turn(varies)
		o.answers = answers{}
	}
}

// fingerprints returns hashes of a pair of results.
func (a *Audit) fingerprints(d0, d1 *Outcome) [2]uint64 {
	return [2]uint64{results.Fingerprint(d0, a.opts.Unordered), results.Fingerprint(d1, a.opts.Unordered)}
}

// Decided reports whether further trials cannot change the verdict: a violation is certain, or the budget is used.
// During a measurement it reports whether the measurement has ended.
func (a *Audit) Decided() bool {
	if a.phases.measuring() {
		return a.phases.measured.steady == steadyLooks || a.observed.pairs >= a.opts.MaxTrials
	}
	return a.evidence.detectedAt > 0 || a.observed.pairs >= a.opts.MaxTrials || a.opts.Deterministic == DeterministicViolation && a.sameAnswer()
}

// Budget returns the budget in pairs.
func (a *Audit) Budget() int { return a.opts.MaxTrials }

// Pairs returns the number of pairs so far.
func (a *Audit) Pairs() int { return a.observed.pairs }

// Exhausted reports whether the budget is used.
func (a *Audit) Exhausted() bool { return a.observed.pairs >= a.opts.MaxTrials }

// Wealth returns the log of the wealth against the claim now, 0 without a claim. It changes nothing: Add, Report
// and Figures record a detection.
func (a *Audit) Wealth() float64 {
	if a.evidence.claimAt < 0 {
		return 0
	}
	v := &a.evidence
	all := v.lead.Now(&v.book, v.epoch)
	for i := range v.sides {
		all = eprocess.LogAdd(all, v.sides[i].lead.Now(&v.book, v.epoch))
	}
	return all - v.parts()
}

// HighestWealth returns the greatest log of the wealth against the claim (of a curve, at its strongest point) at any of
// the looks so far, and 0 if it was never above that.
func (a *Audit) HighestWealth() float64 { return max(a.evidence.highest()-a.evidence.parts(), 0) }

// DetectedAt returns the number of pairs at which the bound passed the claim, 0 for not yet.
func (a *Audit) DetectedAt() int { return a.evidence.detectedAt }
