package timing_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/timing"
)

// latencies returns the latencies of a pair on a loaded machine: the load drifts, and the second trial of a pair is
// faster. extra is what D0 takes longer, with the given probability.
func latencies(coin *rand.Rand, i int, extra time.Duration, probability float64) (d0, d1 time.Duration) {
	load := 1 + .5*math.Sin(float64(i)/50)
	one := func() time.Duration {
		return time.Duration(load * float64(time.Millisecond) * math.Exp(.3*coin.NormFloat64()))
	}
	first, second := one(), one()*9/10
	if d0, d1 = first, second; coin.IntN(2) == 0 {
		d0, d1 = second, first
	}
	if coin.Float64() < probability {
		d0 += extra
	}
	return d0, d1
}

// TestSameLaw: 2,000 comparisons of equal worlds at the confidence 0.95, looked at after every 20 pairs. At a rate of 5
// %, more than 151 alarms have a probability below 1e-6.
func TestSameLaw(t *testing.T) {
	t.Parallel()
	coin, wrong := rand.New(rand.NewPCG(1, 2)), 0
	for range 2000 {
		var c timing.Comparison
		alarm := false
		for i := range 200 {
			c.Add(latencies(coin, i, 0, 0))
			alarm = alarm || i%20 == 0 && c.Report(.95).Differs
		}
		if alarm {
			wrong++
		}
	}
	if t.Logf("%d of 2000", wrong); wrong > 151 {
		t.Errorf("%d of 2000 comparisons of equal worlds show a difference", wrong)
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		extra       time.Duration
		probability float64
		guess       float64 // the best possible
		pairs       int
	}{
		{"always longer", time.Second, 1, 1, 100},
		{"a little longer", 300 * time.Microsecond, 1, .75, 500},
		{"one time in ten much longer", time.Second, .1, .55, 1000},
	} {
		coin := rand.New(rand.NewPCG(3, 4))
		var c timing.Comparison
		for i := range tc.pairs {
			c.Add(latencies(coin, i, tc.extra, tc.probability))
		}
		r := c.Report(.999)
		if !r.Differs || r.GuessLower <= .5 || r.GuessLower > tc.guess || r.Pairs != tc.pairs || tc.probability == 1 && r.Medians[0] <= r.Medians[1] {
			t.Errorf("%s: %+v; want a difference, and a guess of at most %g", tc.name, r, tc.guess)
		}
	}
}

// TestGuessLower: the bound on a known difference, at the confidence 0.95, is too high in at most 5 % of 1,000
// comparisons; more than 84 have a probability below 1e-6.
func TestGuessLower(t *testing.T) {
	t.Parallel()
	coin, wrong, found := rand.New(rand.NewPCG(5, 6)), 0, 0
	for range 1000 {
		var c timing.Comparison
		for i := range 400 {
			c.Add(latencies(coin, i, time.Second, .2))
		}
		r := c.Report(.95)
		if r.GuessLower > .6 {
			wrong++
		}
		if r.Differs {
			found++
		}
	}
	if wrong > 84 || found < 990 {
		t.Errorf("%d of 1000 bounds are too high, %d differences found", wrong, found)
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	var c timing.Comparison
	if r := c.Report(.95); r.Differs || r.GuessLower != .5 || r.Pairs != 0 {
		t.Errorf("%+v", r)
	}
	c.Add(time.Second, time.Millisecond)
	if r := c.Report(.95); r.Differs || r.Pairs != 1 {
		t.Errorf("%+v", r)
	}
}
