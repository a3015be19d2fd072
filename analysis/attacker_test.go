package analysis_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestOdds holds the seed's figures: prior odds 1, threshold 2.
func TestOdds(t *testing.T) {
	t.Parallel()
	o := analysis.Odds{Prior: 1, Breach: 2}
	if e := o.ImpliedEpsilon(); math.Abs(e-math.Ln2) > 1e-15 {
		t.Errorf("implied epsilon %v, want ln 2", e)
	}
	if got := o.After(math.E, 3); math.Abs(got-math.Exp(3)) > 1e-12 {
		t.Errorf("odds after 3 answers %v, want e^3", got)
	}
	if o.Breached(1.5, 1) || !o.Breached(1.5, 2) {
		t.Error("a ratio of 1.5 breaches with the second answer")
	}
	for _, c := range []struct {
		epsilon float64
		want    int
	}{{1, 1}, {.7, 1}, {.5, 2}, {math.Ln2, 2}, {.1, 7}, {0, -1}, {-1, -1}, {math.NaN(), -1}, {5e-324, -1}, {math.Inf(1), 1}} {
		if n := o.AnswersToBreach(c.epsilon); n != c.want {
			t.Errorf("epsilon %v: %d answers, want %d", c.epsilon, n, c.want)
		}
	}
	if n := (analysis.Odds{Prior: 3, Breach: 2}).AnswersToBreach(.1); n != 0 {
		t.Errorf("breached before: %d answers", n)
	}
	if !math.IsNaN(o.After(math.NaN(), 2)) {
		t.Error("no ratio, no odds")
	}
}

// TestClopperPearson holds the closed forms for no success and for nothing but successes.
func TestClopperPearson(t *testing.T) {
	t.Parallel()
	lo, hi := analysis.ClopperPearson(0, 10, .05)
	if want := 1 - math.Pow(.025, .1); lo != 0 || math.Abs(hi-want) > 1e-12 {
		t.Errorf("0 of 10: [%v, %v], want [0, %v]", lo, hi, want)
	}
	lo, hi = analysis.ClopperPearson(10, 10, .05)
	if want := math.Pow(.025, .1); hi != 1 || math.Abs(lo-want) > 1e-12 {
		t.Errorf("10 of 10: [%v, %v], want [%v, 1]", lo, hi, want)
	}
	for _, k := range [][2]int{{-1, 10}, {11, 10}, {0, 0}} {
		if lo, hi := analysis.ClopperPearson(k[0], k[1], .05); lo != 0 || hi != 1 {
			t.Errorf("%v: [%v, %v]", k, lo, hi)
		}
	}
}
