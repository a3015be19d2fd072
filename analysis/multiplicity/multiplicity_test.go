package multiplicity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis/multiplicity"
)

func ExampleEBH() {
	// Three audits with wealth 100, 30.1 and 1: two need 3/(0.05 x 2) = 30 each.
	fmt.Println(multiplicity.EBH([]float64{math.Log(100), math.Log(30.1), 0}, .05))
	// Output: [0 1]
}

func TestShares(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for j := 1; j <= 1_000_000; j++ {
		sum += multiplicity.Share(j)
	}
	if !(sum <= 1 && sum > .999999-1e-6) {
		t.Errorf("a million shares add up to %v", sum)
	}
	if !math.IsNaN(multiplicity.Share(0)) || !math.IsNaN(multiplicity.PagingThreshold(1, 0)) {
		t.Error("out of range")
	}
}

func TestEBH(t *testing.T) {
	t.Parallel()
	ln := math.Log
	for _, c := range []struct {
		name string
		in   []float64
		want []int
	}{
		{"none", nil, nil},
		{"one_below", []float64{ln(19)}, nil},
		{"one", []float64{ln(21)}, []int{0}},
		{"two_need_less_each", []float64{ln(21), ln(21)}, []int{0, 1}},
		{"alone_needs_more", []float64{ln(21), 0}, nil},
		{"not_a_number", []float64{math.NaN(), ln(50)}, []int{1}},
		{"infinite", []float64{math.Inf(1), math.Inf(-1)}, []int{0}},
	} {
		if diff := cmp.Diff(c.want, multiplicity.EBH(c.in, .05)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if multiplicity.EBH([]float64{100}, 1) != nil {
		t.Error("alpha of 1")
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
			alarm = alarm || top >= multiplicity.PagingThreshold(j, .05)
		}
		if alarm {
			families++
		}
	}
	if families > 86 {
		t.Errorf("%d of 1000 families with a false alarm", families)
	}
}

// TestFalseDiscoveries: 20 of 40 coins are fair. The mean part of fair ones among the rejected is at most 10 % (times
// 1/2, the fair part); the standard error of 400 runs is below 0.5 %, so that 12 % is 14 of them above and has a
// probability far below 1e-6. Half of the others must be found.
func TestFalseDiscoveries(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	fdp, found := 0.0, 0
	for range 400 {
		w := make([]float64, 40)
		for i := range w {
			p := .5
			if i%2 == 1 {
				p = .62
			}
			w[i], _ = coin(r, 300, p, .2)
		}
		wrong, all := 0, multiplicity.EBH(w, .1)
		for _, i := range all {
			if i%2 == 0 {
				wrong++
			}
		}
		found += len(all) - wrong
		fdp += float64(wrong) / math.Max(1, float64(len(all)))
	}
	if fdp/400 > .12 || found < 4000 {
		t.Errorf("false discovery proportion %v, %d found of 8000", fdp/400, found)
	}
}

// TestPool: 50 coins of .53, 300 tosses each, none convicted at its own, together always; fair ones in at most 5 % of
// 400 (more than 44 has a probability below 5e-7).
func TestPool(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	pooled := func(p float64) float64 {
		var pool multiplicity.Pool
		for q := range 50 {
			var w []float64
			for _, bet := range []float64{.02, .06, .2} {
				x, _ := coin(r, 300, p, bet)
				w = append(w, x)
			}
			if !pool.Set(fmt.Sprint(q), w) {
				t.Fatal("not taken")
			}
		}
		return pool.LogWealth()
	}
	found, alarms := 0, 0
	for range 400 {
		if pooled(.53) >= math.Log(20) {
			found++
		}
		if pooled(.5) >= math.Log(20) {
			alarms++
		}
	}
	if found < 390 || alarms > 44 {
		t.Errorf("found %d, false %d of 400", found, alarms)
	}
	var pool multiplicity.Pool
	if pool.LogWealth() != 0 || pool.Set("q", nil) || pool.Set("q", []float64{math.NaN()}) || !pool.Set("q", []float64{1, 2}) || pool.Set("r", []float64{1}) {
		t.Error("what a pool takes")
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
