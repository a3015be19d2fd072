package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// laplaceRound draws Laplace noise at epsilon around a true answer that differs by 1; further neighbours equal D0.
func laplaceRound(r *rand.Rand, epsilon float64, neighbours int) []outcome.Outcome {
	round := make([]outcome.Outcome, 1+neighbours)
	for i := range round {
		noise := math.Round(r.ExpFloat64()/epsilon*0x1p20) / 0x1p20
		if r.Uint64()&1 == 0 {
			noise = -noise
		}
		if i == 1 {
			noise++
		}
		round[i] = outcome.Outcome{Columns: []analysis.Column{{Name: "x"}}, Rows: [][]analysis.Value{{{Kind: analysis.Number, Num: noise}}}}
	}
	return round
}

// delay returns the number of rounds that a watched query takes until the alarm, after honest rounds, limit+1 for none.
func delay(t testing.TB, seed uint64, claim, actual float64, honest, limit int) int {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	w := evidence.NewWatch(analysis.Claim{Epsilon: claim}, analysis.Options{Confidence: .95, MaxTrials: 10_000}, 1)
	for i := range honest + limit {
		epsilon := claim
		if i >= honest {
			epsilon = actual
		}
		if err := w.Add(laplaceRound(r, epsilon, 1)); err != nil {
			t.Fatal(err)
		}
		if i >= honest && (i-honest+1)%25 == 0 && w.Alarm() {
			return i - honest + 1
		}
	}
	return limit + 1
}

// TestWatchDelay measures the delay of the alarm in docs/statistics.md.
func TestWatchDelay(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	runs := int(longtest.Number(t, "DPWATCH_WATCH_RUNS", 40))
	for _, factor := range []float64{1.2, 1.5, 2, 5} {
		t.Run(fmt.Sprint(factor), func(t *testing.T) {
			limit := 30_000
			var all []int
			for i := range runs {
				all = append(all, delay(t, uint64(i), 1, factor, 100+25*(i%40), limit))
			}
			slices.Sort(all)
			t.Logf("%g times the claim: median %d, 90 %% %d", factor, all[len(all)/2], all[len(all)*9/10])
		})
	}
}
