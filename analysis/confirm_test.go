package analysis_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// confirmed audits d with fresh draws from then on, and returns the audit and the pairs before and in the confirmation.
func confirmed(t *testing.T, a *analysis.Audit, d func() (d0, d1 analysis.Outcome)) (before, price int) {
	t.Helper()
	for !a.Decided() {
		a.Add(d())
	}
	if before = a.Report().Trials.D0; a.Report().Verdict != analysis.Violation {
		t.Fatalf("after %d pairs: %s", before, a.Report().Reason)
	}
	if err := a.Confirm(analysis.ConfirmationBudget(before), analysis.ConfirmationLevel); err != nil {
		t.Fatal(err)
	}
	for !a.Decided() {
		a.Add(d())
		price++
	}
	return before, price
}

// A confirmation costs at most the information limit and 20 pairs, in the median of 21 audits on fixed seeds, and both
// parts count in the report.
func TestConfirmationPrice(t *testing.T) {
	t.Parallel()
	var prices []int
	for seed := range 21 {
		r := rand.New(rand.NewPCG(uint64(seed), 77))
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before, price := confirmed(t, a, func() (d0, d1 analysis.Outcome) { return laplaceShift(4)(r) })
		prices = append(prices, price)
		got := a.Report()
		c := got.Confirmation
		if got.Verdict != analysis.Violation || c == nil || c.State != analysis.Confirmed || c.Pairs != price || c.After != before || got.Trials.D0 != before+price ||
			got.DetectedAt == nil || *got.DetectedAt > before || !(got.EpsilonLower > 1) || got.EpsilonLower > c.SuspectedLower || !strings.Contains(got.Reason, "confirmed") {
			t.Fatalf("seed %d: %+v of %s", seed, c, got.Reason)
		}
	}
	slices.Sort(prices)
	if median := prices[10]; median > 28 { // ln(20)/g is 8.1
		t.Errorf("the median of %v is %d, want 28 at most", prices, median)
	}
}

// What the first block of a confirmation wins counts: the log-wealth falls nowhere by more than rare errors win it one
// by one.
func TestConfirmationCountsItsFirstBlock(t *testing.T) {
	t.Parallel()
	d := seldom(.02, func(*rand.Rand) analysis.Outcome { return failed("22012") }, func(r *rand.Rand) analysis.Outcome { return value(lap(r, 1)) })
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 77))
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		analysis.SkipBound(a)
		for !a.Decided() {
			a.Add(d(r))
		}
		before := a.Report().Trials.D0
		if err := a.Confirm(analysis.ConfirmationBudget(before), analysis.ConfirmationLevel); err != nil {
			t.Fatal(err)
		}
		analysis.SkipBound(a)
		for most := 0.0; !a.Decided(); {
			a.Add(d(r))
			got := a.Report()
			if float64(got.WealthLog) < most-.2 {
				t.Fatalf("seed %d, after %d pairs and %d of the confirmation: the log-wealth is %v, and was %v", seed, before, got.Confirmation.Pairs, got.WealthLog, most)
			}
			most = max(most, float64(got.WealthLog))
		}
	}
}

// A suspicion that honest trials do not support is not confirmed. Each audit confirms it with probability at most 0.1
// (twice its error rate): more than 22 of 60 have a probability below 1e-7, more than 10 of 15 one below 1e-8.
func TestNotConfirmed(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	for _, c := range []struct {
		name  string
		first func(r *rand.Rand) (d0, d1 analysis.Outcome)
	}{
		{"a leak that ended", laplaceShift(4)},
		{"answers of one session", func(*rand.Rand) (d0, d1 analysis.Outcome) { return value(1.0123456789012), value(0.0123456789012) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			convicted, audits := 0, longtest.Count(15, 60)
			for seed := range audits {
				r := rand.New(rand.NewPCG(seed, 78))
				a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for !a.Decided() {
					a.Add(c.first(r))
				}
				if err := a.Confirm(150, analysis.ConfirmationLevel); err != nil {
					t.Fatal(err)
				}
				if got := a.Report(); got.Verdict != analysis.Inconclusive || got.EpsilonLower != 0 || got.Confirmation.State != analysis.ConfirmationRunning {
					t.Fatalf("%s: %s, %+v; want a confirmation that runs", got.Verdict, got.Reason, got.Confirmation)
				}
				for !a.Decided() {
					a.Add(laplaceShift(1)(r))
				}
				got := a.Report()
				if got.Verdict == analysis.Violation {
					convicted++
					continue
				}
				if got.Verdict != analysis.Inconclusive || got.Confirmation.State != analysis.NotConfirmed || got.DetectedAt != nil || !strings.HasPrefix(got.Reason, "trials ") {
					t.Errorf("%s: %s, %+v", got.Verdict, got.Reason, got.Confirmation)
				}
			}
			if convicted > int(longtest.Count(10, 22)) { // the level is 2 alpha; binomial tails
				t.Errorf("%d of %d convicted", convicted, audits)
			}
		})
	}
}

// A reason names the relation and the place, and no value of a row.
func TestDependenceInAConfirmation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{Salt: "salt"})
	if err != nil {
		t.Fatal(err)
	}
	for !a.Decided() {
		a.Add(groups(lap(r, 1), lap(r, 1)), groups(9+lap(r, 1), lap(r, 1)))
	}
	if err := a.Confirm(500, analysis.ConfirmationLevel); err != nil {
		t.Fatal(err)
	}
	x, y := 0.0, 0.0
	for range 400 {
		x, y = .97*x+.03*lap(r, 1), .97*y+.03*lap(r, 1)
		a.Add(groups(x, lap(r, 1)), groups(9+y, lap(r, 1)))
	}
	got := a.Report()
	if got.Verdict != analysis.Inconclusive || !strings.HasPrefix(got.Reason, "trials depend on each other: ") || !strings.Contains(got.Reason, "(lag ") ||
		!strings.Contains(got.Reason, "group 1 of 2 (id ") {
		t.Errorf("%s: %s", got.Verdict, got.Reason)
	}
}

func TestConfirmRefuses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Confirm(100, analysis.ConfirmationLevel); err == nil {
		t.Error("no violation: confirmed")
	}
	for !a.Decided() {
		a.Add(laplaceShift(4)(r))
	}
	if err := a.Confirm(0, 1); err == nil {
		t.Error("no budget: accepted")
	}
	if err := a.Confirm(100, 3); err == nil {
		t.Error("level 3: accepted")
	}
	if err := a.Confirm(100, analysis.ConfirmationLevel); err != nil {
		t.Fatal(err)
	}
	if err := a.Confirm(100, analysis.ConfirmationLevel); err == nil {
		t.Error("begun twice")
	}
}

// A confirmation that is saved and restored goes on bit for bit.
func TestSaveConfirmation(t *testing.T) {
	t.Parallel()
	for _, d := range []draw{laplaceShift(3), shapes[2].d} {
		pairs := sample(3000, d)
		a, err := analysis.New(analysis.Claim{Epsilon: .1}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for ; !a.Decided() && i < len(pairs); i++ {
			a.Add(pairs[i][0], pairs[i][1])
		}
		if a.Confirm(40, analysis.ConfirmationLevel) != nil {
			continue // an honest shape
		}
		two := a
		for end := i + 40; i < end; i++ {
			var back analysis.Audit
			if err := back.UnmarshalBinary(saved(t, two)); err != nil {
				t.Fatal(err)
			}
			two = &back
			a.Add(pairs[i][0], pairs[i][1])
			two.Add(pairs[i][0], pairs[i][1])
		}
		if !bytes.Equal(saved(t, a), saved(t, two)) {
			t.Error("the restored confirmation differs")
		}
	}
}
