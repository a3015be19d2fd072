package evidence_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// laplace returns one number with Laplace noise of scale 1.
func laplace(coin *rand.Rand, value float64) outcome.Outcome {
	return number(value + coin.ExpFloat64() - coin.ExpFloat64())
}

func number(x float64) outcome.Outcome {
	o, err := outcome.ParseLine(strconv.AppendFloat(nil, x, 'g', -1, 64))
	if err != nil {
		panic(err)
	}
	return o
}

// TestConfirmation: of two neighbours, one changes the answer by ten scales. Its violation is a suspicion until new trials
// confirm it, and the confirmation ignores the other neighbour. Seeds are fixed: nothing is random.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	coin := rand.New(rand.NewPCG(1, 2))
	e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.975, MaxTrials: 500}, 2)
	if err != nil {
		t.Fatal(err)
	}
	play := func() {
		for !e.Decided() {
			e.Add([]outcome.Outcome{laplace(coin, 0), laplace(coin, 0), laplace(coin, 10)})
		}
	}
	play()
	if !e.Found() || e.Confirming() || e.Settled() != nil {
		t.Fatalf("found %t, confirming %t, settled %v; want a suspicion", e.Found(), e.Confirming(), e.Settled())
	}
	if err := e.Confirm(false); err != nil {
		t.Fatal(err)
	}
	if settled := e.Settled(); len(settled) != 3 || settled[0] || !settled[1] || settled[2] {
		t.Errorf("settled %v, want the first neighbour alone", settled)
	}
	if e.Found() {
		t.Error("a violation is reported before fresh trials confirmed it")
	}
	play()
	worst, reports := e.Worst()
	if worst != 1 || reports[1].Verdict != analysis.Violation || reports[0].Verdict == analysis.Violation {
		t.Errorf("neighbour %d shows most, verdicts %s and %s; want a violation of the second", worst, reports[0].Verdict, reports[1].Verdict)
	}
	if c := reports[1].Confirmation; c == nil || c.Pairs == 0 {
		t.Errorf("confirmation %+v", c)
	}
	if w := e.Wealth(); !(w > 0) || math.IsInf(w, 0) {
		t.Errorf("wealth %v", w)
	}
}

// TestFailure: if all trials failed with the same error, the report says so, unless they were recorded; one success
// suppresses it.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		recorded bool
		last     outcome.Outcome
		want     bool
	}{
		{"all failed", false, outcome.Outcome{SQLState: "22012"}, true},
		{"one did not", false, number(1), false},
		{"one failed otherwise", false, outcome.Outcome{SQLState: "57014"}, false},
		{"recorded", true, outcome.Outcome{SQLState: "22012"}, false},
	} {
		e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.95, MaxTrials: 10}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if test.recorded {
			e.Recorded(true)
		}
		for range 4 {
			e.Add([]outcome.Outcome{{SQLState: "22012"}, {SQLState: "22012"}})
		}
		e.Add([]outcome.Outcome{{SQLState: "22012"}, test.last})
		said := false
		for _, w := range e.Report(0).Warnings {
			said = said || strings.Contains(w.String(), "every trial failed with SQLSTATE")
		}
		if said != test.want {
			t.Errorf("%s: a warning %t, want %t", test.name, said, test.want)
		}
	}
}
