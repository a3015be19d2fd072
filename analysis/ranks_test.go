package analysis_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestRanks: counts by rank are the same for any increasing function of the answers, each bin holds a tenth of them, and
// the event has its share of ranks. Answers among which one is frequent, whose steps could be counted, have no bins.
func TestRanks(t *testing.T) {
	t.Parallel()
	step := func(x float64) float64 { return math.Round(x*256) / 256 }
	ranks := func(f func(float64) float64) *analysis.Ranks {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 1))
		for range 200 {
			a.Add(value(f(step(lap(r, 1)))), value(f(step(3+lap(r, 1)))))
		}
		return a.QuickFigures().Ranks
	}
	plain := ranks(func(x float64) float64 { return x })
	for i := range plain.D0 {
		if plain.D0[i]+plain.D1[i] != 40 {
			t.Errorf("bin %d has %d and %d of 400 numbers", i, plain.D0[i], plain.D1[i])
		}
	}
	if len(plain.D0) != 10 || plain.D0[0] <= plain.D1[0] || plain.D0[9] >= plain.D1[9] || plain.Numbers != [2]int{200, 200} || plain.Direction == "" {
		t.Errorf("%+v", plain)
	}
	share, inside := 0.0, float64(plain.Inside[0]+plain.Inside[1])/400
	for _, e := range plain.Event {
		share += e[1] - e[0]
	}
	if len(plain.Event) == 0 || math.Abs(share-inside) > 1e-9 {
		t.Errorf("the event %v has %v of the ranks, and %v of the numbers", plain.Event, share, inside)
	}
	if other := ranks(func(x float64) float64 { return math.Exp(x) * 1e6 }); !slices.Equal(plain.D0, other.D0) || !slices.Equal(plain.D1, other.D1) {
		t.Errorf("%+v, of an increasing function %+v", plain, other)
	}
	whole := ranks(math.Round)
	if whole.D0 != nil || whole.Numbers != [2]int{200, 200} || whole.Inside[0]+whole.Inside[1] == 0 {
		t.Errorf("whole numbers: %+v", whole)
	}
}
