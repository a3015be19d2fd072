package eprocess

// Growth returns the most evidence per pair of trials, in nats, that a bet against the null can gain where the laws are
// (p, q).
//
// For delta > 0 the Lagrangian with weights a, b on the totals and l, m on the two hockey-stick divergences is
// minimised in every bin in closed form: free u = p/a, v = q/b; beyond the ratio u = p/(a+l), v = q/(b-R l), or
// mirrored; else on the boundary. At the optimum a + b + delta (l+m) = 2.
func (h Null) Growth(p, q []float64) float64 {
	if h.hockeyStick(p, q) <= h.Delta && h.hockeyStick(q, p) <= h.Delta {
		return 0
	}
	if h.Delta > 0 {
		return h.growthDelta(p, q)
	}
	ps, qs := make([]float64, len(p)), make([]float64, len(q))
	ProjectBins(p, q, h.Ratio, 1, 1, ps, qs)
	g, unused := 0.0, 0.0
	for i := range p {
		g += p[i]*LogRatio(p[i], ps[i], &unused) + q[i]*LogRatio(q[i], qs[i], &unused)
	}
	return max(g, 0)
}

// hockeyStick is sum (p - R q)+ over the bins.
func (h Null) hockeyStick(p, q []float64) (d float64) {
	for i := range p {
		d += max(0, p[i]-h.Ratio*q[i])
	}
	return d
}

// growthDelta maximises the dual function, which is concave, over l and m by nested bisection on the sign of its
// derivatives (the hockey-stick divergences of the projection less delta), and over a by bisection on the total.
func (h Null) growthDelta(p, q []float64) float64 {
	var top0, top1, g float64
	inner := func(l float64) float64 { // returns the derivative by l at the best m
		lo, hi := 0.0, 1/h.Ratio
		for range 40 {
			m := lo + (hi-lo)/2
			if _, top1, _ = h.dual(p, q, l, m); top1 > h.Delta {
				lo = m
			} else {
				hi = m
			}
		}
		top0, _, g = h.dual(p, q, l, hi)
		return top0 - h.Delta
	}
	lo, hi := 0.0, 1/h.Ratio
	for range 40 {
		l := lo + (hi-lo)/2
		if inner(l) > 0 {
			lo = l
		} else {
			hi = l
		}
	}
	inner(hi)
	return max(g, 0)
}

// dual projects for given l and m, and returns the projection's hockey-stick divergences and the divergence of (p, q)
// from it.
func (h Null) dual(p, q []float64, l, m float64) (top0, top1, g float64) {
	total := 2 - h.Delta*(l+m)
	lo, hi := 0.0, total
	for range 50 {
		a := lo + (hi-lo)/2
		sum := 0.0
		for i := range p {
			u, _ := h.projectBin(p[i], q[i], a, total-a, l, m)
			sum += u
		}
		if sum > 1 {
			lo = a
		} else {
			hi = a
		}
	}
	unused := 0.0
	for i := range p {
		u, v := h.projectBin(p[i], q[i], hi, total-hi, l, m)
		top0 += max(0, u-h.Ratio*v)
		top1 += max(0, v-h.Ratio*u)
		g += p[i]*LogRatio(p[i], u, &unused) + q[i]*LogRatio(q[i], v, &unused)
	}
	return top0, top1, g
}

func (h Null) projectBin(p, q, a, b, l, m float64) (u, v float64) {
	r := h.Ratio
	u, v = p/a, q/b
	switch {
	case u > r*v:
		if u, v = p/(a+l), q/(b-r*l); b > r*l && u > r*v {
			return u, v
		}
		v = (p + q) / (a*r + b)
		return r * v, v
	case v > r*u:
		if u, v = p/(a-r*m), q/(b+m); a > r*m && v > r*u {
			return u, v
		}
		u = (p + q) / (a + b*r)
		return u, r * u
	}
	return u, v
}
