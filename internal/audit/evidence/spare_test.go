package evidence_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// TestSpared: of three neighbours, one changes the answer by two scales. Once its evidence has grown, batches have only
// its trials, and the violation is found. Seeds are fixed: nothing is random.
func TestSpared(t *testing.T) {
	t.Parallel()
	coin := rand.New(rand.NewPCG(1, 2))
	e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.999999, MaxTrials: 5000}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if s := e.Spared(1); s != nil {
		t.Errorf("without evidence %v is spared", s)
	}
	spares, batches := 0, 0
	for ; !e.Decided(); batches++ {
		spared := e.Spared(batches)
		if spared != nil {
			spares++
			if spared[0] || spared[2] {
				t.Fatalf("batch %d: %v is spared, though the second neighbour leaks", batches, spared)
			}
		}
		for range 20 {
			e.AddPart([]outcome.Outcome{laplace(coin, 0), laplace(coin, 0), laplace(coin, 2), laplace(coin, 0)}, spared)
		}
	}
	if !e.Found() || e.Report(1).Verdict != analysis.Violation {
		t.Errorf("%s, want a violation", e.Report(1).Verdict)
	}
	if some, most := e.Report(0).Trials.D0, e.Report(1).Trials.D0; spares == 0 || 3*some > 2*most {
		t.Errorf("%d of %d batches spare neighbours, which have %d trials of %d; want at most two thirds", spares, batches, some, most)
	}
}

// TestSparedBudget: without a violation the whole budget of each neighbour is used, whichever had its trials first,
// before the verdict that there is no evidence, also by a process that goes on from the stored state.
func TestSparedBudget(t *testing.T) {
	t.Parallel()
	const budget = 200
	coin := rand.New(rand.NewPCG(3, 4))
	e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.999999, MaxTrials: budget}, 2)
	if err != nil {
		t.Fatal(err)
	}
	add := func(spared []bool) {
		e.AddPart([]outcome.Outcome{laplace(coin, 0), laplace(coin, 0), laplace(coin, 0)}, spared)
	}
	for range budget + 10 {
		add([]bool{false, false, true})
	}
	if e.Decided() || e.Report(0).Trials.D0 != budget || e.Report(1).Trials.D0 != 0 {
		t.Fatalf("decided %v after %+v and %+v", e.Decided(), e.Report(0).Trials, e.Report(1).Trials)
	}
	state, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	e = new(evidence.Evidence)
	if err := e.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	rounds := 0
	for ; !e.Decided(); rounds++ {
		spared := e.Spared(rounds)
		if !slices.Equal(spared, []bool{false, true, false}) {
			t.Fatalf("%v is spared, want the neighbour without a budget", spared)
		}
		add(spared)
	}
	if rounds != budget || e.Found() || e.Report(1).Verdict != analysis.NoEvidence || e.Report(0).Trials.D0 != budget {
		t.Errorf("%d rounds, %s after %+v and %+v", rounds, e.Report(1).Verdict, e.Report(0).Trials, e.Report(1).Trials)
	}
}
