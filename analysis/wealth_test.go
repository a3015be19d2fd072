package analysis_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestOneBadPlace: wealth that is not a number, at one place of many, hides nothing of what the others win.
func TestOneBadPlace(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{nan, 2, 2}, 2 + math.Ln2},
		{[]float64{2, nan}, 2},
		{[]float64{nan, -inf}, -inf},
		{[]float64{nan}, -inf},
		{nil, -inf},
	} {
		if got := analysis.LogSumExp(c.x); !(math.Abs(got-c.want) < 1e-12) && got != c.want {
			t.Errorf("sum of %v: %v, want %v", c.x, got, c.want)
		}
	}
	for _, c := range [][3]float64{{nan, 2, 2}, {2, nan, 2}, {nan, nan, -inf}, {-inf, 2, 2}, {-inf, -inf, -inf}, {2, 2, 2 + math.Ln2}} {
		if got := analysis.LogAdd(c[0], c[1]); !(math.Abs(got-c[2]) < 1e-12) && got != c[2] {
			t.Errorf("%v and %v: %v, want %v", c[0], c[1], got, c[2])
		}
	}
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 2000})
	if err != nil {
		t.Fatal(err)
	}
	r, draw := rand.New(rand.NewPCG(2, 2)), laplaceShift(3)
	for i := range 2000 {
		if i == 20 || i == 40 {
			analysis.Spoil(a)
		}
		if a.Decided() {
			break
		}
		a.Add(draw(r))
	}
	if got := a.Report(); got.Verdict != analysis.Violation {
		t.Errorf("%s with wealth %v: one bad place blinds the audit", got.Verdict, got.WealthLog)
	}
}

// TestRepeatsAreRememberedForEver: the first result comes again after more different ones than are remembered.
func TestRepeatsAreRememberedForEver(t *testing.T) {
	t.Parallel()
	var early, late analysis.Repeats
	const n = 300_000
	for i := range uint64(n) {
		early.Add(0, i, true)
		late.Add(0, i, true)
	}
	for i := range uint64(1000) {
		early.Add(0, i, true)    // those that came first
		late.Add(0, n-1-i, true) // those that came last
	}
	// Each is in the sample with probability 2^-thinned = 1/8 or less; of 1000 fewer than 40 of about 125 have 1e-15.
	for name, r := range map[string]analysis.Repeats{"early": early, "late": late} {
		got := analysis.Twice(&r)[0]
		t.Logf("%s: %d repeats found, one in %d remembered", name, got, 1<<analysis.Thinned(&r))
		if got < 40 || got > 250 {
			t.Errorf("%s: %d of 1000 repeats are found", name, got)
		}
	}
	if name := strconv.Itoa(analysis.Remembered(&early)); analysis.Remembered(&early) > 1<<16 {
		t.Errorf("%s results are remembered", name)
	}
}
