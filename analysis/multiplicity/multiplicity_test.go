package multiplicity_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/multiplicity"
)

func TestShares(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for j := 1; j <= 1_000_000; j++ {
		sum += multiplicity.Share(j)
	}
	if !(sum <= 1 && sum > .999999-1e-6) {
		t.Errorf("a million shares add up to %v", sum)
	}
	if !math.IsNaN(multiplicity.Share(0)) {
		t.Error("out of range")
	}
}

// coin bets on a coin: the log-wealth after n tosses with probability p against 1/2, and the path's maximum.
func coin(r *rand.Rand, n int, p, bet float64) (last, top float64) {
	for range n {
		if r.Float64() < p {
			last += math.Log1p(bet)
		} else {
			last += math.Log1p(-bet)
		}
		top = max(top, last)
	}
	return last, top
}

// TestFamilyWise: in 1000 families of 30 fair coins an alarm comes ever in at most 5 %; more than 86 has a probability
// below 7e-7.
func TestFamilyWise(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	families := 0
	for range 1000 {
		alarm := false
		for j := 1; j <= 30; j++ {
			_, top := coin(r, 300, .5, .2)
			alarm = alarm || top >= -math.Log(.05*multiplicity.Share(j))
		}
		if alarm {
			families++
		}
	}
	if families > 86 {
		t.Errorf("%d of 1000 families with a false alarm", families)
	}
}

// TestDetector: the mean run length of a fair coin is at least 1/alpha = 100 (runs are about exponential, so that the
// mean of 1000 has a standard error of 3 %; below 84 has a probability under 6e-7 by Chernoff's bound), and a change is
// found soon.
func TestDetector(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	step := func(p float64) float64 { w, _ := coin(r, 1, p, .4); return w }
	total, delay := 0, 0
	for range 1000 {
		var d multiplicity.Detector
		for n := 1; ; n++ {
			if d.Step(step(.5), .01) {
				total += n
				break
			}
		}
		d.Reset()
		for range 20 {
			if d.Step(step(.5), .01) {
				d.Reset()
			}
		}
		for n := 1; ; n++ {
			if d.Step(step(.9), .01) {
				delay += n
				break
			}
		}
	}
	if total < 84_000 || delay > 20_000 {
		t.Errorf("mean run length %v, mean delay %v", float64(total)/1000, float64(delay)/1000)
	}
	var d multiplicity.Detector
	if d.Step(math.NaN(), .01) || d.LogSum() != 0 {
		t.Errorf("not a number counts: %v", d.LogSum())
	}
}

func TestRestartShares(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for r := range 1_000_000 {
		sum += multiplicity.RestartShare(r)
	}
	if !(sum <= 1 && sum > .999999-1e-6) || multiplicity.RestartShare(0) != .75 || !math.IsNaN(multiplicity.RestartShare(-1)) {
		t.Errorf("a million shares add up to %v, the first is %v", sum, multiplicity.RestartShare(0))
	}
}
