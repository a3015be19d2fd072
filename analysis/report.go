package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Verdict is the conclusion of an audit. None is "safe": no finite test shows differential privacy.
type Verdict string

// The verdicts.
const (
	Violation    Verdict = "violation"    // the bound passed the claim
	NoEvidence   Verdict = "no_evidence"  // it did not; MinimalDetectable is the leak that would have been found
	Inconclusive Verdict = "inconclusive" // there is no conclusion, for the reason in the report
)

// Vacuous is the ReasonCode of an audit without trials that could not have found anything: the person whom D1 lacks does
// not take part in the query.
const Vacuous = "vacuous"

// Float is a number that is null in JSON where it has no value (NaN or infinite).
type Float float64

// MarshalJSON writes null for NaN and the infinities.
func (f Float) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads null as NaN.
func (f *Float) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Float(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// Report is the state of an audit. Its JSON is what the command line prints; the SQL texts are added by the caller.
// What comes from rows (group keys, texts, thresholds) is withheld in every printed form; see [Report.Reveal].
type Report struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // holds no value of a row
	// ReasonCode names a reason that scripts and coverage distinguish; "" = another one.
	ReasonCode string  `json:"reason_code,omitempty"`
	Claimed    Claimed `json:"claimed"`

	// EpsilonLower is the certified bound: above the true epsilon, ever, with probability at most 1-Confidence.
	// It is above the claim exactly when the verdict is Violation.
	EpsilonLower Float   `json:"epsilon_lower"`
	Confidence   float64 `json:"confidence"`
	// CurveLower is the least curve of the claim's unit, mu or rho, that EpsilonLower leaves possible, rounded down: from
	// a violation of such a claim on; otherwise empty.
	CurveLower curve.Curve `json:"curve_lower,omitempty"`
	// ErrorRate is the part of 1-Confidence that these trials have: others of the same query have the rest.
	ErrorRate float64 `json:"error_rate"`
	// EpsilonEstimate is the largest of the partitions' estimates by the seeds' method; null where no cut has enough
	// counts, as with worlds that have no outcome in common. It is biased upwards and never decides.
	EpsilonEstimate Float `json:"epsilon_estimate"`
	// WealthLog is the log of the wealth against the claim now; null without a claim. Violation is at ln(1/ErrorRate).
	WealthLog Float    `json:"wealth_log"`
	Trials    Trials   `json:"trials"`
	Event     *Event   `json:"event"` // null before anything was learned
	Attacker  Attacker `json:"attacker"`
	// DetectedAt is the number of pairs at which the bound passed the claim, or null.
	DetectedAt *int `json:"detected_at"`
	// ClopperPearson is the figure of the fixed budget; null before the budget is used.
	ClopperPearson *ClopperPearsonBound `json:"clopper_pearson"`
	// MinimalDetectable is the smallest true epsilon (of a Laplace mechanism, in one partition) that as many pairs as
	// were seen would have found with 90 % probability; null without a claim or where there is none. Of noise that is too
	// small by a factor, MinimalFactor is the least: their ratio to the claim, where that implies a scale (0 = it does not).
	MinimalDetectable Float   `json:"minimal_detectable_epsilon"`
	MinimalFactor     float64 `json:"minimal_detectable_factor,omitempty"`
	// MinimalInTenth is the same for a leak that one answer of ten shows: by the growth of the evidence, a tenth.
	MinimalInTenth Float           `json:"minimal_detectable_epsilon_in_tenth"`
	Partitions     []Partition     `json:"partitions"` // in the order in which the keys came; never null
	Warnings       []withheld.Text `json:"warnings"`   // never null
	// Windows are the limits that the answers met: what of them was not read, or is looked at in turn. Never null.
	Windows []Window `json:"windows"`
	// Deterministic is the finding that answers never vary, or repeat exactly; null for none.
	Deterministic *Deterministic `json:"deterministic"`
	// Confirmation is the state of the violation on fresh trials; null before these begin.
	Confirmation *Confirmation `json:"confirmation"`
	// Control is the state of the control of the violation on D0 and its twin; null before it begins.
	Control *Control `json:"control"`
	// UnconfirmedSuspicions counts the violations of earlier trials that fresh trials did not confirm; set by the caller.
	UnconfirmedSuspicions int `json:"unconfirmed_suspicions,omitempty"`
	// Measurement is the state of the trials after the violation, which raise the bound; null before these begin.
	Measurement *Measurement `json:"measurement"`
	// Finding explains a violation; null for another verdict.
	Finding *Finding `json:"finding"`
}

// HasBound reports whether the lower bound holds: without a conclusion, and where answers without variation are the
// violation, nothing is certified.
func (r Report) HasBound() bool {
	return r.Verdict != Inconclusive && !(r.Deterministic != nil && r.DetectedAt == nil)
}

// FloatingPoint reports whether nothing but the lowest bits of numbers shows the violation so far.
func (r *Report) FloatingPoint() bool {
	return r.Verdict == Violation && r.Finding != nil && r.Finding.FloatingPoint
}

// Reveal returns a copy of the report that prints with the values of rows: for those who may read the raw data.
func (r Report) Reveal() Report {
	r.Event, r.Finding, r.Control = r.Event.reveal(), r.Finding.Reveal(), r.Control.reveal()
	if r.ClopperPearson != nil {
		c := *r.ClopperPearson
		c.Event = c.Event.reveal()
		r.ClopperPearson = &c
	}
	r.Partitions, r.Warnings = slices.Clone(r.Partitions), slices.Clone(r.Warnings)
	for i, p := range r.Partitions {
		r.Partitions[i].Key = p.Key.Revealed()
	}
	for i, w := range r.Warnings {
		r.Warnings[i] = w.Revealed()
	}
	return r
}

// Threshold returns the log of the wealth at which the bound passes the claim.
func (r *Report) Threshold() float64 { return -math.Log(r.ErrorRate) }

// Claimed is the claim and where it comes from.
type Claimed struct {
	Epsilon Float   `json:"epsilon"` // null without a claim
	Delta   float64 `json:"delta"`
	// Curve is the claim if it is a curve. Epsilon and Delta are then the point of it at which the bound is: at first the
	// one with the smallest delta, after a violation the one that is refuted.
	Curve  curve.Curve `json:"curve,omitempty"`
	Source string      `json:"source"` // set by the caller
}

// Trials counts the trials per world.
type Trials struct {
	D0 int `json:"d0"`
	D1 int `json:"d1"`
}

// Attacker describes what one answer does to an attacker's odds, for the event found.
type Attacker struct {
	PriorOdds float64 `json:"prior_odds"`
	// LikelihoodRatio is how much likelier the event is in one world than in the other, estimated from the trials so
	// far with half a count added on each side. Like every estimate at the event with the strongest evidence it is
	// biased upwards.
	LikelihoodRatio Float `json:"likelihood_ratio"`
	PosteriorOdds   Float `json:"posterior_odds"`
	// Breached reports whether PosteriorOdds, an estimate, pass the threshold. BreachCertified reports whether the odds
	// at the lower bound do, which are PosteriorOddsLower.
	Breached           bool  `json:"breached"`
	PosteriorOddsLower Float `json:"posterior_odds_lower"`
	BreachCertified    bool  `json:"breach_certified"`
	// ImpliedEpsilon is ln(threshold/prior odds): what a single answer may leak before it can be a breach.
	ImpliedEpsilon Float `json:"implied_epsilon"`
	// AnswersToBreach is how many answers of the same query are certain to allow a breach, at the lower bound; null
	// where no number is.
	AnswersToBreach *int `json:"answers_to_breach"`
}

// Partition is one group key.
type Partition struct {
	Key             withheld.Text `json:"key"`              // printed as "group 3 of 60 (id 8c41f2aa)"; "()" where a result has no key
	EpsilonEstimate Float         `json:"epsilon_estimate"` // the largest over the key's measures
}

// Report returns the state of the audit. It may be called at any time.
func (a *Audit) Report() Report {
	a.look()
	here := a.here()
	lower := a.phases.bound(&a.observed, &a.evidence)
	o, decided := &a.observed, a.Decided()
	blank := o.blank() && !a.phases.confirming()
	r := Report{
		Claimed:           Claimed{Epsilon: Float(here.Epsilon), Delta: here.Delta, Curve: here.Curve},
		EpsilonLower:      Float(lower),
		Confidence:        a.opts.Confidence,
		ErrorRate:         a.opts.alpha(),
		Trials:            Trials{o.pairs, o.pairs},
		MinimalDetectable: Float(math.NaN()),
		MinimalInTenth:    Float(math.NaN()),
		WealthLog:         Float(math.NaN()),
		Partitions:        []Partition{},
		Warnings:          append(o.warnings(a.opts.Deterministic, blank), a.floatingPoint()...),
		Windows:           o.windows(),
	}
	if a.opts.NoClaim {
		r.Claimed.Epsilon = Float(math.NaN())
	} else {
		r.WealthLog = Float(a.evidence.wealth())
		if o.pairs > 0 && !o.frozen() && !o.failing() {
			a.wouldHaveFound(&r)
		}
	}
	if at := a.evidence.detectedAt; at > 0 {
		if a.phases.first.detectedAt > 0 {
			at = a.phases.first.detectedAt
		}
		r.DetectedAt = &at
	}
	r.Partitions, r.EpsilonEstimate = o.estimates(a.opts, here.Delta)
	best := strongest(o, &a.evidence)
	r.Event = best.event
	ratio := best.ratio
	r.Attacker = Attacker{
		PriorOdds:       a.opts.PriorOdds,
		LikelihoodRatio: Float(ratio),
		PosteriorOdds:   Float(a.opts.PriorOdds * ratio),
		ImpliedEpsilon:  Float(Odds{Prior: a.opts.PriorOdds, Breach: a.opts.BreachOdds}.ImpliedEpsilon()),
	}.at(lower)
	if c := a.certificate; c != nil && o.pairs >= a.opts.MaxTrials {
		r.ClopperPearson = c.bound((1-a.opts.Confidence)*math.Exp(-a.evidence.parts()), here.Delta)
	}
	if !blank && !o.failing() {
		r.Deterministic = o.deterministic(a.opts.Deterministic, a.sameAnswer())
	}
	if o.monotony.pairs > 1 && o.monotony.constant() { // no epsilon follows from answers that never vary
		r.ClopperPearson, r.EpsilonEstimate = nil, Float(math.NaN())
	}
	if r.Verdict, r.Reason = a.verdict(&r, blank); r.Verdict != Violation {
		r.DetectedAt = nil
	}
	r.Confirmation, r.Measurement = a.phases.confirmation(r.Verdict, o.pairs, a.opts.MaxTrials, decided), a.phases.measurement(o, a.opts.MaxTrials, decided)
	if r.Verdict == Violation && r.DetectedAt != nil && here.Curve != "" {
		r.CurveLower = here.Curve.Lower(curve.Point{Epsilon: lower, Delta: here.Delta})
	}
	if r.Verdict == Violation {
		r.Warnings = append(r.Warnings, unreadWarnings(r.Windows)...)
		r.Finding = a.explained.finding(&r, o, &a.evidence, &best, here, a.opts.Query)
	}
	return r
}

// slotCost is the log of the share of wealth that bets on one partition.
func (o *observations) slotCost() float64 {
	if len(o.scores.Slots) < 2 {
		return 0
	}
	return math.Log(float64(len(o.scores.Slots)) / score.SlotShare())
}

// repeated is what answers without variation show.
const repeated = "deterministic or cached noise"

// verdict concludes.
func (a *Audit) verdict(r *Report, blank bool) (Verdict, string) {
	o, v := &a.observed, &a.evidence
	switch {
	case a.opts.NoClaim:
		return Inconclusive, "no claim"
	case o.failing() && v.detectedAt == 0 && !a.phases.confirming(): // errors can hold what differs
		return Inconclusive, "every trial fails: " + o.failure()
	case a.sameAnswer() && a.opts.Deterministic == DeterministicViolation:
		trials := "trials"
		if a.phases.confirming() {
			trials = "trials on fresh sessions"
		}
		return Violation, fmt.Sprintf("the answers never vary in %d pairs of %s and differ between D0 and D1: %s; no epsilon follows from it", o.monotony.pairs, trials, repeated)
	case a.sameAnswer():
		return Inconclusive, repeated + ": the answers never vary and differ between D0 and D1"
	case o.pairs > 0 && !a.phases.measuring() && v.withdrawn(o, a.requirements()) != "":
		return Inconclusive, v.withdrawn(o, a.requirements())
	case blank:
		return Inconclusive, "no answer on D0 or D1 has a row or a value that is not NULL, so the trials show nothing: check that the copies and the public tables have rows (dpwatch doctor), and the conditions of the query"
	case v.detectedAt > 0 && a.phases.confirming():
		return Violation, fmt.Sprintf("%s with confidence %v: %d pairs of trials showed it, and %d pairs on fresh sessions confirmed it",
			a.exceeded(), a.opts.Confidence, a.phases.first.pairs, a.phases.atViolation(o.pairs)-a.phases.first.pairs)
	case a.phases.confirming():
		return Inconclusive, a.phases.unconfirmed(o, a.Decided())
	case v.detectedAt > 0:
		return Violation, fmt.Sprintf("%s with confidence %v, after %d pairs of trials", a.exceeded(), a.opts.Confidence, v.detectedAt)
	case o.pairs == 0:
		return Inconclusive, "no trials"
	}
	return a.noEvidence(r)
}

// noEvidence concludes where trials show no violation.
func (a *Audit) noEvidence(r *Report) (Verdict, string) {
	o := &a.observed
	need := fewestPairs(a.claim, a.opts.alpha())
	unread := unread(r.Windows)
	switch {
	case float64(o.pairs) < need:
		return Inconclusive, fmt.Sprintf("too few trials: %d pairs, and no method can refute %v with fewer than %.0f",
			o.pairs, a.claim, need)
	case o.frozen():
		return Inconclusive, repeated + ": the answer never varies and is the same on D0 and D1, so the trials could not have found anything"
	case unread != "":
		return Inconclusive, unread
	case math.IsNaN(float64(r.MinimalDetectable)):
		return Inconclusive, fmt.Sprintf("too few trials: %d pairs would not have found any leak reliably", o.pairs)
	}
	return NoEvidence, fmt.Sprintf("no violation in %d pairs of trials; %s would have been found with 90 %% probability",
		o.pairs, r.WouldHaveFound())
}

// warnings returns the warnings about the trials.
func (o *observations) warnings(policy DeterministicPolicy, blank bool) []withheld.Text {
	w := []withheld.Text{}
	add := func(format string, args ...any) { w = append(w, withheld.Sprintf(format, args...)) }
	if policy == DeterministicIgnore || blank || o.failing() {
		// no warning: the operator expects it, or the reason says more
	} else if o.monotony.pairs > 1 && o.monotony.constant() {
		add("deterministic or cached noise: the answers of each world never vary")
	} else if o.monotony.pairs > 1 {
		for i, broken := range o.monotony.broken {
			if !broken {
				add("deterministic or cached noise: the answer on D%d never varies", i)
			}
		}
	}
	for i, n := range o.scores.Repeats.Echoes {
		if o.monotony.broken[i] && o.repeatsTooOften(i) {
			add("%d answers on D%d repeat an earlier one exactly, which chance does not at this many digits: reused noise, or a cache", n, i)
		}
	}
	if n := o.sharedSlots(); n > 0 {
		add("D0 and D1 share their noise (%d columns or partitions): such trials are compared without assuming independence, which takes more of them", n)
	}
	w = append(w, o.dependenceWarnings()...)
	for i, f := range o.failures {
		if f -= o.cut[i]; f > 0 && !o.failing() {
			add("%d of %d trials on D%d failed", f, o.pairs, i)
		}
	}
	if o.scores.Reader == nil {
		return w
	}
	if o.unmatched > 0 {
		add("%d results had another number of columns, or failed", o.unmatched)
	}
	if o.scores.Reader.Duplicates {
		add("some results have two rows of one group key: the first counts")
	}
	if o.scores.Reader.Overflow {
		add("more group keys than can be audited one by one (%d): the others count in the number of rows only", o.scores.Reader.MaxKeys)
	}
	return w
}

func (o *observations) sharedSlots() int {
	n := 0
	for _, s := range o.scores.Slots {
		if s.Shared {
			n++
		}
	}
	return n
}

// estimates returns the seeds' estimate per partition, and the largest.
func (o *observations) estimates(opts Options, delta float64) ([]Partition, Float) {
	parts := []Partition{}
	top := math.NaN()
	if o.scores.Reader == nil {
		return parts, Float(top)
	}
	cells := o.scores.Reader.Cells()
	o.buckets = append(o.buckets, make([]slotEstimate, len(o.scores.Slots)-len(o.buckets))...)
	for k := range o.scores.Reader.Labels {
		best := math.NaN()
		for i := k * cells; i < min((k+1)*cells, len(o.scores.Slots)); i++ {
			if e := o.buckets[i].update(o.scores.Slots[i].Past, o.scores.Stride, opts.Buckets, delta, opts.MinCount); !math.IsNaN(e) && !(e <= best) {
				best = e
			}
		}
		if !math.IsNaN(best) && !(best <= top) {
			top = best
		}
		parts = append(parts, Partition{Key: o.scores.Reader.GroupName(k), EpsilonEstimate: Float(best)})
	}
	return parts, Float(top)
}
