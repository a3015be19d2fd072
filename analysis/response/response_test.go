package response_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/response"
)

func ExampleMean() {
	// Nine in ten tell the truth; 30 % said yes.
	fmt.Printf("epsilon %.3f, true share %.3f\n", response.Loss(.9), response.Mean(.3, .9))
	// Output: epsilon 2.197, true share 0.250
}

func TestLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k    int
		p    float64
		want float64
	}{{2, .75, math.Log(3)}, {2, .25, math.Log(3)}, {2, .5, 0}, {4, .5, math.Log(3)}, {4, .25, 0}, {2, 1, math.Inf(1)}, {1, .5, math.NaN()}, {2, 1.5, math.NaN()}} {
		got := response.LossOf(c.k, c.p)
		if got != c.want && !(math.Abs(got-c.want) < 1e-12) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("LossOf(%d, %v) = %v, want %v", c.k, c.p, got, c.want)
		}
	}
	for _, k := range []int{2, 5, 100} {
		if e := response.LossOf(k, response.Truth(k, 1.25)); math.Abs(e-1.25) > 1e-12 {
			t.Errorf("k = %d: loss of Truth(1.25) is %v", k, e)
		}
	}
}

// TestUnbiased holds, by its expectation, that every estimator gives the truth, and that the counts add up.
func TestUnbiased(t *testing.T) {
	t.Parallel()
	for _, k := range []int{2, 3, 7} {
		for _, p := range []float64{.1, .6, .9, 1} {
			for _, s := range []float64{0, .2, .7, 1} {
				m := s*p + (1-s)*(1-p)/float64(k-1)
				if got := response.Share(m, k, p); math.Abs(got-s) > 1e-9 {
					t.Errorf("k %d, p %v, share %v: %v", k, p, s, got)
				}
			}
		}
	}
	if got := response.Mean(.3, .9); math.Abs(got-(.3+.9-1)/(2*.9-1)) > 1e-15 {
		t.Errorf("Mean(.3, .9) = %v", got)
	}
	got := response.Counts([]int{50, 30, 20}, .6)
	if sum := got[0] + got[1] + got[2]; math.Abs(sum-100) > 1e-9 {
		t.Errorf("counts %v add up to %v", got, sum)
	}
	if response.Counts([]int{1, -1}, .9) != nil || response.Counts([]int{1, 1}, .5) != nil || response.Counts(nil, .9) != nil {
		t.Error("counts from nothing")
	}
}

// TestVariance compares with 4000 draws; six standard errors of a sample variance: a false alarm in 10^8.
func TestVariance(t *testing.T) {
	t.Parallel()
	const k, p, s, n, draws = 4, .7, .3, 50, 4000
	r := rand.New(rand.NewPCG(1, 2))
	sum, square := 0.0, 0.0
	for range draws {
		hits := 0
		for range n {
			truth := r.Float64() < s
			if told := r.Float64() < p; told && truth || !told && !truth && r.IntN(k-1) == 0 {
				hits++
			}
		}
		x := response.Share(float64(hits)/n, k, p)
		sum, square = sum+x, square+x*x
	}
	mean := sum / draws
	got, want := square/draws-mean*mean, response.Variance(s, k, p, n)
	if math.Abs(got-want) > 6*want*math.Sqrt(2./draws) || math.Abs(mean-s) > 6*math.Sqrt(want/draws) {
		t.Errorf("mean %v of %v, variance %v of %v", mean, s, got, want)
	}
}
