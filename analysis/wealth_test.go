package analysis_test

import (
	"math"
	"math/rand/v2"
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
