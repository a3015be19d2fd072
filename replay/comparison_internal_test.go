package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// normalRound returns groups with noise; shift moves one of them, absent omits it.
func normalRound(r *rand.Rand, shift float64, absent bool) Round {
	one := func() outcome.Outcome {
		o := outcome.Outcome{Columns: []outcome.Column{{Name: "g", Discrete: true}, {Name: "n"}}}
		for i, g := range []string{"a", "b", "c"} {
			x := r.NormFloat64()
			if i == 2 {
				if absent {
					continue
				}
				x += shift
			}
			o.Rows = append(o.Rows, []outcome.Value{{Kind: outcome.Text, Text: g}, {Kind: outcome.Number, Num: x}})
		}
		return o
	}
	return Round{one(), one()}
}

// TestProof: samples of one distribution pass all looks, and each kind of difference is detected. Samples of the same
// distribution differ with probability 1e-6 per run; the seed is fixed.
func TestProof(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shift  float64
		absent bool
		failed bool
		looks  int // the look that must detect it at the latest; 0 = no look may
	}{
		"one law":             {},
		"a shifted group":     {shift: 5, looks: 1},
		"a small shift":       {shift: 1, looks: 5},
		"a group missing":     {absent: true, looks: 1},
		"errors when hoisted": {failed: true, looks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			var p comparison
			for i := range 6400 {
				p.add([]Round{normalRound(r, 0, false)}, false, nil)
				hoisted := normalRound(r, tc.shift, tc.absent)
				if tc.failed && i%2 == 0 {
					hoisted[1] = outcome.Outcome{SQLState: "22012"}
				}
				p.add([]Round{hoisted}, true, nil)
				if !p.due() {
					continue
				}
				if what, differ := p.look(); differ {
					if p.looks > tc.looks {
						t.Errorf("look %d: %s", p.looks, what)
					}
					return
				}
			}
			if tc.looks > 0 || p.looks != 7 {
				t.Errorf("no difference seen in %d looks", p.looks)
			}
		})
	}
}
