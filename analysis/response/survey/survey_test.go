package survey_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/response"
	"github.com/dpwatch/dpwatch/analysis/response/survey"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// answers returns the counts of categories whose values are 0, 1, ...
func answers(counts ...int) (all []survey.Answer) {
	for i, c := range counts {
		all = append(all, survey.Answer{Name: withheld.Public("c"), Value: float64(i), Count: c})
	}
	return all
}

func claim(epsilon, delta float64) *analysis.Claim {
	return &analysis.Claim{Epsilon: epsilon, Delta: delta}
}

func analyze(t *testing.T, all []survey.Answer, o survey.Options) survey.Report {
	t.Helper()
	if o.Confidence == 0 {
		o.Confidence = .95
	}
	o.BreachOdds = 2
	r, err := survey.New(all, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(a analysis.Float, b float64) bool { return math.Abs(float64(a)-b) < 1e-9 }

// TestKnown has figures that can be computed by hand: of 1,000 answers with p = 3/4, 500 of each category.
func TestKnown(t *testing.T) {
	t.Parallel()
	r := analyze(t, answers(500, 500), survey.Options{Truth: .75, Categories: 2, Claim: claim(1, .1)})
	c := r.Shares[1]
	if !near(c.Share.Estimate, .5) || !near(c.Count.Estimate, 500) || !near(c.PriorOdds, 1) || !near(c.PosteriorOdds, 3) || !c.Breached || c.AnswersToBreach == nil || *c.AnswersToBreach != 1 {
		t.Errorf("%+v", c)
	}
	if !near(r.Epsilon, math.Log(3)) || !near(r.BreachPrior, .4) || !near(r.Delta, .75-math.E/4) || r.Mean == nil || !near(r.Mean.Estimate, .5) || r.Verdict != analysis.NoEvidence {
		t.Errorf("%+v", r)
	}
	// 300 of 1,000 are (.3 - .25)/.5 = .1 of the persons: odds 1/9, and three answers lift them to 3, above 2; two to
	// 1.
	c = analyze(t, answers(700, 300), survey.Options{Truth: .75, Categories: 2}).Shares[1]
	if !near(c.Share.Estimate, .1) || !near(c.PosteriorOdds, 1./3) || c.Breached || c.AnswersToBreach == nil || *c.AnswersToBreach != 3 {
		t.Errorf("%+v", c)
	}
	// Clopper-Pearson 95 % for 300 of 1,000: .2717 to .3295, mapped by (m - .25)/.5.
	if math.Abs(float64(c.Share.Lower)-.0434) > 2e-4 || math.Abs(float64(c.Share.Upper)-.1590) > 2e-4 {
		t.Errorf("%+v", c.Share)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts  []int
		o       survey.Options
		verdict analysis.Verdict
		reason  string
	}{
		"no claim":                 {[]int{500, 500}, survey.Options{Truth: .75, Categories: 2}, "", "do not contradict"},
		"the claim itself":         {[]int{500, 500}, survey.Options{Truth: .75, Categories: 2, Claim: claim(math.Log(3), 0)}, analysis.NoEvidence, "do not contradict"},
		"declared above":           {[]int{500, 500}, survey.Options{Truth: .75, Categories: 2, Claim: claim(1, 0)}, analysis.Violation, "has the epsilon 1.099"},
		"declared above with k":    {[]int{500, 500}, survey.Options{Truth: .75, Categories: 4, Claim: claim(2, 0)}, analysis.Violation, "has the epsilon 2.197"},
		"declared lies":            {[]int{500, 500}, survey.Options{Truth: .1, Categories: 2, Claim: claim(2, 0)}, analysis.Violation, "has the epsilon 2.197"},
		"delta":                    {[]int{500, 500}, survey.Options{Truth: .75, Categories: 2, Claim: claim(1, .08)}, analysis.NoEvidence, "do not contradict"},
		"delta too small":          {[]int{500, 500}, survey.Options{Truth: .75, Categories: 2, Claim: claim(1, .07)}, analysis.Violation, "needs a delta of 0.07043"},
		"the truth always":         {[]int{500, 500}, survey.Options{Truth: 1, Categories: 2, Claim: claim(9, 0)}, analysis.Violation, "epsilon +Inf"},
		"answers above every p":    {[]int{100, 900}, survey.Options{Truth: .7, Categories: 2, Claim: claim(1, 0)}, analysis.Violation, "whatever its probability of the truth"},
		"answers above declared":   {[]int{300, 700}, survey.Options{Truth: .6, Categories: 2, Claim: claim(1, 0)}, analysis.Inconclusive, "contradict the declared probability"},
		"a category never occurs":  {[]int{500, 500}, survey.Options{Truth: .4, Categories: 3, Claim: claim(1, 0)}, analysis.Violation, "one category has 0 of the answers"},
		"too few answers to know":  {[]int{0, 3}, survey.Options{Truth: .6, Categories: 2, Claim: claim(1, 0)}, analysis.NoEvidence, "do not contradict"},
		"contradiction, no claim":  {[]int{100, 900}, survey.Options{Truth: .6, Categories: 2}, "", "contradict the declared"},
		"no information, no claim": {[]int{500, 500}, survey.Options{Truth: .5, Categories: 2}, "", "do not contradict"},
	} {
		r := analyze(t, answers(c.counts...), c.o)
		if r.Verdict != c.verdict || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%s: %s: %s", name, r.Verdict, r.Reason)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]survey.Options{
		"--response 1.5":   {Truth: 1.5, Categories: 2, Confidence: .9, BreachOdds: 2},
		"--response NaN":   {Truth: math.NaN(), Categories: 2, Confidence: .9, BreachOdds: 2},
		"--categories 1":   {Truth: .5, Categories: 1, Confidence: .9, BreachOdds: 2},
		"have 3":           {Truth: .5, Categories: 2, Confidence: .9, BreachOdds: 2},
		"--confidence 1":   {Truth: .5, Categories: 3, Confidence: 1, BreachOdds: 2},
		"--breach-odds 0":  {Truth: .5, Categories: 3, Confidence: .9},
		"--epsilon -1":     {Truth: .5, Categories: 3, Confidence: .9, BreachOdds: 2, Claim: claim(-1, 0)},
		"1, --delta 1: ep": {Truth: .5, Categories: 3, Confidence: .9, BreachOdds: 2, Claim: claim(1, 1)},
	} {
		if _, err := survey.New(answers(1, 2, 3), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := survey.New(nil, survey.Options{Truth: .5, Categories: 2, Confidence: .9, BreachOdds: 2}); err == nil {
		t.Error("no answers are no error")
	}
}

// TestCoverage: intervals of 95 % contain the truth, and honest response is no violation, at the stated rates. Each
// limit is 6 standard deviations above the rate's bound, the averages have 6 standard errors: false alarm below 1e-8
// for each of the 10 comparisons.
func TestCoverage(t *testing.T) {
	t.Parallel()
	const runs, n = 2000, 400
	shares := []float64{.05, .25, .7}
	rng := rand.New(rand.NewPCG(17, 4))
	for _, p := range []float64{.6, .2} {
		var missed [3]int
		var sum, squares float64
		missedMean, alarms := 0, 0
		for range runs {
			counts := make([]int, 3)
			for range n {
				x := 0
				for u := rng.Float64(); x < 2 && u > shares[x]; x++ {
					u -= shares[x]
				}
				if rng.Float64() >= p {
					x = (x + 1 + rng.IntN(2)) % 3
				}
				counts[x]++
			}
			r := analyze(t, answers(counts...), survey.Options{Truth: p, Categories: 3, Claim: claim(response.LossOf(3, p), 0)})
			for i, c := range r.Shares {
				if float64(c.Share.Lower) > shares[i] || float64(c.Share.Upper) < shares[i] {
					missed[i]++
				}
			}
			sum += float64(r.Shares[1].Share.Estimate)
			squares += float64(r.Shares[1].Share.Estimate * r.Shares[1].Share.Estimate)
			if float64(r.Mean.Lower) > 1.65 || float64(r.Mean.Upper) < 1.65 {
				missedMean++
			}
			if r.Verdict != analysis.NoEvidence {
				alarms++
			}
		}
		limit := int(.05*runs + 6*math.Sqrt(.05*.95*runs))
		if missed[0] > limit || missed[1] > limit || missed[2] > limit || missedMean > limit || alarms > limit {
			t.Errorf("p = %v: of %d, missed %v, means %d, alarms %d: above %d", p, runs, missed, missedMean, alarms, limit)
		}
		average := sum / runs
		if se := math.Sqrt((squares/runs - average*average) / runs); math.Abs(average-.25) > 6*se {
			t.Errorf("p = %v: the average estimate is %.4f +- %.4f, want .25", p, average, se)
		}
	}
}

// FuzzNew: intervals are in order and within their range, and the report has a JSON form.
func FuzzNew(f *testing.F) {
	f.Add(3, 5, 0, 2, .75, 1.0, 0.0)
	f.Add(0, 1, 7, 5, 1.0, 1e9, .5)
	f.Add(1, 1, 1, 3, 0.0, 0.0, 0.0)
	f.Add(1<<40, 1, 1, 1<<40, 1./3, 5e-324, 0.0)
	f.Fuzz(func(t *testing.T, a, b, c, k int, p, epsilon, delta float64) {
		all := answers(max(a, 0)%(1<<40), max(b, 0)%(1<<40), max(c, 0)%(1<<40))
		r, err := survey.New(all, survey.Options{Truth: p, Categories: k, Claim: claim(epsilon, delta), Confidence: .95, BreachOdds: 2})
		if err != nil {
			return
		}
		for _, s := range r.Shares {
			if !(0 <= s.Share.Lower && s.Share.Lower <= s.Share.Upper && s.Share.Upper <= 1) {
				t.Errorf("%+v", s)
			}
		}
		if r.Mean != nil && !(r.Mean.Lower <= r.Mean.Upper) {
			t.Errorf("%+v", r.Mean)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
