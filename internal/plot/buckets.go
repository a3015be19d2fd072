package plot

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/buckets"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// maxBars is how many buckets are drawn.
const maxBars = 30

// WriteBuckets plots the counts of buckets in the order of their likelihood ratio (buckets), and the error rates of the
// tests that they give with the region that the claim allows (errors). It returns the files, which are like those of
// Write.
func WriteBuckets(dir string, r buckets.Report) ([]string, error) {
	return writeAll(dir, r, []drawing[buckets.Report]{{"buckets", bars}, {"errors", errorRates}})
}

// bars draws the buckets like categories. Of too many, those in the middle of the order are one bar.
func bars(r buckets.Report) (*plot.Plot, error) {
	c := analysis.Categories{Label: withheld.Public("bucket, by likelihood ratio D0/D1"), Direction: r.Direction}
	add := func(b buckets.Bucket) {
		c.Names, c.Event = append(c.Names, b.Name), append(c.Event, b.InEvent)
		c.D0, c.D1 = append(c.D0, b.D0), append(c.D1, b.D1)
	}
	if n := len(r.Buckets); n > maxBars {
		middle := buckets.Bucket{Name: withheld.Public(fmt.Sprintf("%d more buckets", n-maxBars+1))}
		for _, b := range r.Buckets[maxBars/2 : n-maxBars/2+1] {
			middle.D0 += b.D0
			middle.D1 += b.D1
		}
		for _, b := range r.Buckets[:maxBars/2] {
			add(b)
		}
		add(middle)
		for _, b := range r.Buckets[n-maxBars/2+1:] {
			add(b)
		}
	} else {
		for _, b := range r.Buckets {
			add(b)
		}
	}
	return categories(analysis.Figures{Categories: &c})
}

// errorRates draws the curve of the false negatives against the false positives, in both directions, over the lines
// below which no test of a mechanism that keeps the claim can be: FP + e^epsilon FN >= 1 - delta and the reverse
// (Kairouz, Oh and Viswanath 2015).
func errorRates(r buckets.Report) (*plot.Plot, error) {
	p := newPlot("Error rates of the test: is the result from D0 or from D1?", "false positives", "false negatives")
	p.Legend.Top, p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = true, 0, 1, 0, 1
	var curve, reverse plotter.XYs
	for _, e := range r.Errors {
		curve = append(curve, plotter.XY{X: e.FalsePositive, Y: e.FalseNegative})
		reverse = append(reverse, plotter.XY{X: e.FalseNegative, Y: e.FalsePositive})
	}
	allowed := plotter.XYs{}
	claim := r.Claim
	corner := (1 - claim.Delta) / (1 + math.Exp(claim.Epsilon))
	allowed = append(allowed, plotter.XY{X: 0, Y: 1 - claim.Delta}, plotter.XY{X: corner, Y: corner}, plotter.XY{X: 1 - claim.Delta, Y: 0})
	region, err := plotter.NewPolygon(append(append(plotter.XYs{}, allowed...), plotter.XY{X: 1, Y: 0}, plotter.XY{X: 1, Y: 1}, plotter.XY{X: 0, Y: 1}))
	if err != nil {
		return nil, err
	}
	region.Color, region.LineStyle.Width = color.NRGBA{R: 120, G: 120, B: 120, A: 40}, 0
	p.Add(region)
	p.Legend.Add("allowed by the claim", region)
	if err := line(p, "edge of the region", grey, allowed, true); err != nil {
		return nil, err
	}
	if err := line(p, "more likely on D0, all trials", blue, curve, false); err != nil {
		return nil, err
	}
	return p, line(p, "more likely on D1", orange, reverse, false)
}
