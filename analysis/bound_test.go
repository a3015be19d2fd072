package analysis_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// boundOf returns the bound of an audit of a mechanism.
func boundOf(t testing.TB, c analysis.Claim, o analysis.Options, seed uint64, d draw) float64 {
	t.Helper()
	a, err := analysis.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 77))
	for range o.MaxTrials {
		a.Add(d(r))
	}
	return float64(a.Report().EpsilonLower)
}

// TestBoundComesClose: the bound of an engine with half the noise, of epsilon 2, comes within 5 % after 30,000 pairs
// and within 3 % after 100,000. Seeds are fixed: the median of three.
func TestBoundComesClose(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	pairs, least := 30_000, 1.9
	if longtest.Enabled() {
		pairs, least = 100_000, 1.94
	}
	var bounds []float64
	for seed := range uint64(3) {
		bounds = append(bounds, boundOf(t, analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs}, seed, laplaceShift(2)))
	}
	slices.Sort(bounds)
	if bounds[1] < least || bounds[1] > 2 {
		t.Errorf("the median of %.4g after %d pairs is %.4g, want %v to 2", bounds, pairs, bounds[1], least)
	}
}

// TestBoundRate: the bound exceeds the true epsilon, which lies between two points of the grid, in at most the stated
// part of the audits.
func TestBoundRate(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const truth, pairs = 1.003, 400
	for _, c := range []struct {
		name    string
		claim   float64
		noClaim bool
		d       draw
	}{
		{"laplace_without_claim", 0, true, laplaceShift(truth)},
		{"response_above_claim", .5, false, response(truth)},
		{"response_below_claim", 2, false, response(truth)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			above, wrong, audits := alarmRate(func(seed uint64) bool {
				return boundOf(t, analysis.Claim{Epsilon: c.claim}, analysis.Options{MaxTrials: pairs, NoClaim: c.noClaim}, seed, c.d) > truth
			})
			if t.Logf("%d of %d bounds exceed the true epsilon", wrong, audits); above {
				t.Errorf("the rate is above %v", alpha)
			}
		})
	}
}
