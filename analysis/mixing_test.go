package analysis

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// Many groups that few results have show together that trials are independent. They do not where every group, or every
// second one, is reused with the probability .6. Seeds are fixed.
func TestManyGroupsMixTogether(t *testing.T) {
	t.Parallel()
	const keys, pairs = 100, 101 // a group that never comes counts from 100 pairs on as one that shows nothing
	for _, c := range []struct {
		name   string
		sticky int // groups that are reused
		reuse  float64
		holds  bool
	}{
		{"independent", 0, 0, false},
		{"all are reused", keys, .6, true},
		{"half of them are reused", keys / 2, .6, true},
	} {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 5))
			a, err := New(Claim{Epsilon: 1}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var there [2][keys]bool
			result := func(w int) (o Outcome) {
				o.Columns = []Column{{Name: "key"}, {Name: "sum"}}
				for k := range keys {
					if k >= c.sticky || r.Float64() >= c.reuse {
						there[w][k] = r.IntN(20) == 0
					}
					if there[w][k] {
						o.Rows = append(o.Rows, []Value{{Kind: Text, Text: strconv.Itoa(k)}, {Kind: Number, Num: 100 + r.NormFloat64()}})
					}
				}
				return o
			}
			for range pairs {
				a.Add(result(0), result(1))
			}
			if reason := a.observed.hold(a.requirements()); (reason != "") != c.holds {
				t.Errorf("%s, seed %d: after %d pairs a violation is held back by %q", c.name, seed, pairs, reason)
			}
		}
	}
}
