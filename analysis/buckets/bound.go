package buckets

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Bucket is one bucket with its counts in all trials.
type Bucket struct {
	Name    withheld.Text `json:"bucket"`
	D0      int           `json:"d0"`
	D1      int           `json:"d1"`
	InEvent bool          `json:"in_event"`
}

// Error is a point of the curve of the error rates of the test "the result is from D0 if it is in one of the first
// buckets".
type Error struct {
	FalsePositive float64 `json:"false_positive"` // a result on D1 is in these buckets
	FalseNegative float64 `json:"false_negative"` // a result on D0 is not
}

// Report is the result of the bucket estimator.
type Report struct {
	Claim      analysis.Claim   `json:"claimed"`
	Confidence float64          `json:"confidence"`
	Verdict    analysis.Verdict `json:"verdict"`
	// EpsilonLower is 0 if no event shows a leak. It holds with probability Confidence.
	EpsilonLower float64 `json:"epsilon_lower"`
	// Estimate is the seeds' point estimate from all trials, null if it has no value. It is no bound.
	Estimate analysis.Float `json:"epsilon_estimate"`
	// Direction is the world on which the event is more likely; "" if no event was chosen.
	Direction string `json:"direction"`
	// Selecting pairs chose the event, and the edges of quantiles; Testing pairs gave the bound.
	Selecting int      `json:"selecting_pairs"`
	Testing   int      `json:"testing_pairs"`
	Event     [2]int   `json:"event_counts"` // in the testing pairs, on D0 and on D1
	Buckets   []Bucket `json:"buckets"`      // by their ratio D0/D1, the largest first
	Errors    []Error  `json:"error_rates"`  // after each bucket, from (0, 1) to (1, 0)
}

// Analyze returns the report. The pairs must be in random order, or in the order of execution if trials are
// independent. minCount is the smallest count that the point estimate uses.
//
// The first half of the pairs chooses the event, a set of buckets, and its direction. The second half has two
// Clopper-Pearson bounds for it, each with the error rate (1-confidence)/2. So the bound exceeds the true epsilon with
// a probability of at most 1-confidence, whichever rules were written before the results were seen.
func (c *Collector) Analyze(claim analysis.Claim, confidence float64, minCount int) (Report, error) {
	if !(claim.Epsilon >= 0) || math.IsInf(claim.Epsilon, 0) || !(claim.Delta >= 0 && claim.Delta < 1) {
		return Report{}, fmt.Errorf("--epsilon %v, --delta %v: epsilon must not be negative, delta at least 0 and less than 1", claim.Epsilon, claim.Delta)
	}
	if !(confidence > 0 && confidence < 1) {
		return Report{}, fmt.Errorf("--confidence %v: must be between 0 and 1", confidence)
	}
	if c.pairs < 2 {
		return Report{}, fmt.Errorf("%d pairs of trials: at least 2 are needed", c.pairs)
	}
	first := c.pairs / 2
	c.fix(first)
	all, err := c.count(first)
	if err != nil {
		return Report{}, err
	}
	r := Report{Claim: claim, Confidence: confidence, Verdict: analysis.NoEvidence, Selecting: first, Testing: c.pairs - first}
	event, toward := chosen(all, first, claim.Delta, 1-confidence)
	if toward >= 0 {
		r.Direction = fmt.Sprintf("D%d", toward)
		for i, b := range all {
			if event[i] {
				r.Event[0] += b.counts[1][0]
				r.Event[1] += b.counts[1][1]
			}
		}
		r.EpsilonLower = max(0, lower(r.Event[toward], r.Event[1-toward], r.Testing, claim.Delta, 1-confidence))
	}
	if r.EpsilonLower > claim.Epsilon {
		r.Verdict = analysis.Violation
	}
	c.describe(&r, all, event, minCount)
	return r, nil
}

// lower is the bound of epsilon from the counts of an event in n trials of the world where it is more likely and n of
// the other.
func lower(more, less, n int, delta, alpha float64) float64 {
	p, _ := analysis.ClopperPearson(more, n, alpha)
	_, q := analysis.ClopperPearson(less, n, alpha)
	if p <= delta {
		return math.Inf(-1)
	}
	return math.Log(p-delta) - math.Log(q)
}

// chosen returns the event with the largest bound in the first half: the first buckets in the order of their ratio, or
// the remaining ones. toward is the world on which it is more likely, -1 if no event has a bound above 0.
func chosen(all []counted, first int, delta, alpha float64) (event []bool, toward int) {
	order := ratioOrder(all, func(b counted) [2]int { return b.counts[0] })
	best, cut, toward := 0.0, 0, -1
	sum := [2]int{}
	for i, j := range order {
		sum[0] += all[j].counts[0][0]
		sum[1] += all[j].counts[0][1]
		if e := lower(sum[0], sum[1], first, delta, alpha); e > best {
			best, cut, toward = e, i+1, 0
		}
		if e := lower(first-sum[1], first-sum[0], first, delta, alpha); e > best {
			best, cut, toward = e, i+1, 1
		}
	}
	event = make([]bool, len(all))
	for i, j := range order {
		event[j] = toward == 0 && i < cut || toward == 1 && i >= cut
	}
	return event, toward
}

func ratioOrder(all []counted, counts func(counted) [2]int) []int {
	c0, c1 := make([]int, len(all)), make([]int, len(all))
	for i, b := range all {
		x := counts(b)
		c0[i], c1[i] = x[0], x[1]
	}
	return analysis.BucketOrder(c0, c1)
}

// describe adds the buckets, the curve and the point estimate, from all trials.
func (c *Collector) describe(r *Report, all []counted, event []bool, minCount int) {
	total := func(b counted) [2]int {
		return [2]int{b.counts[0][0] + b.counts[1][0], b.counts[0][1] + b.counts[1][1]}
	}
	var counts [2][]int
	sum := [2]int{}
	r.Errors = []Error{{0, 1}}
	for _, j := range ratioOrder(all, total) {
		n := total(all[j])
		r.Buckets = append(r.Buckets, Bucket{Name: c.name(all[j].parts), D0: n[0], D1: n[1], InEvent: event[j]})
		counts[0], counts[1] = append(counts[0], n[0]), append(counts[1], n[1])
		sum[0] += n[0]
		sum[1] += n[1]
		r.Errors = append(r.Errors, Error{float64(sum[1]) / float64(c.pairs), 1 - float64(sum[0])/float64(c.pairs)})
	}
	r.Estimate = analysis.Float(analysis.BucketEstimate(counts[0], counts[1], r.Claim.Delta, minCount))
}
