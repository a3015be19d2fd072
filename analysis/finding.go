package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Basis says how sure a statement is.
type Basis string

// The bases.
const (
	Certified Basis = "certified" // with the audit's confidence
	Likely    Basis = "likely"    // an estimate, or a heuristic
)

// Finding explains a violation: how bad it is, what gives the person away, and what the cause probably is. Line and
// Paragraph say the same in words.
type Finding struct {
	Line      withheld.Text     `json:"line"`
	Paragraph withheld.Text     `json:"paragraph"`
	HowBad    HowBad            `json:"how_bad"`
	What      What              `json:"what"`
	Causes    []diagnosis.Cause `json:"causes"` // the most likely one first; never null. All are heuristics.
	// FloatingPoint reports that nothing but the lowest bits of numbers shows the violation so far.
	FloatingPoint bool `json:"floating_point,omitempty"`
}

// HowBad is what an attacker learns.
type HowBad struct {
	Text         string  `json:"text"`
	Basis        Basis   `json:"basis"`
	Confidence   float64 `json:"confidence,omitempty"` // of a certified statement
	EpsilonLower Float   `json:"epsilon_lower"`
	// Answers are the least odds that an attacker reaches with answers that show the worst event; empty without a
	// bound.
	Answers []AfterAnswers `json:"answers"`
	// ClaimNeedsDelta is the certified lower bound of the delta with which the claimed epsilon holds.
	ClaimNeedsDelta Float `json:"claim_needs_delta"`
	// Profile is the certified privacy profile: at each epsilon the true delta is at least the one given. Each point
	// holds by itself. It is empty until [Audit.AddProfile] adds it.
	Profile []ProfilePoint `json:"profile"`
	// Event is what the event shows of the privacy loss, for this query alone; null if the answers never vary.
	Event *EventLoss `json:"event,omitempty"`
}

// EventLoss is an estimate of ln((p - delta) / q), where p and q are the probabilities of the event in the world in which
// it is likelier and in the other one: an estimate of an epsilon that the true one reaches. Low and High are the ends of
// an interval of Clopper and Pearson with the given confidence. It is for this query alone, while the certified bound has
// the confidence that all audits share. The event was chosen from a part of the same trials, so the estimate is biased
// upwards, the less the more trials follow.
type EventLoss struct {
	Epsilon    Float   `json:"epsilon"` // null where the event was never seen in the other world
	Low        Float   `json:"low"`
	High       Float   `json:"high"` // null likewise
	Confidence float64 `json:"confidence"`
}

// eventConfidence is the confidence of EventLoss.
const eventConfidence = .95

// eventLoss returns what an event shows of the privacy loss.
func eventLoss(best *found, delta float64) *EventLoss {
	if best.event == nil {
		return nil
	}
	heavy, light := best.shares[0], best.shares[1]
	if best.event.Direction == "D1" {
		heavy, light = light, heavy
	}
	const each = (1 - eventConfidence) / 2 // of the error rate
	low, high := ClopperPearson(heavy.K, heavy.N, each)
	least, most := ClopperPearson(light.K, light.N, each)
	loss := func(p, q float64) Float {
		e := math.Log((p - delta) / q)
		if !(p > delta) {
			e = 0
		}
		return Float(max(0, e))
	}
	return &EventLoss{
		Epsilon: loss(float64(heavy.K)/float64(max(heavy.N, 1)), float64(light.K)/float64(max(light.N, 1))), Low: loss(low, most), High: loss(high, least), Confidence: eventConfidence,
	}
}

// Text says what the event shows, as a sentence without its end.
func (e *EventLoss) Text() string {
	low := FormatLower(float64(e.Low))
	unknown := func(x Float) bool { return math.IsInf(float64(x), 0) || math.IsNaN(float64(x)) } // NaN from JSON
	if unknown(e.Epsilon) {
		return fmt.Sprintf("the event, never seen in the other world, shows an epsilon of at least %s (%g %% interval for this query alone: from %s on)", low, 100*e.Confidence, low)
	}
	high := "on"
	if !unknown(e.High) {
		high = "to " + short(float64(e.High))
	}
	return fmt.Sprintf("the event alone shows an epsilon of about %s (%g %% interval for this query alone: from %s %s)", short(float64(e.Epsilon)), 100*e.Confidence, low, high)
}

// AfterAnswers is what an attacker knows after some answers of the query, each with fresh noise, at the certified
// bound.
type AfterAnswers struct {
	Answers     int   `json:"answers"`
	Odds        Float `json:"odds"`        // for the right dataset; null beyond the range of numbers
	Probability Float `json:"probability"` // the same as a probability
}

// What describes the event with the strongest evidence.
type What struct {
	Text  withheld.Text `json:"text"`
	Basis Basis         `json:"basis"`
	Parts []Part        `json:"parts"` // of a joint score: the columns and groups that carry most of it; never null
}

// Part is a column or a group and its estimated share of the evidence of a joint score.
type Part struct {
	Where withheld.Text `json:"where"`
	Share Float         `json:"share"`
}

// Reveal returns a copy that prints with the values of rows; nil of nil.
func (f *Finding) Reveal() *Finding {
	if f == nil {
		return nil
	}
	r := *f
	r.Line, r.Paragraph, r.What.Text = f.Line.Revealed(), f.Paragraph.Revealed(), f.What.Text.Revealed()
	r.What.Parts, r.Causes = slices.Clone(f.What.Parts), slices.Clone(f.Causes)
	for i, p := range r.What.Parts {
		r.What.Parts[i].Where = p.Where.Revealed()
	}
	for i, c := range r.Causes {
		r.Causes[i].Text = c.Text.Revealed()
	}
	return &r
}

// explained is the finding of the report before.
type explained struct {
	pairs  int
	lower  float64
	latest *Finding
}

// finding explains a violation. What takes time is computed once for a number of pairs.
func (x *explained) finding(r *Report, o *observations, v *evidence, best *found, c Claim, q Query) *Finding {
	if !x.is(r, o) {
		f := &Finding{HowBad: howBad(r), What: o.what(best), Causes: diagnosis.Causes(o.diagnosed(c, q, best))}
		if f.HowBad.Basis == Certified {
			f.HowBad.Event = eventLoss(best, r.Claimed.Delta)
			f.FloatingPoint = len(f.Causes) > 0 && f.Causes[0].Code == diagnosis.FloatingPoint && o.lowBitsAlone(v)
		}
		f.write(r)
		*x = explained{o.pairs, float64(r.EpsilonLower), f}
	}
	return x.latest
}

// is reports whether the finding is that of a report.
func (x *explained) is(r *Report, o *observations) bool {
	return x.latest != nil && x.pairs == o.pairs && x.lower == float64(r.EpsilonLower)
}

// setProfile gives a report a finding with a profile.
func (x *explained) setProfile(r *Report, o *observations, c Claim, profile []ProfilePoint) {
	f := *r.Finding
	f.HowBad.Profile = profile
	for _, p := range profile {
		if p.Epsilon == c.Epsilon {
			f.HowBad.ClaimNeedsDelta = Float(p.Delta)
		}
	}
	f.write(r)
	r.Finding = &f
	if x.is(r, o) {
		x.latest = &f
	}
}

// write sets the line and the paragraph.
func (f *Finding) write(r *Report) {
	cause := withheld.Text{}
	why := withheld.Public("Likely cause: unknown.")
	if len(f.Causes) > 0 {
		c := &f.Causes[0]
		cause = withheld.Public("; likely cause: " + c.Name)
		why = withheld.Sprintf("Likely cause: %s. %s See %s.", c.Name, c.Text, c.Page)
	}
	if len(f.Causes) > 1 {
		why = withheld.Sprintf("%s It may also be: %s.", why, f.Causes[1].Name)
	}
	bound := fmt.Sprintf("epsilon is %s (claim %g)", atLeast(r), float64(r.Claimed.Epsilon))
	if c := r.Claimed; c.Curve != "" {
		bound = fmt.Sprintf("epsilon is %s at delta %.4g, where the claim %s allows %g", atLeast(r), c.Delta, c.Curve, float64(c.Epsilon))
	}
	if f.HowBad.Basis != Certified {
		bound = "the answers never vary"
	}
	f.Line = withheld.Sprintf("%s: %s%s", bound, f.What.Text, cause)
	mark := "Likely"
	if f.HowBad.Basis == Certified {
		mark = fmt.Sprintf("Certified (confidence %g)", f.HowBad.Confidence)
	}
	f.Paragraph = withheld.Sprintf("%s: %s%s Likely: %s. %s", mark, f.HowBad.Text, f.HowBad.delta(r), f.What.Text, why)
}

// delta says with which delta the claim would hold, "" if none is certified.
func (h *HowBad) delta(r *Report) string {
	if !(float64(h.ClaimNeedsDelta) > r.Claimed.Delta) {
		return ""
	}
	return fmt.Sprintf(" The claimed epsilon %g would need a delta above %g.", float64(r.Claimed.Epsilon), float64(h.ClaimNeedsDelta))
}

// howBad describes what an attacker learns.
func howBad(r *Report) HowBad {
	h := HowBad{
		Basis: Certified, Confidence: r.Confidence, EpsilonLower: r.EpsilonLower,
		Answers: []AfterAnswers{}, Profile: []ProfilePoint{}, ClaimNeedsDelta: Float(math.NaN()),
	}
	if r.DetectedAt == nil {
		h.Basis, h.Confidence = Likely, 0
		h.Text = "the answers never vary and differ between D0 and D1, so that one answer shows which of both it comes from; no epsilon follows from it."
		return h
	}
	lower := float64(r.EpsilonLower)
	for _, n := range [...]int{1, 10} {
		h.Answers = append(h.Answers, newAfterAnswers(r.Attacker.PriorOdds, lower, n))
	}
	claimed := fmt.Sprintf(", where %g is claimed", float64(r.Claimed.Epsilon))
	if c := r.Claimed; c.Curve != "" {
		claimed = fmt.Sprintf(" at delta %.4g, where the claim %s allows %g", c.Delta, c.Curve, float64(c.Epsilon))
		if r.CurveLower != "" {
			claimed += fmt.Sprintf("; it leaves %s or more", r.CurveLower)
		}
	}
	h.Text = fmt.Sprintf("epsilon is %s%s. An attacker who gives the right dataset a probability of %s gives it at least %s after one answer of the worst kind, "+
		"and at least %s after ten, each with fresh noise.", atLeast(r), claimed, r.Attacker.PriorPercent(), h.Answers[0].Percent(), h.Answers[1].Percent())
	return h
}

// newAfterAnswers returns what n answers do to the odds, each with a privacy loss of epsilon.
func newAfterAnswers(prior, epsilon float64, n int) AfterAnswers {
	odds := Odds{Prior: prior}.After(math.Exp(epsilon), n)
	p := 1 / (1 + 1/odds)
	return AfterAnswers{Answers: n, Odds: Float(odds), Probability: Float(p)}
}

// Percent formats the probability, rounded down.
func (t AfterAnswers) Percent() string {
	p := float64(t.Probability)
	switch {
	case p > .9999:
		return "99.99 %"
	case p < .0001:
		return "0 %"
	case p <= .995 && p >= .01:
		p = math.Floor(p*100) / 100
	}
	return percent(p)
}

// PriorPercent formats the probability of the right dataset before an answer.
func (t Attacker) PriorPercent() string { return percent(t.PriorOdds / (1 + t.PriorOdds)) }

// PosteriorPercent formats the estimated probability after the event; "" if it is not known.
func (t Attacker) PosteriorPercent() string {
	odds := float64(t.PosteriorOdds)
	if math.IsNaN(odds) {
		return ""
	}
	return percent(1 / (1 + 1/odds))
}

// percent formats a probability. It never rounds to 0 or 100.
func percent(p float64) string {
	switch {
	case p > .9999 && p < 1 || p == 1:
		return "more than 99.99 %"
	case p > .995:
		return fmt.Sprintf("%.2f %%", math.Floor(p*1e4)/100)
	case p < .0001:
		return "less than 0.01 %"
	case p < .01:
		return fmt.Sprintf("%.2f %%", p*100)
	}
	return fmt.Sprintf("%.0f %%", p*100)
}

// atLeast formats the bound. It lies above the claim also where three digits are equal.
func atLeast(r *Report) string {
	if text := LowerText(r.EpsilonLower, r.Claimed.Epsilon); !strings.HasPrefix(text, ">") {
		return "at least " + text
	}
	return fmt.Sprintf("above %g", float64(r.Claimed.Epsilon))
}

// LowerText formats a lower bound with three digits, never rounded up, "-" for NaN. A bound above the claim that three
// digits do not distinguish from it is "> 1", with the claim. The claim may be NaN: nothing is claimed.
func LowerText(bound, claim Float) string {
	if math.IsNaN(float64(bound)) {
		return "-"
	}
	text := FormatLower(float64(bound))
	if x, err := strconv.ParseFloat(text, 64); bound > claim && err == nil && x <= float64(claim) {
		return fmt.Sprintf("> %g", float64(claim))
	}
	return text
}

// AtLeast states a lower bound: "at least 1.76", or "more than 1" where three digits do not show that it is above the claim.
func AtLeast(bound, claim Float) string {
	text := LowerText(bound, claim)
	if claimed, ok := strings.CutPrefix(text, "> "); ok {
		return "more than " + claimed
	}
	return "at least " + text
}

// short formats a figure with three digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// FormatLower formats a certified lower bound, which may be more than 0, with three digits. It never rounds up.
func FormatLower(x float64) string {
	text := short(x)
	if y, err := strconv.ParseFloat(text, 64); err != nil || !(y > x) || !(x > 0) {
		return text
	}
	digit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return short(x - digit/2)
}
