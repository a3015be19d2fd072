package odometer_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/internal/odometer"
)

// near reports whether two figures agree to six digits.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b))
}

func TestLoss(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for _, test := range []struct {
		name  string
		spent odometer.Spent
		c     odometer.Composition
		delta float64
		want  float64
	}{
		{"nothing", odometer.Spent{}, odometer.Best, 0, 0},
		{"basic adds up", odometer.Of(0.5, 0, 4).Add(odometer.Of(1, 0, 1)), odometer.Basic, 0, 3},
		{"deltas within", odometer.Of(0.5, 1e-6, 4), odometer.Basic, 4e-6, 2},
		{"deltas beyond", odometer.Of(0.5, 1e-6, 5), odometer.Basic, 4e-6, inf},
		{"a pure budget leaves nothing for advanced", odometer.Of(0.1, 0, 100), odometer.Advanced, 0, inf},
		// 100 answers of 0.1: 10 tanh(0.05) + sqrt(2 * 1 * ln 10^6) = 0.499583957 + 5.256521770
		{"advanced", odometer.Of(0.1, 0, 100), odometer.Advanced, 1e-6, 5.756105727},
		{"best of many small", odometer.Of(0.1, 0, 100), odometer.Best, 1e-6, 5.756105727},
		{"best of few large", odometer.Of(1, 0, 3), odometer.Best, 1e-6, 3},
		// rho = 100 * 0.01 / (4 ln 125000) = 0.02130185; + 2 sqrt(rho ln 10^5)
		{"Gaussian", odometer.Of(0.1, 1e-5, 100), odometer.ZCDP, 1e-5, 1.0117494865},
		{"a delta alone is no Gaussian noise", odometer.Of(0, 0.5, 3), odometer.ZCDP, 1e-6, inf},
		// rho = 100 * 0.01/2 = 0.5; 0.5 + 2 sqrt(0.5 ln 10^6)
		{"pure as zCDP", odometer.Of(0.1, 0, 100), odometer.ZCDP, 1e-6, 5.756521770},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.spent.Loss(test.c, test.delta); !near(got, test.want) {
				t.Errorf("loss %.9f, want %.9f", got, test.want)
			}
		})
	}
}

// TestLossIsAnUpperBound compares advanced composition with the exact loss of k answers by randomised response, which
// is the worst mechanism for its epsilon (Kairouz, Oh and Viswanath 2017, theorem 3.3): the exact loss is never larger.
func TestLossIsAnUpperBound(t *testing.T) {
	t.Parallel()
	const delta = 1e-5
	for _, epsilon := range []float64{0.05, 0.3, 1, 2} {
		for _, k := range []int{1, 2, 7, 30, 100} {
			s := odometer.Of(epsilon, 0, int64(k))
			exact := exactLoss(epsilon, k, delta)
			for _, c := range odometer.Compositions() {
				if got := s.Loss(c, delta); got < exact-1e-9 {
					t.Errorf("%d answers of %g by %s: %g, but the exact loss is %g", k, epsilon, c, got, exact)
				}
			}
		}
	}
}

// exactLoss returns the smallest epsilon for which k answers by randomised response are (epsilon, delta)-differentially
// private.
func exactLoss(each float64, k int, delta float64) float64 {
	p := 1 / (1 + math.Exp(-each))
	exceeds := func(epsilon float64) bool { // the sum over answers with more probability on D0 than e^epsilon times that on D1
		sum := 0.0
		for i := range k + 1 {
			lg, _ := math.Lgamma(float64(k + 1))
			li, _ := math.Lgamma(float64(i + 1))
			lr, _ := math.Lgamma(float64(k - i + 1))
			choose := math.Exp(lg - li - lr)
			d0 := choose * math.Pow(p, float64(i)) * math.Pow(1-p, float64(k-i))
			d1 := choose * math.Pow(1-p, float64(i)) * math.Pow(p, float64(k-i))
			sum += math.Max(0, d0-math.Exp(epsilon)*d1)
		}
		return sum > delta
	}
	low, high := 0.0, each*float64(k)
	for range 100 {
		if middle := (low + high) / 2; exceeds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

func TestBudget(t *testing.T) {
	t.Parallel()
	b := odometer.Budget{Epsilon: 1, Composition: odometer.Basic}
	var tenths odometer.Spent
	for range 10 {
		tenths = tenths.Add(odometer.Of(0.1, 0, 1))
	}
	if b.Exceeded(tenths) {
		t.Error("ten answers of 0.1 exceed a budget of 1")
	}
	if !b.Exceeded(tenths.Add(odometer.Of(0.1, 0, 1))) {
		t.Error("eleven do not")
	}
	if got := b.Left(odometer.Of(0.5, 0, 1), odometer.Of(0.125, 0, 1)); !near(got, 4) {
		t.Errorf("%g times 0.125 fit beside 0.5, want 4", got)
	}
	if got := b.Left(tenths, odometer.Spent{}); !math.IsInf(got, 1) {
		t.Errorf("%g times nothing fits, want any number", got)
	}
	if got := b.Left(odometer.Of(2, 0, 1), odometer.Spent{}); got != 0 {
		t.Errorf("%g times fits beside an exceeded budget, want 0", got)
	}
}
