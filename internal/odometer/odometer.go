// Package odometer adds up the claims of the answers that an analyst received, and compares the sum with a privacy
// budget.
//
// Each answer is (epsilon, delta)-differentially private by its claim. What all of them reveal together is bounded by a
// composition theorem; the sums that the theorems need are kept, not the answers. It is pure: no clock, no I/O.
package odometer

import "math"

// Spent holds sums over the claims of answers. Sums of disjoint sets of answers can be added.
type Spent struct {
	Answers int64
	Epsilon float64 // of epsilon
	Squares float64 // of epsilon squared
	Drift   float64 // of epsilon times tanh(epsilon / 2): the expected privacy loss of randomised response
	Delta   float64 // of delta
	Rho     float64 // of the zCDP of the answers, if those with a delta come from the Gaussian mechanism
	Unread  int64   // further answers whose claims are not known, so that the sums are incomplete
}

// Of returns the sums of a number of answers with the same claim. Rho is epsilon^2/2 for delta = 0 (Bun and Steinke
// 2016, proposition 1.4), otherwise that of Gaussian noise with standard deviation sqrt(2 ln(1.25/delta))
// sensitivity/epsilon (Dwork and Roth 2014, theorem A.1): epsilon^2 / (4 ln(1.25/delta)).
func Of(epsilon, delta float64, answers int64) Spent {
	n := float64(answers)
	rho := epsilon * epsilon / 2
	if delta > 0 {
		rho = epsilon * epsilon / (4 * math.Log(1.25/delta))
	}
	return Spent{answers, n * epsilon, n * epsilon * epsilon, n * epsilon * math.Tanh(epsilon/2), n * delta, n * rho, 0}
}

// Add returns the sums of two disjoint sets of answers.
func (s Spent) Add(t Spent) Spent {
	return Spent{s.Answers + t.Answers, s.Epsilon + t.Epsilon, s.Squares + t.Squares, s.Drift + t.Drift, s.Delta + t.Delta, s.Rho + t.Rho, s.Unread + t.Unread}
}

// times returns the sums of x times as many answers of the same kinds.
func (s Spent) times(x float64) Spent {
	return Spent{int64(x * float64(s.Answers)), x * s.Epsilon, x * s.Squares, x * s.Drift, x * s.Delta, x * s.Rho, int64(x * float64(s.Unread))}
}

// Composition is a set of composition theorems.
type Composition string

// The compositions.
const (
	Basic    Composition = "basic"    // epsilons and deltas add up
	Advanced Composition = "advanced" // epsilon grows as the square root of the number of answers, for a part of delta
	ZCDP     Composition = "zcdp"     // answers with a delta come from the Gaussian mechanism, which composes better
	Best     Composition = "best"     // the smaller of basic and advanced
)

// Compositions returns all compositions.
func Compositions() []Composition { return []Composition{Best, Basic, Advanced, ZCDP} }

// Loss returns the smallest epsilon for which a composition proves that all answers together are (epsilon,
// delta)-differentially private, +Inf if it proves none: the answers' own deltas exceed delta. The analyst may have
// chosen each query after seeing the earlier answers, but not the claims: an analyst who also chooses the next epsilon
// by the earlier answers can learn slightly more (Whitehouse, Ramdas, Rogers and Wu 2023, "Fully adaptive composition":
// with epsilon^2/2 in place of the summands of Drift).
func (s Spent) Loss(c Composition, delta float64) float64 {
	switch c {
	case Basic:
		return s.basic(delta)
	case Advanced:
		return s.advanced(delta)
	case ZCDP:
		return min(s.basic(delta), s.zcdp(delta))
	case Best:
	}
	return min(s.basic(delta), s.advanced(delta))
}

// rounding is the relative error that sums of decimal claims may have: ten answers of 0.1 do not exceed a budget of 1.
const rounding = 1e-9

func (s Spent) basic(delta float64) float64 {
	if s.Delta > delta*(1+rounding) {
		return math.Inf(1)
	}
	return s.Epsilon
}

// advanced is Kairouz, Oh and Viswanath 2017, theorem 3.5: for answers with different claims.
func (s Spent) advanced(delta float64) float64 {
	slack := delta - s.Delta
	switch {
	case s.Epsilon == 0 && s.Delta <= delta*(1+rounding):
		return 0
	case slack <= 0:
		return math.Inf(1)
	}
	return s.Drift + math.Sqrt(2*s.Squares*math.Log(1/slack))
}

// zcdp is Bun and Steinke 2016, proposition 1.3.
func (s Spent) zcdp(delta float64) float64 {
	switch {
	case s.Rho == 0 && s.Delta == 0:
		return 0
	case delta <= 0 || s.Rho == 0: // what claims epsilon 0 and a delta is no Gaussian noise
		return math.Inf(1)
	}
	return s.Rho + 2*math.Sqrt(s.Rho*math.Log(1/delta))
}

// Budget is what an engine promises about all answers to one analyst.
type Budget struct {
	Epsilon, Delta float64
	Composition    Composition
}

// Exceeded reports whether no theorem of the budget's composition shows that the answers keep to it.
func (b Budget) Exceeded(s Spent) bool {
	return s.Loss(b.Composition, b.Delta) > b.Epsilon*(1+rounding)
}

// Left returns how many times the answers of recent can still be given before the budget is exceeded: 0 if it is, +Inf
// if it never will be.
func (b Budget) Left(s, recent Spent) float64 {
	exceeded := func(x float64) bool { return b.Exceeded(s.Add(recent.times(x))) }
	if exceeded(0) {
		return 0
	}
	low, high := 0.0, 1.0
	for ; !exceeded(high); high *= 2 {
		if high > 1e9 {
			return math.Inf(1)
		}
		low = high
	}
	for range 60 {
		if middle := (low + high) / 2; exceeded(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}
