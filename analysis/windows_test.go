package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/planted"
)

// drawWindow draws a pair with the bit in a window: as it is, or by randomised response, which keeps the claim 1 exactly.
func drawWindow(t *testing.T, w planted.Place, response bool) draw {
	one := func(r *rand.Rand, world int) analysis.Outcome {
		epsilon := math.Inf(1)
		if response {
			epsilon = 1
		}
		o, err := w.Response(r, world, epsilon)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) { return one(r, 0), one(r, 1) }
}

// TestWindows: a bit behind each window is found, or the report says what was not read. The seeds are fixed.
func TestWindows(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	for _, w := range planted.Places() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, analysis.Claim{Epsilon: 1}, w.Pairs, 1, drawWindow(t, w, false)); r.Verdict != analysis.Violation {
				t.Errorf("%s (%s), %d pairs", r.Verdict, r.Reason, r.Trials.D0)
			} else {
				t.Logf("found at %d pairs: %s, %s", *r.DetectedAt, r.Event.Score, r.Event.Description.String())
			}
		})
	}
}

// TestHonestWindows: the same answers are no violation where the bit is hidden by randomised response, exactly at the
// claim. Each audit raises an alarm with probability .05 at most. The seeds are fixed.
func TestHonestWindows(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	audits := int(longtest.Count(3, 40))
	alarms, all := 0, 0
	for _, w := range planted.Places() {
		found := 0
		for seed := range audits {
			if detected(t, analysis.Claim{Epsilon: 1}, w.Pairs, uint64(seed), drawWindow(t, w, true)) <= w.Pairs {
				found++
			}
		}
		t.Logf("%s: %d of %d audits", w.Name, found, audits)
		alarms, all = alarms+found, all+audits
	}
	// By Hoeffding's inequality more has a probability of 1e-6 at most.
	if most := .05*float64(all) + 2.63*math.Sqrt(float64(all)); float64(alarms) > most {
		t.Errorf("%d of %d audits of right mechanisms raise an alarm", alarms, all)
	}
}
