package analysis

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// TestCouplingLeftOut holds what couplings that delay no violation can gain (see leastCoupling).
func TestCouplingLeftOut(t *testing.T) {
	t.Parallel()
	const tilt = .937
	for _, epsilon := range []float64{.05, .1, .5, 1, 2, 4} {
		h := eprocess.NewNull(epsilon, 0)
		for _, together := range []float64{leastCoupling, leastCoupling / 10} { // p q of two outcomes that never come together
			q := math.Sqrt(together / h.Ratio)
			p := h.Ratio * q
			for _, mass := range []float64{.1, .25, .5, .75, 1, 1.3, 2, 4} {
				for excess := .05; excess < 8; excess += .05 {
					p1, q1 := eprocess.Split(mass*(p+q), h.Ratio*math.Exp(excess))
					if p1 > .99 {
						continue
					}
					var f, g [2]float64
					h.BinFactors([]float64{p1, 1 - p1}, []float64{q1, 1 - q1}, f[:], g[:])
					mean := p*math.Exp(tilt*(f[0]+g[1])) + q*math.Exp(tilt*(f[1]+g[0])) + (1-p-q)*math.Exp(tilt*(f[1]+g[1]))
					if mean > 1+1e-12 {
						t.Fatalf("epsilon %g, probabilities %g and %g, alternative %g and %g: mean %.9f", epsilon, p, q, p1, q1, mean)
					}
				}
			}
		}
	}
	const side = 6 // both worlds of a pair
	for _, n := range []int32{64, 512, 20_000} {
		d := independence{}
		d.counts[side][sideBit] = [4]int32{n - 2, 0, 0, 2}
		for w := range d.later {
			d.later[w][sideBit] = [2]int32{n - 2, 2}
		}
		if e := d.evidence(false); e < math.Log(suspicion) {
			t.Errorf("two rare outcomes that come together in %d pairs: ratio e^%.2f does not pass suspicion", n, e)
		}
	}
}

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
			if reason := a.hold(); (reason != "") != c.holds {
				t.Errorf("%s, seed %d: after %d pairs a violation is held back by %q", c.name, seed, pairs, reason)
			}
		}
	}
}
