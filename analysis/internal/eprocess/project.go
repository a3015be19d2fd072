package eprocess

import "math"

// ProjectEvent is the reverse information projection of a working alternative (p1, q1) for one event on the
// null p <= R q + delta, for blocks of n0 trials on D0 and n1 on D1 (safe two-sample tests: Turner, Ly and
// Grünwald 2021). It returns the point p = R q + delta of the boundary that minimises
// n0 KL(p1||p) + n1 KL(q1||q), the root of
//
//	n0 R (p1-p)/(p(1-p)) + n1 (q1-q)/(q(1-q)) = 0.
//
// Let S be the event, X the outcome of a trial on D0 and Y that of a trial on D1. The product over a block of the n0
// factors (X in S ? p1/p : (1-p1)/(1-p)) and the n1 factors (Y in S ? q1/q : (1-q1)/(1-q)) then has mean at most 1
// under the null. ok is false if the alternative lies in the null, or if the boundary point is degenerate (q <= 0 or p
// >= 1): there is no bet.
func ProjectEvent(p1, q1, ratio, delta, n0, n1 float64) (p, q float64, ok bool) {
	if !(p1 > ratio*q1+delta) {
		return p1, q1, false
	}
	if delta == 0 && n0 == n1 { // the root of a quadratic
		b := 1 + ratio + p1 + ratio*q1
		q = 2 * (p1 + q1) / (b + math.Sqrt(max(0, b*b-8*ratio*(p1+q1))))
		return ratio * q, q, q > 0 && ratio*q < 1
	}
	// With the denominators multiplied out the left side is positive at q1 and not at the upper end.
	lo, hi := q1, (p1-delta)/ratio
	for range 60 {
		q = lo + (hi-lo)/2
		p = ratio*q + delta
		if n0*ratio*(p1-p)*q*(1-q)+n1*(q1-q)*p*(1-p) > 0 {
			lo = q
		} else {
			hi = q
		}
		if hi-lo <= 1e-15*hi {
			break
		}
	}
	q = lo + (hi-lo)/2
	p = ratio*q + delta
	return p, q, q > 0 && p < 1
}

// ProjectBins is the reverse information projection of a working alternative (p, q) over k bins on the pairs of
// laws with P <= R Q and Q <= R P in every bin. It writes the projection to ps and qs, which have the length of
// p and q, and may be p and q themselves.
//
// For a weight a on D0 and b = n0+n1-a on D1 every bin is either free (u = n0 p/a, v = n1 q/b) or on the boundary (u =
// R v or v = R u); a sum(u) + b sum(v) = n0+n1 always, so that sum(u) = 1 makes sum(v) = 1. The pairs allowed form a
// convex set, hence n0(A-1)+n1(B-1) <= 0 for the mean factors A on D0 and B on D1 of any allowed pair, and the factor
// of a block has mean A^n0 B^n1 <= 1. The factor of a free bin is (a/n0, b/n1), which is what a bin without mass in the
// alternative has too. It returns a.
func ProjectBins(p, q []float64, ratio, n0, n1 float64, ps, qs []float64) (a float64) {
	total := n0 + n1
	lo, hi := 0.0, total
	a = n0
	for range 200 {
		sum, slope := 0.0, 0.0
		for i := range p {
			u, _, du := boundary(p[i], q[i], ratio, n0, n1, a)
			sum += u
			slope += du
		}
		excess := sum - 1
		if math.Abs(excess) < 1e-14 {
			break
		}
		if excess > 0 {
			lo = a
		} else {
			hi = a
		}
		next := a - excess/slope
		if !(next > lo && next < hi) {
			next = lo + (hi-lo)/2
		} else if math.Abs(excess) < 1e-8 { // Newton's last step squares the error
			a = next
			break
		}
		if next == a {
			break
		}
		a = next
	}
	for i := range p {
		ps[i], qs[i], _ = boundary(p[i], q[i], ratio, n0, n1, a)
	}
	return a
}

// boundary returns the projected masses of one bin for the weight a on D0, and the derivative of the first.
func boundary(p, q, ratio, n0, n1, a float64) (u, v, du float64) {
	b := n0 + n1 - a
	u, v = n0*p/a, n1*q/b
	switch {
	case u > ratio*v:
		w := a*ratio + b
		v = (n0*p + n1*q) / w
		return ratio * v, v, -ratio * v * (ratio - 1) / w
	case v > ratio*u:
		w := a + b*ratio
		u = (n0*p + n1*q) / w
		return u, ratio * u, u * (ratio - 1) / w
	}
	return u, v, -u / a
}

// Ternary is a law over three classes of outcomes: those more likely on D0, the rest, those more likely on D1.
type Ternary [3]float64

// The classes of a ternary.
const (
	TowardD0 = iota
	Undecided
	TowardD1
)
