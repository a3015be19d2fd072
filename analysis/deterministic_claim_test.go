package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestLikelyAnswerIsNotDeterministic: an honest binary response of a large epsilon gives the same answer on D0, and the
// other one on D1, for hundreds of trials. Of 40 such audits at confidence 0.95 more than 12 alarm with probability
// below 1e-6; without regard to the claim more than half did after 100 pairs.
func TestLikelyAnswerIsNotDeterministic(t *testing.T) {
	t.Parallel()
	const epsilon, audits = 6.0, 40
	truth := 1 / (1 + math.Exp(-epsilon))
	alarms := 0
	for seed := range uint64(audits) {
		respond := func(r *rand.Rand, likely, other string) analysis.Outcome {
			if r.Float64() < truth {
				return word(likely)
			}
			return word(other)
		}
		report := run(t, analysis.Claim{Epsilon: epsilon}, 1500, seed, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			return respond(r, "yes", "no"), respond(r, "no", "yes")
		})
		if report.Verdict == analysis.Violation {
			alarms++
		}
	}
	if alarms > 12 {
		t.Errorf("%d of %d audits of an honest response alarm", alarms, audits)
	}
}
