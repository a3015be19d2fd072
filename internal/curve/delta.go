package curve

import "math"

// Delta returns a delta with which the curve claims (epsilon, delta)-differential privacy.
func (c Curve) Delta(epsilon float64) float64 {
	switch c.Unit() {
	case Mu:
		return deltaOfMu(c.Parameter(), epsilon)
	case Rho:
		return deltaOfRho(c.Parameter(), epsilon)
	}
	delta := 1.0
	for _, p := range c.list() {
		delta = min(delta, p.at(epsilon))
	}
	return delta
}

// at returns the smallest delta at an epsilon that follows from a point. The worst pair of laws that it allows shows the
// dataset with probability delta, and is otherwise the binary response of its epsilon.
func (p Point) at(epsilon float64) float64 {
	if epsilon >= p.Epsilon {
		return p.Delta
	}
	return p.Delta + (1-p.Delta)*(1-math.Exp(epsilon-p.Epsilon))/(1+math.Exp(-p.Epsilon))
}

// deltaOfMu is the curve of Gaussian noise whose standard deviation is sensitivity/mu (Dong, Roth and Su 2022, corollary
// 2.13).
func deltaOfMu(mu, epsilon float64) float64 {
	below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	return max(0, below(-epsilon/mu+mu/2)-math.Exp(epsilon)*below(-epsilon/mu-mu/2))
}

// deltaOfRho converts from zero-concentrated differential privacy: the infimum over the orders a > 1 of
//
//	exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a
//
// (Canonne, Kamath and Steinke 2020, proposition 7). Every order gives a valid delta. So does the total variation
// distance, which is at most that of a Kullback-Leibler divergence of rho (Pinsker; Bretagnolle and Huber).
func deltaOfRho(rho, epsilon float64) float64 {
	log := func(u float64) float64 { // u = ln(a-1)
		a := 1 + math.Exp(u)
		return (a-1)*(a*rho-epsilon) - u + a*(u-math.Log(a))
	}
	// The best order is near (epsilon/rho + 1)/2, if that is above 1; a grid finds the right valley, golden section its
	// bottom.
	const from, to, steps = -12.0, 36.0, 480
	const step = (to - from) / steps
	best := from
	for i := range steps + 1 {
		if u := from + step*float64(i); log(u) < log(best) {
			best = u
		}
	}
	lo, hi := best-step, best+step
	for range 60 {
		third := (hi - lo) / 3
		if log(lo+third) < log(hi-third) {
			hi -= third
		} else {
			lo += third
		}
	}
	least := min(0, min(log(best), log((lo+hi)/2)))
	return min(math.Exp(least), math.Sqrt(rho/2), math.Sqrt(-math.Expm1(-rho)))
}
