package analysis_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// runningSums draws the running sums of n noisy zeros (D0) or ones (D1), one column each: neighbours share their noise,
// and only their differences tell, each with a loss of epsilon.
func runningSums(n int, epsilon float64) draw {
	one := func(r *rand.Rand, x float64) analysis.Outcome {
		o := analysis.Outcome{Rows: [][]analysis.Value{nil}}
		sum := 0.0
		for i := range n {
			sum += x + lap(r, 1/epsilon)
			o.Columns = append(o.Columns, analysis.Column{Name: string(rune('a' + i))})
			o.Rows[0] = append(o.Rows[0], analysis.Value{Kind: analysis.Number, Num: sum})
		}
		return o
	}
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) { return one(r, 0), one(r, 1) }
}

// TestRatioOfRunningSums holds the lower bound that noise shared between the columns of a row leaves without a claim:
// at least 0.34 in three of five audits of true epsilon 1. Measured are 0.39 to 0.45, and 0.23 to 0.36 without the
// learned ratio. The seeds are fixed.
func TestRatioOfRunningSums(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	const pairs, least = 20_000, .34
	draw := runningSums(10, .1)
	above := 0
	var bounds []float64
	for seed := range uint64(5) {
		a, err := analysis.New(analysis.Claim{}, analysis.Options{NoClaim: true, MaxTrials: pairs})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 77))
		for range pairs {
			a.Add(draw(r))
		}
		e := float64(a.Report().EpsilonLower)
		bounds = append(bounds, e)
		if e >= least {
			above++
		}
	}
	t.Logf("bounds %.3g", bounds)
	if above < 3 {
		t.Errorf("bounds %.3g: fewer than three reach %g", bounds, least)
	}
}

// TestRatioIsNamed: the event that a learned ratio finds says that it looks at the whole result.
func TestRatioIsNamed(t *testing.T) {
	t.Parallel()
	r := run(t, analysis.Claim{Epsilon: 1}, 3000, 5, runningSums(10, .3))
	if r.Verdict != analysis.Violation || r.Event == nil || r.Event.Score != "joint_ratio" ||
		!strings.Contains(r.Event.Description.Reveal(), "all 10 partitions and columns") {
		t.Errorf("verdict %s, event %+v", r.Verdict, r.Event)
	}
}
