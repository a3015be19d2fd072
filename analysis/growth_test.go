package analysis_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// laplaceBins cuts the laws Laplace(0, 1/e) and Laplace(1, 1/e) into bins; beyond the centres one bin a side.
func laplaceBins(e float64) (p, q []float64) {
	const n = 200
	p, q = make([]float64, n+2), make([]float64, n+2)
	p[0], q[n+1] = .5, .5
	p[n+1], q[0] = .5*math.Exp(-e), .5*math.Exp(-e)
	for i := range n {
		x := .5 * (math.Exp(-e*float64(i)/n) - math.Exp(-e*float64(i+1)/n))
		p[i+1], q[n-i] = x, x
	}
	return p, q
}

// TestGrowth holds the figures of the derivation (claim 1), with one digit more where they were cut off.
func TestGrowth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ true, want, tolerance float64 }{
		{1, 0, 1e-12}, {1.1, .00129, 5e-6}, {1.2, .00495, 1e-5}, {1.3, .0107, 5e-5}, {1.5, .02736, 1e-5}, {2, .089, 5e-4},
	} {
		p, q := laplaceBins(c.true)
		if g := analysis.Growth(p, q, analysis.Claim{Epsilon: 1}); math.Abs(g-c.want) > c.tolerance {
			t.Errorf("true epsilon %v: %v nats per pair, want %v", c.true, g, c.want)
		}
	}
}

// TestGrowthDelta: a vanishing delta changes nothing, a greater one leaves less to find, and the delta that the pair
// needs leaves nothing. One event of probability p on D0 and never on D1 has the projection of 4.1.
func TestGrowthDelta(t *testing.T) {
	t.Parallel()
	p, q := laplaceBins(1.5)
	none := analysis.Growth(p, q, analysis.Claim{Epsilon: 1})
	tiny := analysis.Growth(p, q, analysis.Claim{Epsilon: 1, Delta: 1e-9})
	if math.Abs(none-tiny) > 1e-5 {
		t.Errorf("delta 0: %v, delta 1e-9: %v", none, tiny)
	}
	last := tiny
	for _, d := range []float64{.01, .05, .1, .2} {
		g := analysis.Growth(p, q, analysis.Claim{Epsilon: 1, Delta: d})
		if !(g < last) {
			t.Errorf("delta %v: %v nats, less delta: %v", d, g, last)
		}
		last = g
	}
	if enough := 1 - math.Exp(-.25); analysis.Growth(p, q, analysis.Claim{Epsilon: 1, Delta: enough + 1e-9}) != 0 {
		t.Error("the pair is within its own delta")
	}
	// Golden value of 4.1: p1=.4, q1=.05, epsilon 1, delta .01: q*=.1228317650.
	qs := .1228317650
	ps := math.E*qs + .01
	kl := func(a, b float64) float64 { return a*math.Log(a/b) + (1-a)*math.Log((1-a)/(1-b)) }
	want := kl(.4, ps) + kl(.05, qs)
	if g := analysis.Growth([]float64{.4, .6}, []float64{.05, .95}, analysis.Claim{Epsilon: 1, Delta: .01}); math.Abs(g-want) > 1e-6 {
		t.Errorf("one event: %v nats, want %v", g, want)
	}
}
