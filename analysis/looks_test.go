package analysis_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// asked runs an audit of up to so many pairs and asks for a report after every few. It returns what is known at the
// end, and at which pair there was a violation.
func asked(t *testing.T, every, pairs int, d draw) (end string, at int) {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for n := 1; n <= pairs; n++ {
		if a.Add(d(r)); every > 0 && n%every == 0 {
			a.Report()
		}
	}
	report, err := json.Marshal(a.Report().Reveal())
	if err != nil {
		t.Fatal(err)
	}
	f := a.Figures()
	return fmt.Sprintf("%s %v %v", report, f.Path, f.Profile), a.DetectedAt()
}

// TestLaterLooks: looks that could find nothing are left out, and the bound moves when somebody asks for it. Neither
// changes what is found or when, wherever the wealth goes: a report looks, and asks for the bound.
func TestLaterLooks(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for name, d := range map[string]draw{
		"far from a violation": worlds(func(r *rand.Rand, shift float64) analysis.Outcome { return value(shift + lap(r, 1)) }),
		"near one":             worlds(func(r *rand.Rand, shift float64) analysis.Outcome { return value(1.25*shift + lap(r, 1)) }),
		"a violation":          worlds(func(r *rand.Rand, shift float64) analysis.Outcome { return value(2*shift + lap(r, 1)) }),
		"no noise":             worlds(func(_ *rand.Rand, shift float64) analysis.Outcome { return value(shift) }),
		"groups": worlds(func(r *rand.Rand, shift float64) analysis.Outcome {
			return groups(2*shift+lap(r, 1), lap(r, 1), lap(r, 1))
		}),
	} {
		pairs := int(longtest.Count(150, 500))
		end, at := asked(t, 0, pairs, d)
		for _, every := range []int{1, 7} {
			if e, n := asked(t, every, pairs, d); e != end || n != at {
				t.Errorf("%s: with reports after every %d pairs a violation after %d pairs, without after %d\n%s\n%s", name, every, n, at, e, end)
			}
		}
	}
}
