package analysis_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// The budget by default is that of docs/statistics.md, grows when the claim or the error rate becomes smaller, and a
// number that is given holds.
func TestDefaultTrials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		epsilon, alpha float64
		want           int
	}{
		{0, .05, 10_000},
		{.001, .05, 100_000},
		{.06, .05, 100_000},
		{.1, .05, 81_000},
		{.2, .05, 23_000},
		{.3, .05, 12_000},
		{.35, .05, 10_000},
		{1, .05, 10_000},
		{3.5, .05, 10_000},
		{5, .05, 30_000},
		{7, .05, 100_000},
		{800, .05, 100_000},
		{.2, .0005, 57_000},
		{1, 1e-6, 12_000},
	} {
		if got := analysis.DefaultTrials(analysis.Claim{Epsilon: c.epsilon}, c.alpha); got != c.want {
			t.Errorf("claim %g at error rate %g: %d pairs, want %d", c.epsilon, c.alpha, got, c.want)
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
		{analysis.Claim{Epsilon: .2}, analysis.Options{Share: .01}, 57_000},
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
