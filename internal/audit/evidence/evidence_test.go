package evidence_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// laplace returns one number with Laplace noise of scale 1.
func laplace(coin *rand.Rand, value float64) outcome.Outcome {
	return number(value + coin.ExpFloat64() - coin.ExpFloat64())
}

func number(x float64) outcome.Outcome {
	o, err := new(outcome.Parser).ParseLine(strconv.AppendFloat(nil, x, 'g', -1, 64))
	if err != nil {
		panic(err)
	}
	return o
}

// TestReads: if it is not verified what trials read, there is no evidence only where the answers differ. It is kept
// with the evidence.
func TestReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		unverified     string
		beside         []string
		shift          float64 // of the answers on D0
		noise          bool
		verdict        analysis.Verdict
		reason, absent string
	}{
		{"verified, same law", "", nil, 0, true, analysis.NoEvidence, "no violation in 2000 pairs", "verified"},
		{"same law", "no counters", nil, 0, true, analysis.Inconclusive, "it cannot be verified that trials read the copies (no counters), and the answers on D0 and D1 show no difference; otherwise: no violation in 2000 pairs", "but"},
		{"same answer", "no counters", nil, 0, false, analysis.Inconclusive, "otherwise: deterministic or cached noise", "but"},
		{"another law", "no counters", nil, 1, true, analysis.NoEvidence, "; not verified: trials read the copies of their world alone (no counters), but the answers on D0 and D1 differ", "otherwise"},
		{"beside, another law", "", []string{"f reads x", "f reads x"}, 1, true, analysis.Inconclusive, "so that a leak of it cannot show (f reads x); list tables", "but"},
		{"beside, a law that is too far", "", []string{"f reads x"}, 4, true, analysis.Violation, "", "f reads x"},
	} {
		coin := rand.New(rand.NewPCG(1, 2))
		e, err := evidence.New(analysis.Claim{Epsilon: 2}, analysis.Options{Confidence: 0.95, MaxTrials: 2000}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if e.ReadsKnown() {
			t.Error("what the trials read is known before them")
		}
		e.SetReads(c.unverified, c.beside)
		for i := range 2000 {
			rounded := func(x float64) outcome.Outcome { // the last bits of a sum depend on its size
				return number(math.Round(1024*(x+coin.ExpFloat64()-coin.ExpFloat64())) / 1024)
			}
			d0, d1 := rounded(c.shift), rounded(0)
			if !c.noise {
				d0, d1 = number(7), number(7)
			}
			if e.Add([]outcome.Outcome{d0, d1}); i == 1000 {
				state, err := e.MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				if e = new(evidence.Evidence); e.UnmarshalBinary(state) != nil || !e.ReadsKnown() {
					t.Fatal("what the trials read is not kept")
				}
			}
		}
		r := e.Report(0)
		if r.Verdict != c.verdict || !strings.Contains(r.Reason, c.reason) || strings.Contains(r.Reason, c.absent) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, r.Verdict, r.Reason, c.verdict, c.reason)
		}
		warned := slices.ContainsFunc(r.Warnings, func(w withheld.Text) bool { return strings.HasPrefix(w.String(), "not verified: ") })
		if warned != (c.unverified != "" || c.beside != nil) {
			t.Errorf("%s: warnings %q", c.name, r.Warnings)
		}
	}
}

// TestConfirmation: of two neighbours, one changes the answer by ten scales. Its violation is a suspicion until new
// trials confirm it, and the confirmation ignores the other neighbour. Seeds are fixed: nothing is random.
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
	if err := e.Confirm(); err != nil {
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
		if test.recorded {
			e, err = evidence.NewRecorded(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.95, MaxTrials: 10}, 1, true)
		}
		if err != nil {
			t.Fatal(err)
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

// TestRestored: evidence that is saved and restored again and again, through a suspicion, its confirmation and its
// measurement, gives the reports of evidence that was never interrupted. Seeds are fixed.
func TestRestored(t *testing.T) {
	t.Parallel()
	for _, inOrder := range []bool{true, false} {
		coin := rand.New(rand.NewPCG(3, 4))
		whole, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.975, MaxTrials: 400}, 2)
		if !inOrder {
			whole, err = evidence.NewRecorded(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.975, MaxTrials: 400}, 2, inOrder)
		}
		if err != nil {
			t.Fatal(err)
		}
		broken := restored(t, whole)
		for n := 0; !whole.Decided() || whole.Found() && !whole.Measuring(); n++ {
			if whole.Found() && !whole.Confirming() {
				for _, e := range []*evidence.Evidence{whole, broken} {
					if err := e.Confirm(); err != nil {
						t.Fatal(err)
					}
				}
				broken = restored(t, broken)
			}
			if whole.Found() && !whole.Measuring() && !(whole.Measure(300) && broken.Measure(300)) {
				t.Fatal("the violation cannot be measured")
			}
			round := []outcome.Outcome{laplace(coin, 0), laplace(coin, 0), laplace(coin, 4)}
			whole.Add(round)
			broken.Add(round)
			if n%7 != 0 {
				continue
			}
			broken = restored(t, broken)
			if diff := cmp.Diff(shown(t, whole), shown(t, broken)); diff != "" {
				t.Fatalf("in order %t, after %d rounds (-whole +restored):\n%s", inOrder, n+1, diff)
			}
		}
		if diff := cmp.Diff(shown(t, whole), shown(t, broken)); diff != "" {
			t.Errorf("in order %t, at the end (-whole +restored):\n%s", inOrder, diff)
		}
		if r := whole.Report(1); !whole.Found() || !whole.Measuring() || r.EpsilonLower < 2*r.Measurement.ReportedLower {
			t.Errorf("in order %t: found %t, bound %v, %+v; want a measured violation", inOrder, whole.Found(), r.EpsilonLower, r.Measurement)
		}
	}
}

// shown returns the reports with the values of rows, and what decides how the audit goes on.
func shown(t *testing.T, e *evidence.Evidence) string {
	t.Helper()
	_, reports := e.Worst()
	for i := range reports {
		reports[i] = reports[i].Reveal()
	}
	text, err := json.MarshalIndent(struct {
		Reports        []analysis.Report
		Decided, Found bool
		Wealth         float64
		Settled        []bool
	}{reports, e.Decided(), e.Found(), e.Wealth(), e.Settled()}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func restored(t *testing.T, e *evidence.Evidence) *evidence.Evidence {
	t.Helper()
	state, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again evidence.Evidence
	if err := again.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return &again
}

// TestDamagedState: a state that is cut off gives an error and leaves the evidence as it was.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	coin := rand.New(rand.NewPCG(5, 6))
	e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.975, MaxTrials: 400}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		e.Add([]outcome.Outcome{laplace(coin, 0), laplace(coin, 0)})
	}
	state, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	before := shown(t, e)
	for n := 0; n < len(state); n += 7 {
		if err := e.UnmarshalBinary(state[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(state))
		}
		damaged := slices.Clone(state)
		damaged[n] ^= 0x55
		_ = new(evidence.Evidence).UnmarshalBinary(damaged) // must not panic; the ledger's checksum finds what is left
	}
	if after := shown(t, e); after != before {
		t.Error("a failed restore changed the evidence")
	}
}

// TestQuestionable: results of one world that change during the audit are inconclusive, and what replays them may be
// the cause. Seeds are fixed: nothing is random.
func TestQuestionable(t *testing.T) {
	t.Parallel()
	for shift, want := range map[float64]analysis.Verdict{0: analysis.NoEvidence, 10: analysis.Inconclusive} {
		coin := rand.New(rand.NewPCG(1, 2))
		e, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 0.975, MaxTrials: 500}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; !e.Decided(); n++ {
			if e.Questionable() {
				t.Fatal("questionable before it is decided")
			}
			e.Add([]outcome.Outcome{laplace(coin, 0), laplace(coin, shift*float64(n/100))})
		}
		if r := e.Report(0); e.Found() || e.Questionable() != (want != analysis.NoEvidence) || r.Verdict != want {
			t.Errorf("shift %v: found %t, questionable %t, %s: %s; want %s", shift, e.Found(), e.Questionable(), r.Verdict, r.Reason, want)
		}
	}
}
