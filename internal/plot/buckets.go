package plot

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/buckets"
	"github.com/dpwatch/dpwatch/internal/chart"
)

// maxBars is how many buckets are drawn.
const maxBars = 30

// WriteBuckets writes the counts of buckets in the order of their likelihood ratio (buckets), and the error rates of
// the tests that they give beside what the claim allows (errors). It returns the files, which are like those of Write.
func WriteBuckets(dir string, r buckets.Report) ([]string, error) {
	return write(dir, shown([]Chart{{"buckets", bars(r)}, {"errors", errorRates(r)}}))
}

// bars draws the buckets. Of too many, those in the middle of the order are one pair of bars.
func bars(r buckets.Report) chart.Figure {
	all := make([]chart.Pair, len(r.Buckets))
	for i, b := range r.Buckets {
		all[i] = chart.Pair{Name: b.Name.Reveal(), D0: b.D0, D1: b.D1, Event: b.InEvent}
	}
	if n := len(all); n > maxBars {
		first, last := maxBars/2, n-maxBars/2+1
		middle := chart.Pair{Name: fmt.Sprintf("%d more buckets", last-first)}
		for _, p := range all[first:last] {
			middle.D0 += p.D0
			middle.D1 += p.D1
		}
		all = append(append(all[:first:first], middle), all[last:]...)
	}
	return chart.Pairs(chart.Labels{Title: "Results on D0 and D1", X: "bucket, by likelihood ratio D0/D1", Y: "trials"}, all, "event, likelier on "+r.Direction)
}

// errorRates draws the curve of the false negatives against the false positives, in both directions, and the line below
// which no test of a mechanism that keeps the claim can be: FP + e^epsilon FN >= 1 - delta and the reverse (Kairouz, Oh
// and Viswanath 2015).
func errorRates(r buckets.Report) chart.Figure {
	curve, reverse := chart.Line{Name: "more likely on D0, all trials", Class: "a"}, chart.Line{Name: "more likely on D1", Class: "b"}
	n := len(r.Errors)
	for i, e := range r.Errors {
		curve.Points = append(curve.Points, chart.Point{X: e.FalsePositive, Y: e.FalseNegative})
		e = r.Errors[n-1-i] // false negatives ascend from the end
		reverse.Points = append(reverse.Points, chart.Point{X: e.FalseNegative, Y: e.FalsePositive})
	}
	corner := (1 - r.Claim.Delta) / (1 + math.Exp(r.Claim.Epsilon))
	allowed := chart.Line{Name: "allowed by the claim: this line and above", Class: "c", Points: []chart.Point{
		{X: 0, Y: 1 - r.Claim.Delta}, {X: corner, Y: corner}, {X: 1 - r.Claim.Delta, Y: 0},
	}}
	return chart.Lines(chart.Labels{
		Title: "Error rates of a test: from D0 or D1?", X: "false positives", Y: "false negatives",
	}, []chart.Line{allowed, curve, reverse}, nil, false)
}
