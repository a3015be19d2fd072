package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestHistogramOfWholeNumbers: each bar is centred on as many whole numbers, none is between two bars, and an event
// covers whole bars.
func TestHistogramOfWholeNumbers(t *testing.T) {
	t.Parallel()
	for _, scale := range []float64{1, 100} {
		a, err := analysis.New(analysis.Claim{Epsilon: .5}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 1))
		one := func(shift float64) analysis.Outcome {
			return value(math.Round(40 + scale*(shift+r.ExpFloat64()-r.ExpFloat64())))
		}
		for range 400 {
			a.Add(one(0), one(2))
		}
		h := a.QuickFigures().Histogram
		if h == nil {
			t.Fatal("no histogram")
		}
		edges, sum := h.Edges.Reveal(), 0
		for i, e := range edges {
			if e-math.Floor(e) != .5 || i > 0 && e-edges[i-1] != edges[1]-edges[0] {
				t.Fatalf("scale %v: edges %v", scale, edges)
			}
		}
		for i := range h.D0 {
			sum += h.D0[i] + h.D1[i]
		}
		if sum < 780 || sum > 800 {
			t.Errorf("scale %v: %d numbers are in the bars, want 99 %% of 800", scale, sum)
		}
		event := h.Event.Reveal()
		if len(event) == 0 && scale == 1 { // with the other one, another score has the most evidence
			t.Fatalf("scale %v: no event", scale)
		}
		for _, e := range event {
			if e[0]-math.Floor(e[0]) != .5 || e[1]-math.Floor(e[1]) != .5 {
				t.Errorf("scale %v: the event %v cuts a number", scale, e)
			}
		}
	}
}

// TestQuickFigures: all figures but the profile, which takes time, come without it.
func TestQuickFigures(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		a.Add(value(lap(r, 1)), value(2+lap(r, 1)))
	}
	quick, all := a.QuickFigures(), a.Figures()
	if len(quick.Profile) != 0 || len(all.Profile) < 5 || quick.Histogram == nil || len(quick.Path) != len(all.Path) {
		t.Errorf("%+v\n%+v", quick, all)
	}
}
