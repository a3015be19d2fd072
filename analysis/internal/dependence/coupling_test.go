package dependence

import (
	"math"
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
		d := Independence{}
		d.counts[side][sideBit] = [4]int32{n - 2, 0, 0, 2}
		for w := range d.later {
			d.later[w][sideBit] = [2]int32{n - 2, 2}
		}
		if e := d.Evidence(false); e < math.Log(Suspicion) {
			t.Errorf("two rare outcomes that come together in %d pairs: ratio e^%.2f does not pass suspicion", n, e)
		}
	}
}
