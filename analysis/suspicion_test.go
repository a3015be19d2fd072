package analysis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestSuspicionOfAnEvent: an event that always happens in one world and never in the other is a suspicion after the
// pairs that the best bet takes and few more. Its confirmation takes at least 100 fresh pairs, and those of recorded
// results are a violation after 100.
func TestSuspicionOfAnEvent(t *testing.T) {
	t.Parallel()
	answers := map[string]draw{
		"one answer each": func(*rand.Rand) (d0, d1 analysis.Outcome) { return word("a"), word("b") },
		"one world varies": func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			return word("a"), word(fmt.Sprint("b", r.IntN(4)))
		},
	}
	for name, d := range answers {
		for _, c := range []struct {
			epsilon float64
			pairs   int // (ln(1/alpha) + 3) / (2 ln(1 + e^-epsilon))
			most    int
		}{{1, 10, 45}, {4, 165, 250}} {
			t.Run(fmt.Sprint(name, " ", c.epsilon), func(t *testing.T) {
				t.Parallel()
				claim := analysis.Claim{Epsilon: c.epsilon}
				r := rand.New(rand.NewPCG(1, 3))
				a, err := analysis.New(claim, analysis.Options{Suspicion: true})
				if err != nil {
					t.Fatal(err)
				}
				before, fresh := confirmed(t, a, func() (d0, d1 analysis.Outcome) { return d(r) })
				t.Logf("a suspicion after %d pairs, confirmed by %d", before, fresh)
				if before < c.pairs || before > c.most {
					t.Errorf("a suspicion after %d pairs, want %d to %d", before, c.pairs, c.most)
				}
				if v := a.Report().Verdict; v != analysis.Violation || fresh < 100 {
					t.Errorf("%s after %d fresh pairs, want a violation after at least 100", v, fresh)
				}
				if got := run(t, claim, 10_000, 1, d); got.Verdict != analysis.Violation || got.Trials.D0 < 100 {
					t.Errorf("recorded results: %s after %d pairs, want a violation after at least 100", got.Verdict, got.Trials.D0)
				}
			})
		}
	}
}
