package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// median runs audits of a claim and returns the median of the pairs to detection.
func median(t *testing.T, c analysis.Claim, runs, most int, d draw) int {
	t.Helper()
	longtest.SkipFast(t)
	if !longtest.Enabled() {
		runs = min(runs, 7)
	}
	var at []int
	for i := range runs {
		at = append(at, detected(t, c, most, uint64(1000+i), d))
	}
	slices.Sort(at)
	return at[len(at)/2]
}

// TestPower holds the medians of pairs to detection of Laplace mechanisms. The seeds are fixed: one version always
// gives one result, and the test fails only when the code changes. With -long the bars of the derivation are asked of
// 300 runs; else at least three standard errors of a median of so few runs (1.25 x 0.6 x median / sqrt(runs)) are added
// to what was measured.
func TestPower(t *testing.T) {
	t.Parallel()
	runs := 40
	if *long {
		runs = 300
	}
	for _, c := range []struct {
		claim, true     float64
		most, few, many int // the budget, and the bars of few and of many runs; few = 0: with -long only
	}{
		{1, 2, 600, 95, 87},
		{1, 4, 200, 27, 25},
		{1, 1.5, 1500, 300, 240},
		{1, 1.3, 3000, 740, 543},
		{.1, .5, 1500, 240, 178},
		{2, 3, 1500, 230, 224},
		{4, 5, 6000, 0, 1770},
		{1, 1.2, 8000, 0, 1316},
		{1, 1.1, 10_000, 0, 4400},
	} {
		name := "claim_" + strconv.FormatFloat(c.claim, 'g', -1, 64) + "_true_" + strconv.FormatFloat(c.true, 'g', -1, 64)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bar := c.few
			if *long {
				bar = c.many
			}
			if bar == 0 {
				t.Skip("minutes; run with -long")
			}
			got := median(t, analysis.Claim{Epsilon: c.claim}, runs, c.most, laplaceShift(c.true))
			t.Logf("median %d pairs", got)
			if got > bar {
				t.Errorf("median %d pairs to detection, want at most %d", got, bar)
			}
		})
	}
}

// TestLeaks holds, for leaks of every shape, the median of pairs to detection (with the slack of TestPower for so few
// runs) and what is said about them. Where one world gives one answer only, nothing shows that its trials are
// independent, and a violation takes 100 pairs.
func TestLeaks(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		name           string
		epsilon, delta float64
		bar            int
		d              draw
		say            string // in the event's description
	}{
		{"scale_laplace_0.1", .1, 0, 110, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			return value(lap(r, 20)), value(.5 + lap(r, 10))
		}, "column x"},
		{"scale_gauss_0.1", .1, 1e-5, 70, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			return value(gauss(r, 20)), value(.5 + gauss(r, 10))
		}, "column x"},
		{"randomised_response", 1, 0, 80, response(2), "column answer: \""},
		{"row_count", 1, 0, 90, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			some := func(p float64) analysis.Outcome {
				x := make([]float64, 100)
				for i := range x {
					if x[i] = lap(r, 1); r.Float64() > p {
						x[i] = nan
					}
				}
				return groups(x...)
			}
			return some(.55), some(.45)
		}, "rows"},
		{"presence", 1, 1e-4, 100, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			rare := nan
			if r.Float64() < .5 {
				rare = 1 + lap(r, 1)
			}
			return groups(lap(r, 1), lap(r, 1), rare), groups(lap(r, 1), lap(r, 1), nan)
		}, ""},
		{"null_on_empty", 1, 0, 100, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			d1 = value(0)
			d1.Rows[0][0] = analysis.Value{Kind: analysis.Null}
			return value(lap(r, 1)), d1
		}, "only on D"},
		{"no_row_on_one_side", 1, 0, 100, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			return value(lap(r, 1)), analysis.Outcome{Columns: []analysis.Column{{Name: "x"}}}
		}, "only on D"},
		{"error", 1, 0, 220, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			if d0 = value(lap(r, 1)); r.Float64() < .2 {
				d0 = failed("22012")
			}
			return d0, value(lap(r, 1))
		}, "error 22012"},
		{"lowest_bits", 1, 0, 180, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			naive := func() float64 {
				u := r.Float64() - .5
				return -math.Copysign(math.Log(1-2*math.Abs(u)), u)
			}
			return value(naive()), value(1 + naive())
		}, "lowest bits"},
		{"ten_groups_a_third_each", 1, 0, 1100, many(10, func(int) float64 { return .3125 }), "all 10 partitions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claim := analysis.Claim{Epsilon: c.epsilon, Delta: c.delta}
			got := median(t, claim, 12, 3000, c.d)
			t.Logf("median %d pairs", got)
			if got > c.bar {
				t.Errorf("median %d pairs to detection, want at most %d", got, c.bar)
			}
			r := run(t, claim, 3000, 5, c.d)
			if r.Verdict != analysis.Violation || !(float64(r.EpsilonLower) > c.epsilon) {
				t.Errorf("verdict %s with bound %v", r.Verdict, r.EpsilonLower)
			}
			if !contains(r.Event, c.say) {
				t.Errorf("event %+v does not say %q", r.Event, c.say)
			}
		})
	}
}

// TestOneBadGroupAmongMany costs at most 2.5 times what the group alone costs (medians of few runs: 3.5 times).
func TestOneBadGroupAmongMany(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	claim := analysis.Claim{Epsilon: 1}
	alone := median(t, claim, 30, 2000, many(1, oneOf(0, 2)))
	among := median(t, claim, 8, 2000, many(200, oneOf(17, 2)))
	t.Logf("alone %d pairs, among 200 %d", alone, among)
	if float64(among) > 3.5*float64(alone) {
		t.Errorf("one bad group alone: %d pairs; among 200: %d", alone, among)
	}
	healthy := run(t, claim, 300, 3, many(200, oneOf(17, 1)))
	if healthy.Verdict != analysis.NoEvidence {
		t.Errorf("healthy GROUP BY: %s (%s)", healthy.Verdict, healthy.Reason)
	}
}
