package analysis_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// fixed runs a whole budget, whatever is found, and returns the figure of the fixed budget.
func fixed(t testing.TB, c analysis.Claim, budget int, seed uint64, d draw) *analysis.ClopperPearsonBound {
	t.Helper()
	a, err := analysis.New(c, analysis.Options{MaxTrials: budget})
	if err != nil {
		t.Fatal(err)
	}
	analysis.SkipBound(a)
	r := rand.New(rand.NewPCG(seed, 77))
	for i := range budget {
		if i == budget-1 && a.Report().ClopperPearson != nil {
			t.Fatal("a figure before the budget is used")
		}
		a.Add(d(r))
	}
	return a.Report().ClopperPearson
}

// TestClopperPearsonFigure: above the truth at most at the rate of 5 % (more than 17 of 100 has a probability of
// 1e-6 at exactly 5 %; the seeds are fixed), and not far below it.
func TestClopperPearsonFigure(t *testing.T) {
	longtest.Skip(t)
	longtest.SkipFast(t)
	t.Parallel()
	for i, c := range []struct {
		name        string
		true, least float64
		d           draw
	}{
		{"laplace", 1, .6, laplaceShift(1)},
		{"response", 1, .6, response(1)},
		{"groups", .5, .1, many(3, func(i int) float64 { return .5 * float64(b2i(i == 1)) })},
	} {
		if longtest.Omits(i, 3) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			above, low := 0, 0
			for i := range 100 {
				f := fixed(t, analysis.Claim{Epsilon: c.true}, 1500, uint64(i), c.d)
				if f == nil {
					t.Fatal("no figure at the end of the budget")
				}
				if float64(f.Epsilon) > c.true {
					above++
				}
				if float64(f.Epsilon) < c.least {
					low++
				}
			}
			t.Logf("above %d, low %d", above, low)
			if above > 17 || low > 50 {
				t.Errorf("of 100 figures %d are above the truth, %d below %v", above, low, c.least)
			}
		})
	}
}
