// Package response computes the privacy loss of randomised response from its parameters, and unbiased estimates from
// its answers. It takes and returns plain numbers, draws nothing and keeps nothing.
//
// Binary: the answer is the truth with probability p, else its opposite. k-ary: the truth with probability p, else one
// of the k-1 others, each as likely. Neighbours differ in one record that is replaced. An estimate is NaN where its
// parameters are out of range, and is not clipped: it may lie outside [0, 1], which clipping would make biased.
package response

import "math"

// LossOf is the privacy loss of k-ary response, |ln(p (k-1)/(1-p))|. NaN for k < 2 and for p outside [0, 1].
func LossOf(k int, p float64) float64 {
	if k < 2 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	return math.Abs(math.Log(p) + math.Log(float64(k-1)) - math.Log1p(-p))
}

// Truth is the probability of the truth with which k-ary response spends epsilon: e^epsilon/(e^epsilon+k-1). NaN for
// k < 2 and for an epsilon that is negative or not a number.
func Truth(k int, epsilon float64) float64 {
	if k < 2 || !(epsilon >= 0) {
		return math.NaN()
	}
	return 1 / (1 + float64(k-1)*math.Exp(-epsilon))
}

// Share is the unbiased estimate of a category's true share from the share m observed in k-ary response:
// (m(k-1)+p-1)/(pk-1). NaN at p = 1/k, where answers carry no information.
func Share(m float64, k int, p float64) float64 {
	d := p*float64(k) - 1
	if k < 2 || !(p >= 0 && p <= 1) || !(m >= 0 && m <= 1) || d == 0 {
		return math.NaN()
	}
	return (m*float64(k-1) + p - 1) / d
}

// Other is the probability of each category but the true one, (1-p)/(k-1). NaN where the parameters are out of range.
func Other(k int, p float64) float64 {
	if k < 2 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	return (1 - p) / float64(k-1)
}

// Delta is the least delta with which k-ary response is (epsilon, delta)-differentially private: its hockey-stick
// divergence, attained by the event of one answer. NaN where the parameters are out of range.
func Delta(k int, p, epsilon float64) float64 {
	q := Other(k, p)
	if math.IsNaN(q) || !(epsilon >= 0) {
		return math.NaN()
	}
	high, low := max(p, q), min(p, q)
	if low == 0 {
		return high
	}
	return max(0, high-math.Exp(epsilon)*low)
}
