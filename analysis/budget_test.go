package analysis_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// The budget by default is that of docs/statistics.md, and a number that is given holds.
func TestDefaultTrials(t *testing.T) {
	t.Parallel()
	for epsilon, want := range map[float64]int{
		0: 10_000, .001: 100_000, .06: 100_000, .1: 81_000, .2: 23_000, .3: 12_000, .35: 10_000, 1: 10_000, 3.5: 10_000, 5: 30_000, 7: 100_000, 800: 100_000,
	} {
		if got := analysis.DefaultTrials(analysis.Claim{Epsilon: epsilon}); got != want {
			t.Errorf("claim %g: %d pairs, want %d", epsilon, got, want)
		}
	}
	for _, c := range []struct {
		claim analysis.Claim
		opt   analysis.Options
		want  int
	}{
		{analysis.Claim{Epsilon: .1}, analysis.Options{}, 81_000},
		{analysis.Claim{Epsilon: .1, Delta: 1e-5}, analysis.Options{}, 81_000},
		{analysis.Claim{Epsilon: .1}, analysis.Options{MaxTrials: 500}, 500},
		{analysis.Claim{Epsilon: .1}, analysis.Options{NoClaim: true}, 10_000},
		{analysis.CurveClaim("mu=0.268", 0, 0), analysis.Options{}, 10_000},
		{analysis.Claim{Epsilon: .2}, analysis.Options{Share: .01}, 23_000},
	} {
		a, err := analysis.New(c.claim, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		if a.Budget() != c.want {
			t.Errorf("%v with %+v: %d pairs, want %d", c.claim, c.opt, a.Budget(), c.want)
		}
	}
}
