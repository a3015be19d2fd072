// Package survey estimates true shares from the answers of randomised response and compares the mechanism with a claim.
//
// In: the counts of the answers and the declared mechanism. Out: estimates with intervals, what an attacker learns from
// one answer, and a verdict. It draws nothing and keeps nothing.
package survey

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/response"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Answer is a category with the number of answers that named it.
type Answer struct {
	Name  withheld.Text
	Value float64 // for the mean; NaN for a category that is no number
	Count int
}

// Options describes the mechanism, the claim and the attacker.
type Options struct {
	Truth      float64         // the declared probability of the truth
	Categories int             // the declared number of categories; at least the number of answers that differ
	Claim      *analysis.Claim // nil = no claim
	Confidence float64         // of each interval, and of the verdict
	BreachOdds float64         // posterior odds above which an answer is a breach
}

// Interval is an estimate with its interval. The estimate is unbiased and can lie outside of the interval, which is
// within the range of possible values.
type Interval struct {
	Estimate analysis.Float `json:"estimate"`
	Lower    analysis.Float `json:"lower"`
	Upper    analysis.Float `json:"upper"`
}

// Category is what the answers say of one category, and what one answer that names it says of a person.
type Category struct {
	Name     withheld.Text `json:"category"`
	Observed int           `json:"observed"`
	Share    Interval      `json:"share"` // of the persons
	Count    Interval      `json:"count"` // Share times the number of answers
	// PriorOdds are the odds of the category at the estimated share, PosteriorOdds those after one answer that names
	// it.
	PriorOdds     analysis.Float `json:"prior_odds"`
	PosteriorOdds analysis.Float `json:"posterior_odds"`
	Breached      bool           `json:"breached"` // PosteriorOdds are above the threshold
	// AnswersToBreach is how many independent answers of one person that all name the category lift the odds above the
	// threshold; null where no number does.
	AnswersToBreach *int `json:"answers_to_breach"`
}

// Report is the result.
type Report struct {
	Answers    int     `json:"answers"`
	Categories int     `json:"categories"`
	Truth      float64 `json:"truth"`
	Other      float64 `json:"other"` // the probability of each category but the true one
	// Epsilon is the privacy loss of the declared mechanism; null for infinite.
	Epsilon    analysis.Float  `json:"epsilon"`
	Claim      *analysis.Claim `json:"claimed"`
	Delta      analysis.Float  `json:"delta"` // that the declared mechanism needs for the claimed epsilon; null without a claim
	Confidence float64         `json:"confidence"`
	// Verdict is empty without a claim.
	Verdict analysis.Verdict `json:"verdict,omitempty"`
	Reason  string           `json:"reason"`
	Shares  []Category       `json:"shares"`
	// Unseen is the number of declared categories that no answer names.
	Unseen     int       `json:"unseen"`
	Mean       *Interval `json:"mean"` // null if a category is no number
	BreachOdds float64   `json:"breach_odds"`
	// BreachPrior is the probability of a category above which one answer that names it is a breach.
	BreachPrior analysis.Float `json:"breach_prior"`
}

// tolerance is the greatest difference of two epsilons that is attributed to rounding.
const tolerance = 1e-9

// New analyzes the answers.
func New(answers []Answer, o Options) (Report, error) {
	total := 0
	for _, a := range answers {
		total += a.Count
	}
	k, p := o.Categories, o.Truth
	switch {
	case !(p >= 0 && p <= 1):
		return Report{}, fmt.Errorf("--response %v: must be a probability, from 0 to 1", p)
	case k < 2:
		return Report{}, fmt.Errorf("--categories %d: must be at least 2", k)
	case len(answers) > k:
		return Report{}, fmt.Errorf("the answers have %d categories, and %d were declared: give --categories", len(answers), k)
	case total == 0:
		return Report{}, fmt.Errorf("there are no answers")
	case !(o.Confidence > 0 && o.Confidence < 1):
		return Report{}, fmt.Errorf("--confidence %v: must be between 0 and 1", o.Confidence)
	case !(o.BreachOdds > 0) || math.IsInf(o.BreachOdds, 0):
		return Report{}, fmt.Errorf("--breach-odds %v: must be positive", o.BreachOdds)
	case o.Claim != nil && (!(o.Claim.Epsilon >= 0) || math.IsInf(o.Claim.Epsilon, 0) || !(o.Claim.Delta >= 0 && o.Claim.Delta < 1)):
		return Report{}, fmt.Errorf("--epsilon %v, --delta %v: epsilon must not be negative, delta at least 0 and less than 1", o.Claim.Epsilon, o.Claim.Delta)
	}
	r := Report{
		Answers: total, Categories: k, Truth: p, Other: response.Other(k, p), Epsilon: analysis.Float(response.LossOf(k, p)), Claim: o.Claim,
		Delta: analysis.Float(math.NaN()), Confidence: o.Confidence, Unseen: k - len(answers), BreachOdds: o.BreachOdds,
	}
	ratio := p / r.Other
	r.BreachPrior = analysis.Float(o.BreachOdds / (o.BreachOdds + ratio))
	for _, a := range answers {
		r.Shares = append(r.Shares, category(a, total, ratio, o))
	}
	r.Mean = mean(answers, total, o)
	r.judge(answers, o)
	return r, nil
}

// category estimates one category.
func category(a Answer, total int, ratio float64, o Options) Category {
	n := float64(total)
	share := shareOf(a.Count, total, o)
	c := Category{
		Name: a.Name, Observed: a.Count, Share: share,
		Count: Interval{share.Estimate * analysis.Float(n), share.Lower * analysis.Float(n), share.Upper * analysis.Float(n)},
	}
	s := min(max(float64(share.Estimate), 0), 1)
	prior := s / (1 - s)
	c.PriorOdds = analysis.Float(prior)
	odds := analysis.Odds{Prior: prior, Breach: o.BreachOdds}
	c.PosteriorOdds = analysis.Float(odds.After(ratio, 1))
	if prior > 0 && !math.IsInf(prior, 1) && !math.IsNaN(prior) {
		c.Breached = odds.Breached(ratio, 1)
		if count := odds.AnswersToBreach(math.Log(ratio)); count >= 0 {
			c.AnswersToBreach = &count
		}
	}
	return c
}

// shareOf maps the exact interval of the observed share to the true share.
func shareOf(count, total int, o Options) Interval {
	lower, upper := analysis.ClopperPearson(count, total, 1-o.Confidence)
	at := func(m float64) float64 { return response.Share(m, o.Categories, o.Truth) }
	ends := []float64{at(lower), at(upper)}
	if math.IsNaN(ends[0]) {
		return Interval{analysis.Float(math.NaN()), 0, 1} // the answers carry no information
	}
	slices.Sort(ends)
	return Interval{analysis.Float(at(float64(count) / float64(total))), analysis.Float(clip(ends[0])), analysis.Float(clip(ends[1]))}
}

func clip(x float64) float64 { return min(max(x, 0), 1) }

// mean estimates the true mean of categories that are numbers. All categories must be known, since the mean of the
// answers depends on those that are not. Its interval is Hoeffding's (1963).
func mean(answers []Answer, total int, o Options) *Interval {
	if len(answers) != o.Categories || slices.ContainsFunc(answers, func(a Answer) bool { return math.IsNaN(a.Value) || math.IsInf(a.Value, 0) }) {
		return nil
	}
	q := response.Other(o.Categories, o.Truth)
	slope := o.Truth - q
	if slope == 0 {
		return nil
	}
	observed, sum, low, high := 0.0, 0.0, math.Inf(1), math.Inf(-1)
	for _, a := range answers {
		observed += a.Value * float64(a.Count) / float64(total)
		sum += a.Value
		low, high = min(low, a.Value), max(high, a.Value)
	}
	estimate := (observed - q*sum) / slope // an answer has the mean slope*x + q*sum if x is the truth
	half := (high - low) * math.Sqrt(math.Log(2/(1-o.Confidence))/(2*float64(total))) / math.Abs(slope)
	if !(math.Abs(estimate)+half <= math.MaxFloat64) {
		return nil
	}
	limit := func(x float64) analysis.Float { return analysis.Float(min(max(x, low), high)) }
	return &Interval{analysis.Float(estimate), limit(estimate - half), limit(estimate + half)}
}
