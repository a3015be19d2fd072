package analysis_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

func single(v float64) outcome.Outcome {
	return outcome.Outcome{
		Columns: []outcome.Column{{Name: "n"}},
		Rows:    [][]outcome.Value{{{Kind: outcome.Number, Num: v}}},
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	failed := outcome.Outcome{SQLState: "54000"}
	for _, tc := range []struct {
		name string
		draw func(r *rand.Rand, i, n int) outcome.Outcome
		n    int
		want string // "" = unchanged
	}{
		{"steady", func(r *rand.Rand, _, _ int) outcome.Outcome { return single(r.ExpFloat64()) }, 5000, ""},
		{"steady and discrete", func(r *rand.Rand, _, _ int) outcome.Outcome { return single(float64(r.IntN(3))) }, 5000, ""},
		{"constant", func(*rand.Rand, int, int) outcome.Outcome { return single(1) }, 5000, ""},
		{"few results that all changed", func(_ *rand.Rand, i, n int) outcome.Outcome { return single(float64(2 * i / n)) }, 60, "the sum of its numbers"},
		{"noise of thrice the scale", func(r *rand.Rand, i, n int) outcome.Outcome {
			return single(r.NormFloat64() * (1 + 2*float64(2*i/n)))
		}, 2000, "the sum of its numbers"},
		{"a change that is seen after thinning", func(r *rand.Rand, i, n int) outcome.Outcome {
			return single(r.NormFloat64() + float64(2*i/n))
		}, 20_000, "the sum of its numbers"},
		{"a budget that ran out", func(r *rand.Rand, i, _ int) outcome.Outcome {
			if i > 600 {
				return failed
			}
			return single(r.NormFloat64())
		}, 1000, "how it fails"},
		{"rows that went away", func(_ *rand.Rand, i, n int) outcome.Outcome {
			if 2*i < n {
				return single(0)
			}
			return outcome.Outcome{Columns: []outcome.Column{{Name: "n"}}}
		}, 100, "its number of rows"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var d analysis.Drift
			r := rand.New(rand.NewPCG(1, 2))
			for i := range tc.n {
				d.Add(tc.draw(r, i, tc.n))
			}
			if what, changed := d.Changed(); what != tc.want || changed != (tc.want != "") {
				t.Errorf("changed %t in %q, want %q", changed, what, tc.want)
			}
		})
	}
}

// Asked after every result, it is wrong in at most 0.5 % of worlds that do not change: more than 12 of 400 have a
// probability below 2e-7, more than 8 of 100 one below 3e-9.
func TestDriftErrorRate(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	wrong, worlds := 0, longtest.Count(100, 400)
	for seed := range worlds {
		r := rand.New(rand.NewPCG(seed, 3))
		var d analysis.Drift
		for range 300 {
			d.Add(single(r.NormFloat64()))
			if _, changed := d.Changed(); changed {
				wrong++
				break
			}
		}
	}
	if wrong > int(longtest.Count(8, 12)) {
		t.Errorf("%d of %d unchanging worlds were called changed", wrong, worlds)
	}
}

func TestTemper(t *testing.T) {
	t.Parallel()
	var steady, moved analysis.Drift
	for i := range 100 {
		steady.Add(single(1))
		moved.Add(single(float64(i / 50)))
	}
	at := 70
	r := analysis.Report{Verdict: analysis.Violation, DetectedAt: &at, EpsilonLower: 3}
	if got := analysis.Temper(r, &steady, &steady); got.Verdict != analysis.Violation || got.EpsilonLower != 3 {
		t.Errorf("nothing changed, and yet %+v", got)
	}
	got := analysis.Temper(r, &steady, &moved)
	if got.Verdict != analysis.Inconclusive || !strings.Contains(got.Reason, "changed during the audit: on D1") || got.DetectedAt != nil || got.EpsilonLower != 0 {
		t.Errorf("D1 changed: %+v, want inconclusive", got)
	}
	if got := analysis.Temper(r, &moved, &moved); got.Verdict != analysis.Inconclusive || !strings.Contains(got.Reason, "changed alike") {
		t.Errorf("both changed: %+v, want inconclusive", got)
	}
	r.Verdict = analysis.NoEvidence
	if got := analysis.Temper(r, &moved, &moved); got.Verdict != analysis.NoEvidence || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].Reveal(), "verdict and bound hold if") {
		t.Errorf("both changed without a violation: %+v, want a warning that says what holds", got)
	}
	if got := analysis.Temper(r, &moved, &steady); got.Verdict != analysis.NoEvidence || len(got.Warnings) != 1 {
		t.Errorf("D0 changed without a violation: %+v, want a warning", got)
	}
}
