package analysis

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/internal/curve"
)

// Claim is the privacy loss that the engine states for a query.
type Claim struct {
	Epsilon float64 // nats; 0 is a legal claim
	Delta   float64 // in [0, 1)
	// Curve is a claim of many (epsilon, delta), which all hold; "" = the one above alone. With a curve the one above is
	// the curve's headline: see CurveClaim.
	Curve curve.Curve `json:",omitempty"`
}

// CurveClaim returns the claim of a curve, or without one that of (epsilon, delta).
func CurveClaim(c curve.Curve, epsilon, delta float64) Claim {
	if c != "" {
		p := c.Headline()
		epsilon, delta = p.Epsilon, p.Delta
	}
	return Claim{Epsilon: epsilon, Delta: delta, Curve: c}
}

// points returns the points at which the claim is tested. Each has an equal part of the error rate.
func (c Claim) points() []curve.Point {
	if c.Curve != "" {
		return c.Curve.Points()
	}
	return []curve.Point{{Epsilon: c.Epsilon, Delta: c.Delta}}
}

// String names the claim where one needs no delta.
func (c Claim) String() string {
	if c.Curve != "" {
		return "the curve " + string(c.Curve)
	}
	return fmt.Sprintf("epsilon %v", c.Epsilon)
}

// Query is what is known of a query.
type Query struct {
	// Bound is the greatest number in the query to which a value may be clipped: a greater shift is that of a value which
	// is not. 0 = not known.
	Bound float64
	// Constants are positive numbers with which the query calculates: by which it divides or multiplies, or which it adds.
	// What it does with up to two of them is undone before the lowest bits of its numbers are read. At most 6 are used.
	Constants []float64
	// Average says that a column of the answer is an average, which an engine can make of a sum and a count.
	Average bool
}

// Options tune an audit. The zero value of a field means its default.
type Options struct {
	// Confidence is the probability with which the bound never exceeds the true epsilon; in (0.5, 1).
	// Default 0.95.
	Confidence float64
	// Share is the part of the error rate, 1-Confidence, that this audit has, in (0, 1]: further audits of the same
	// claim have the rest. Default 1.
	Share float64
	// MaxTrials is the budget in pairs (one trial on D0, one on D1). Default by the claim: see DefaultTrials.
	MaxTrials int
	// NoClaim means that there is no claim: estimate and bound are computed, and the verdict is Inconclusive with the
	// reason "no claim". The claim's epsilon is ignored; its delta is used.
	NoClaim bool
	// PriorOdds are the attacker's odds for D0 before an answer is seen, BreachOdds those after it that count as a
	// breach. Defaults 1 and 2.
	PriorOdds, BreachOdds float64
	// Buckets and MinCount are the seeds' estimator's: equal-width buckets over the range, and the fewest trials on
	// each side of a cut. Defaults 20 and 5.
	Buckets, MinCount int
	// Deterministic is the policy for answers that never vary and differ between the worlds. Default
	// DeterministicViolation.
	Deterministic DeterministicPolicy
	// FloatingPoint is the policy for lowest bits of numbers that show the dataset. Default FloatingPointViolation.
	FloatingPoint FloatingPointPolicy
	// Unordered means that the order of rows has no meaning: without ORDER BY it depends on how the copies are stored.
	// Default false: a difference between the worlds in the order of groups is evidence.
	Unordered bool
	// Query is what is known of the query. The zero value is nothing.
	Query Query
	// MaxSlots bounds how many (group key, measure) cells are audited one by one; further keys count in the number
	// of rows only. Default 4096.
	MaxSlots int
	// Suspicion means that a violation is a suspicion, which fresh trials confirm (see Audit.Confirm): it takes fewer
	// pairs while one world has given one answer only, and its confirmation takes the more. Default false: these pairs
	// are all there are.
	Suspicion bool
	// Salt is the secret of the ids by which reports name groups without their keys: the same key has the same id in
	// all audits with one Salt, and without the salt an id does not reveal its key. "" = groups have no id.
	Salt string
}

// Defaults of Options.
const (
	defaultConfidence = .95
	defaultPriorOdds  = 1
	defaultBreachOdds = 2
	defaultBuckets    = 20
	defaultMinCount   = 5
	defaultMaxSlots   = 4096
	maxSalt           = 256
)

// withDefaults fills the fields that are not set.
func (o Options) withDefaults() Options {
	setDefault(&o.Confidence, defaultConfidence)
	setDefault(&o.Share, 1)
	setDefault(&o.PriorOdds, defaultPriorOdds)
	setDefault(&o.BreachOdds, defaultBreachOdds)
	setDefault(&o.Buckets, defaultBuckets)
	setDefault(&o.MinCount, defaultMinCount)
	setDefault(&o.MaxSlots, defaultMaxSlots)
	if o.Deterministic == "" {
		o.Deterministic = DeterministicViolation
	}
	if o.FloatingPoint == "" {
		o.FloatingPoint = FloatingPointViolation
	}
	return o
}

// The budget by default is at least fewestTrials and at most mostTrials.
const (
	fewestTrials = 10_000
	mostTrials   = 100_000
)

// DefaultTrials returns the budget of an audit in pairs of trials: four times the information limit, at the error rate
// .05, of an event with probability 1/16 in one world that leaks twice the claimed epsilon, which an audit finds with a
// probability of 90 % or more; at least 10,000 and at most 100,000.
func DefaultTrials(c Claim) int {
	const p, limits, alpha = 1. / 16, 4, .05
	q := p * math.Exp(-2*c.Epsilon)
	g := Growth([]float64{p, 1 - p}, []float64{q, 1 - q}, Claim{Epsilon: c.Epsilon})
	if need := limits * math.Log(1/alpha) / g; c.Epsilon > 0 && need > fewestTrials {
		return int(min(math.Ceil(need/1000)*1000, mostTrials))
	}
	return fewestTrials
}

// For returns the options with a budget by the claim if they have none.
func (o Options) For(c Claim) Options {
	switch {
	case o.MaxTrials != 0:
	case o.NoClaim:
		o.MaxTrials = fewestTrials
	default:
		o.MaxTrials = DefaultTrials(c)
	}
	return o
}

// alpha returns the error rate of the audit.
func (o *Options) alpha() float64 { return o.Share * (1 - o.Confidence) }

func setDefault[T int | float64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// validate reports every fault of a claim and its options.
func validate(c Claim, o Options) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !o.NoClaim && !(c.Epsilon >= 0 && c.Epsilon <= math.MaxFloat64) {
		fault("claimed epsilon must be a finite number of at least 0, not %v", c.Epsilon)
	}
	if !(c.Delta >= 0 && c.Delta < 1) {
		fault("claimed delta must be at least 0 and below 1, not %v", c.Delta)
	}
	if c.Curve != "" {
		if again, err := curve.Parse(string(c.Curve)); err != nil {
			fault("the claimed curve %w", err)
		} else if again != c.Curve || c != CurveClaim(c.Curve, 0, 0) {
			fault("the claimed curve must be in its canonical form, with its headline as the claim")
		}
	}
	if !(o.Confidence > .5 && o.Confidence < 1) {
		fault("confidence must lie between 0.5 and 1 (0.95, say), not %v", o.Confidence)
	}
	if !(o.Share > 0 && o.Share <= 1) {
		fault("the share of the error rate must be above 0 and at most 1, not %v", o.Share)
	}
	if o.MaxTrials < 1 {
		fault("the budget must be at least one pair of trials, not %d", o.MaxTrials)
	}
	if !(o.PriorOdds > 0 && o.PriorOdds <= math.MaxFloat64) || !(o.BreachOdds > 0 && o.BreachOdds <= math.MaxFloat64) {
		fault("the attacker's odds must be finite and positive, not %v and %v", o.PriorOdds, o.BreachOdds)
	}
	if o.Buckets < 1 || o.Buckets > 10_000 {
		fault("the bucket estimator takes 1 to 10000 buckets, not %d", o.Buckets)
	}
	if o.MinCount < 0 {
		fault("the bucket estimator's least count must not be negative, not %d", o.MinCount)
	}
	switch o.Deterministic {
	case DeterministicViolation, DeterministicWarning, DeterministicIgnore:
	default:
		fault("deterministic answers are treated as violation, warning or ignore, not %q", o.Deterministic)
	}
	switch o.FloatingPoint {
	case FloatingPointViolation, FloatingPointWarning, FloatingPointIgnore:
	default:
		fault("lowest bits that show the dataset are treated as violation, warning or ignore, not %q", o.FloatingPoint)
	}
	if o.MaxSlots < 1 || o.MaxSlots > 1<<16 {
		fault("the number of slots must be 1 to 65536, not %d", o.MaxSlots)
	}
	if len(o.Salt) > maxSalt {
		fault("the salt must have at most %d bytes, not %d", maxSalt, len(o.Salt))
	}
	return errors.Join(faults...)
}

// InfeasibleError reports that no auditor can refute the claim within the budget, even if the engine adds no noise.
type InfeasibleError struct {
	Claim     Claim
	Pairs     int // the fewest pairs of trials with which a violation can be shown
	MaxTrials int // the budget
}

// Error returns the message, with the remedy.
func (e *InfeasibleError) Error() string {
	return fmt.Sprintf("%v cannot be refuted with %d pairs of trials by any method: at least %d are needed; raise the budget",
		e.Claim, e.MaxTrials, e.Pairs)
}

// fewestPairs returns the pairs that the best bet needs against an engine without any noise. The best factor is
// (1+R)/(R+delta) in each world (for delta = 0 that is 1+e^-epsilon), so that the evidence per pair is
// 2 ln((1+R)/(R+delta)). Of a curve's points the one that takes the fewest counts.
func fewestPairs(c Claim, alpha float64) float64 {
	fewest, points := math.Inf(1), c.points()
	for _, p := range points {
		// (1+R)/(R+delta) = 1 + (1-delta)/(R+delta), and R may overflow.
		gain := 2 * math.Log1p((1-p.Delta)/(math.Exp(p.Epsilon)+p.Delta))
		fewest = min(fewest, math.Ceil(math.Log(float64(len(points))/alpha)/gain))
	}
	return fewest
}

// suspicionPairs returns the pairs after which an event that always happens in one world and never in the other is a
// suspicion: those of the best bet, with overheadNats for learning.
func suspicionPairs(c Claim, alpha float64) int {
	return int(min(fewestPairs(c, alpha*math.Exp(-overheadNats)), 1<<53))
}

// feasible returns an InfeasibleError when the budget is too small for any verdict but one.
func feasible(c Claim, o Options) error {
	need := fewestPairs(c, o.alpha())
	if need <= float64(o.MaxTrials) {
		return nil
	}
	return &InfeasibleError{Claim: c, Pairs: int(min(need, 1<<53)), MaxTrials: o.MaxTrials}
}
