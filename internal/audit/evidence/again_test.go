package evidence_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// playOn adds rounds until the evidence is decided or a confirmation ends, and returns how many.
func playOn(t *testing.T, e *evidence.Evidence, round func() []outcome.Outcome) (rounds int) {
	t.Helper()
	for confirming := e.Confirming(); !e.Decided() && e.Confirming() == confirming; rounds++ {
		e.Add(round())
	}
	return rounds
}

// TestUnconfirmedGoesOn: trials that look like a violation for a while, which fresh trials do not confirm, do not end
// the audit. It goes on with new evidence and the rest of the budget, at an eighth of the error rate, and the report
// counts the suspicion. The leak that is real is found then. Seeds are fixed.
func TestUnconfirmedGoesOn(t *testing.T) {
	t.Parallel()
	const budget = 1500
	for _, c := range []struct {
		name  string
		later float64 // true epsilon after the suspicion
		want  analysis.Verdict
	}{{"honest", .5, analysis.NoEvidence}, {"wrong", 4, analysis.Violation}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			coin := rand.New(rand.NewPCG(5, 6))
			e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: budget}, 1)
			if err != nil {
				t.Fatal(err)
			}
			round := func(epsilon float64) func() []outcome.Outcome {
				return func() []outcome.Outcome { return pair(coin, 0, epsilon) }
			}
			before := playOn(t, e, round(5))
			if !e.Found() {
				t.Fatal("no suspicion")
			}
			if err := e.Confirm(); err != nil {
				t.Fatal(err)
			}
			playOn(t, e, round(.5))
			e = restored(t, e)
			if r := e.Report(0); e.Confirming() || e.Decided() || r.UnconfirmedSuspicions != 1 || r.Trials.D0 != 0 || r.ErrorRate > .05/8+1e-12 || len(r.Warnings) == 0 {
				t.Fatalf("confirming %t, decided %t, %+v", e.Confirming(), e.Decided(), r)
			}
			n := playOn(t, e, round(c.later))
			if e.Found() {
				if err := e.Confirm(); err != nil {
					t.Fatal(err)
				}
				playOn(t, e, round(c.later))
			} else if n != budget-before {
				t.Errorf("%d pairs after %d, want %d in all", n, before, budget)
			}
			if r := e.Report(0); r.Verdict != c.want || r.UnconfirmedSuspicions != 1 {
				t.Errorf("%s (%s) with %d unconfirmed suspicions, want %s with 1", r.Verdict, r.Reason, r.UnconfirmedSuspicions, c.want)
			}
		})
	}
}

// TestUnconfirmedEnds: the third suspicion that is not confirmed ends the audit, which is inconclusive.
func TestUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	coin := rand.New(rand.NewPCG(7, 8))
	e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 5000}, 1)
	if err != nil {
		t.Fatal(err)
	}
	suspicions := 0
	for !e.Decided() {
		playOn(t, e, func() []outcome.Outcome { return pair(coin, 0, 5) })
		if err := e.Confirm(); err != nil {
			t.Fatal(err)
		}
		suspicions++
		playOn(t, e, func() []outcome.Outcome { return pair(coin, 0, .5) })
	}
	if r := e.Report(0); suspicions != 3 || r.Verdict != analysis.Inconclusive || r.Confirmation == nil {
		t.Errorf("%s (%s) after %d suspicions, want inconclusive after 3", r.Verdict, r.Reason, suspicions)
	}
}
