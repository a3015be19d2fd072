package response_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/response"
)

func TestLossOf(t *testing.T) {
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

// TestUnbiased holds, by its expectation, that the estimator gives the truth.
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
}
