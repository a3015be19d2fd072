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

// TestWatchDelay measures the delay of the alarm in docs/statistics.md: there is one. The seeds are fixed.
func TestWatchDelay(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	runs := int(longtest.Number(t, "DPWATCH_WATCH_RUNS", 20))
	for _, factor := range []float64{1.2, 1.5, 2, 5} {
		t.Run(fmt.Sprint(factor), func(t *testing.T) {
			limit := 30_000
			var all []int
			for i := range runs {
				all = append(all, delay(t, uint64(i), 1, factor, 100+25*(i%40), limit))
			}
			slices.Sort(all)
			t.Logf("%g times the claim: median %d, 90 %% %d", factor, all[len(all)/2], all[len(all)*9/10])
			if all[len(all)-1] > limit {
				t.Errorf("a change to %g times the claim has no alarm in %d rounds", factor, limit)
			}
		})
	}
}

// TestWatchGoesOn: a saved detector goes on bit for bit, a change is found, and a damaged state is refused.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	claim, opt := analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: .95, MaxTrials: 2000}
	one, two := evidence.NewWatch(claim, opt, 2), evidence.NewWatch(claim, opt, 2)
	r := rand.New(rand.NewPCG(1, 2))
	add := func(epsilon float64, rounds int) {
		for range rounds {
			round := laplaceRound(r, epsilon, 2)
			for _, w := range []*evidence.Watch{one, two} {
				if err := w.Add(round); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	save := func() []byte {
		state, err := two.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		two = evidence.NewWatch(claim, opt, 2)
		if err := two.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	save()       // before the first round
	add(.5, 130) // in the first block
	state := save()
	add(.5, 170) // in the second
	save()
	add(.5, 100) // between two
	save()
	if one.Alarm() || one.Rounds() != 400 || one.Evidence() != two.Evidence() {
		t.Fatalf("after %d honest rounds the evidence is %v, restored %v", one.Rounds(), one.Evidence(), two.Evidence())
	}
	for one.Rounds() < 3000 && !one.Alarm() {
		add(5, 10)
		if one.Evidence() != two.Evidence() || one.Alarm() != two.Alarm() {
			t.Fatalf("after %d rounds the evidence is %v, restored %v", one.Rounds(), one.Evidence(), two.Evidence())
		}
	}
	if !one.Alarm() {
		t.Error("five times the claim is not found in 2600 rounds")
	}
	for _, bad := range [][]byte{nil, []byte("x"), state[:len(state)/2]} {
		if err := two.UnmarshalBinary(bad); err == nil || two.Rounds() != one.Rounds() {
			t.Errorf("a damaged state of %d bytes: %v, and %d rounds", len(bad), err, two.Rounds())
		}
	}
	if err := evidence.NewWatch(claim, opt, 1).UnmarshalBinary(state); err == nil {
		t.Error("a state of two neighbours is accepted for one")
	}
}

// TestWatchRunLength: while the claim is spent exactly, at most one detector in 100 alarms within 10 blocks. With 25
// detectors, more than 5 alarms have a probability below 10^-6 if that holds.
func TestWatchRunLength(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	alarms := 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := evidence.NewWatch(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: .95, MaxTrials: 4000}, 1)
		for range 10 * evidence.BlockRounds(4000) {
			if err := w.Add(laplaceRound(r, 1, 1)); err != nil {
				t.Fatal(err)
			}
			if w.Rounds()%25 == 0 && w.Alarm() {
				alarms++
				break
			}
		}
	}
	t.Logf("%d alarms", alarms)
	if alarms > 5 {
		t.Errorf("%d of 25 detectors alarm within 10 blocks, want at most 1 of 100 on average", alarms)
	}
}
