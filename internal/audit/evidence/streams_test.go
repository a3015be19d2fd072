package evidence_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// hoistable is the audit of a hoistable query: Laplace noise of scale 1, and D1 shifted. Seeds are fixed: nothing is
// random.
type hoistable struct {
	t *testing.T
	*evidence.Evidence
	coin *rand.Rand
	// how far D1 is shifted in trials of each kind
	whole, hoisted float64
	// how many hoisted rounds there are for each whole one
	ratio int
}

func newHoistable(t *testing.T, claim float64, budget int) *hoistable {
	t.Helper()
	e, err := evidence.NewReplayed(analysis.Claim{Epsilon: claim}, analysis.Options{MaxTrials: budget}, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	return &hoistable{t: t, Evidence: e, coin: rand.New(rand.NewPCG(5, 6)), ratio: 4}
}

func (h *hoistable) round(shift float64) []outcome.Outcome {
	return pair(h.coin, 0, shift)
}

// pair returns answers with Laplace noise of scale 1, rounded so that their digits tell nothing about the shifts.
func pair(coin *rand.Rand, d0, d1 float64) []outcome.Outcome {
	grid := func(shift float64) outcome.Outcome {
		return number(shift + math.Round((coin.ExpFloat64()-coin.ExpFloat64())*0x1p20)/0x1p20)
	}
	return []outcome.Outcome{grid(d0), grid(d1)}
}

// play adds rounds of both kinds, as far as the evidence takes them, until it is decided or a confirmation begins or
// ends. It returns the number of whole rounds.
func (h *hoistable) play() (n int) {
	h.t.Helper()
	confirming := h.Confirming()
	for ; !h.Decided() && h.Confirming() == confirming; n++ {
		whole := h.round(h.whole)
		h.Add(whole)
		for range h.ratio {
			if h.Decided() || h.WholeOnly() {
				break
			}
			if err := h.AddHoisted(h.round(h.hoisted), whole, nil); err != nil {
				h.t.Fatal(err)
			}
			whole = nil
		}
		if n%50 == 0 {
			h.restore()
		}
	}
	return n
}

// restore saves and restores the evidence, which must be the same.
func (h *hoistable) restore() {
	h.t.Helper()
	before := shown(h.t, h.Evidence)
	h.Evidence = restored(h.t, h.Evidence)
	if diff := cmp.Diff(before, shown(h.t, h.Evidence)); diff != "" {
		h.t.Fatalf("-before +restored:\n%s", diff)
	}
}

// TestHoistingHidesNothing: hoisted trials that show nothing leave a violation to the whole ones, which find it with
// the threshold of half of the error rate.
func TestHoistingHidesNothing(t *testing.T) {
	t.Parallel()
	h := newHoistable(t, 1, 5000)
	h.whole, h.hoisted = 2.5, 0
	n := h.play()
	alone, err := evidence.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 5000}, 1)
	if err != nil {
		t.Fatal(err)
	}
	coin, m := rand.New(rand.NewPCG(5, 6)), 0 // the same draws
	for ; !alone.Decided(); m++ {
		alone.Add(pair(coin, 0, 2.5))
		for range h.ratio {
			pair(coin, 0, 0)
		}
	}
	if !h.Found() || n < m || n > 2*m {
		t.Errorf("found %t after %d whole pairs; %d without hoisting", h.Found(), n, m)
	}
	if err := h.Confirm(); err != nil {
		t.Fatal(err)
	}
	h.play()
	if r := h.Report(0); r.Verdict != analysis.Violation || r.Confidence != 0.95 || math.Abs(r.ErrorRate-0.05*7/16) > 1e-12 {
		t.Errorf("%s at %v, %v", r.Verdict, r.Confidence, r.ErrorRate)
	}
}

// TestHoistingFinds: hoisted trials show a violation before the whole ones do; it is a suspicion until whole trials
// confirm it.
func TestHoistingFinds(t *testing.T) {
	t.Parallel()
	h := newHoistable(t, 1, 5000)
	h.whole, h.hoisted, h.ratio = 2, 2, 20
	if n := h.play(); !h.Found() || h.Report(0).Trials.D0 < 2*n {
		t.Fatalf("found %t with %d hoisted pairs and %d whole ones", h.Found(), h.Report(0).Trials.D0, n)
	}
	if err := h.Confirm(); err != nil {
		t.Fatal(err)
	}
	if h.Found() || !h.WholeOnly() {
		t.Errorf("found %t, whole trials alone %t at the beginning of the confirmation", h.Found(), h.WholeOnly())
	}
	h.play()
	if r := h.Report(0); r.Verdict != analysis.Violation || r.Confirmation == nil || r.Confirmation.State != analysis.Confirmed {
		t.Errorf("%s, confirmation %+v", r.Verdict, r.Confirmation)
	}
}

// TestHoistingAccuses: hoisted trials show a violation that is none. It is not confirmed, and the whole trials go on to
// their own verdict, with the pairs that they had.
func TestHoistingAccuses(t *testing.T) {
	t.Parallel()
	h := newHoistable(t, 1, 1500)
	h.whole, h.hoisted = 0.5, 8
	before := h.play()
	if !h.Found() {
		t.Fatal("hoisted trials show nothing")
	}
	if err := h.Confirm(); err != nil {
		t.Fatal(err)
	}
	h.play()
	if h.Confirming() || h.Decided() || h.Report(0).Trials.D0 != before || !h.WholeOnly() {
		t.Fatalf("confirming %t, decided %t, %d pairs, want the %d of before to go on", h.Confirming(), h.Decided(), h.Report(0).Trials.D0, before)
	}
	if r := h.Hoisting(hoisting.Report{Hoisted: true}, 0); r.Hoisted || !strings.Contains(r.Reason, "did not confirm") {
		t.Errorf("hoisting %+v", r)
	}
	h.play()
	if r := h.Report(0); r.Verdict != analysis.NoEvidence || r.Trials.D0 != 1500 {
		t.Errorf("%s after %d pairs: %s", r.Verdict, r.Trials.D0, r.Reason)
	}
}

// TestLawsDiffer: hoisted trials of another law, in both worlds alike, are seen by comparison with whole ones. They
// end, and the whole trials go on.
func TestLawsDiffer(t *testing.T) {
	t.Parallel()
	h := newHoistable(t, 1, 1500)
	for n := 0; !h.WholeOnly() && n < 1500; n++ {
		whole := h.round(0.5)
		h.Add(whole)
		if err := h.AddHoisted(pair(h.coin, 3, 3.5), whole, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.restore()
	r := h.Hoisting(hoisting.Report{Hoisted: true}, 0)
	if !h.WholeOnly() || h.Decided() || r.Hoisted || r.HoistedTrials != 0 || !strings.Contains(r.Reason, "another distribution") {
		t.Fatalf("whole trials alone %t, decided %t, %+v", h.WholeOnly(), h.Decided(), r)
	}
	h.whole = 0.5
	if h.play(); h.Report(0).Verdict != analysis.NoEvidence || h.Report(0).ErrorRate > 0.05*7/16+1e-12 {
		t.Errorf("%s at %v", h.Report(0).Verdict, h.Report(0).ErrorRate)
	}
}

// TestNotHoisted: a query that cannot be hoisted has the error rate of one that nobody tried to hoist, and is found as
// early.
func TestNotHoisted(t *testing.T) {
	t.Parallel()
	h := newHoistable(t, 1, 5000)
	plain, err := evidence.NewReplayed(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 5000}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; !plain.Decided(); n++ {
		if n == 100 {
			h.Whole()
		}
		round := h.round(1.5)
		h.Add(round)
		plain.Add(round)
		if h.Decided() != plain.Decided() {
			t.Fatalf("after %d pairs decided %t, alone %t", n+1, h.Decided(), plain.Decided())
		}
	}
	if n := plain.Report(0).Trials.D0; n <= 100 || !h.WholeOnly() || h.Share() != plain.Share() || h.Share() != 7./8 {
		t.Errorf("%d pairs, shares %v and %v", n, h.Share(), plain.Share())
	}
	// A budget that suffices for one kind of trials alone is one for whole ones.
	small, err := evidence.NewReplayed(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 100}, 1, true)
	if err != nil || !small.WholeOnly() || small.Opens() || small.Share() != 1 {
		t.Errorf("%v, whole %t, opening %t", err, small.WholeOnly(), small.Opens())
	}
}

// TestHoistedErrorRate: where the claim is spent exactly, at most 5 % of audits show a violation, whichever of the two
// kinds does so. Of 80 audits more than 20 do so with a probability below 10^-8 if that holds.
func TestHoistedErrorRate(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	alarms, audits := 0, uint64(80)
	for seed := range audits {
		h := newHoistable(t, 1, 400)
		h.coin = rand.New(rand.NewPCG(seed, 9))
		h.whole, h.hoisted, h.ratio = 1, 1, 1
		for n := 0; !h.Decided(); n++ {
			whole := h.round(1)
			if h.Add(whole); n >= 100 && !h.Decided() && !h.WholeOnly() {
				if err := h.AddHoisted(h.round(1), whole, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if h.Found() {
			alarms++
		}
	}
	t.Logf("%d alarms in %d audits", alarms, audits)
	if alarms > 20 {
		t.Errorf("%d of %d audits show a violation, want at most one in 20 on average", alarms, audits)
	}
}

// TestOpeningTrials: what the first trial of a session shows is found, although no other trial shows it: here its
// answer is exact. It is a suspicion that fresh sessions confirm. Where they do not, whole trials go on.
func TestOpeningTrials(t *testing.T) {
	t.Parallel()
	for name, confirmed := range map[string]bool{"confirmed": true, "not confirmed": false} {
		h := newHoistable(t, 1, 5000)
		h.whole = 0.5
		n := 0
		for ; !h.Decided(); n++ {
			h.Add(h.round(0.5))
			if n%16 == 0 && !h.Decided() && h.Opens() {
				h.AddOpening([]outcome.Outcome{number(7), number(6)}, nil)
			}
		}
		if !h.Found() || n >= 2000 || h.OpeningTrials(0) == 0 {
			t.Fatalf("%s: found %t after %d pairs and %d opening ones", name, h.Found(), n, h.OpeningTrials(0))
		}
		if err := h.Confirm(); err != nil {
			t.Fatal(err)
		}
		for h.Confirming() && !h.Decided() {
			if confirmed {
				h.Add([]outcome.Outcome{number(7), number(6)})
			} else {
				h.Add(h.round(0.5))
			}
		}
		switch r := h.Report(0); {
		case confirmed && (r.Verdict != analysis.Violation || !h.Found()):
			t.Errorf("%s: %s: %s", name, r.Verdict, r.Reason)
		case !confirmed && (h.Confirming() || h.Opens() || r.Trials.D0 != n):
			t.Errorf("%s: confirming %t, opening %t, %d pairs, want the %d of before", name, h.Confirming(), h.Opens(), r.Trials.D0, n)
		}
	}
}
