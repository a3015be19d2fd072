package analysis

import "math"

// share says which classes of outcomes a component bets on.
type share uint8

const (
	bothSides share = iota // the event that speaks for D0 and the one that speaks for D1
	onlyD0                 // the event that speaks for D0
	onlyD1                 // the event that speaks for D1
	plugIn                 // the laws as estimated
	byBin                  // every bin of its own, with the table's laws as the working alternative
)

// component is one working alternative of the mixture: by how much (excess, in nats) the ratio of the event's
// probabilities is above the epsilon under test, and on which events.
type component struct {
	share  share
	excess float64
	weight float64 // the weights of a mixture sum to 1
}

// mixture is the prior over working alternatives. Its wealth is the weighted average of the components'
// products.
type mixture []component

// excesses are those of every prior. Where nothing is claimed the bound climbs to where little excess is left, and there
// is a smaller one as well: an alternative of more than about twice the true excess loses.
func excesses(noClaim bool) []float64 {
	if noClaim {
		return []float64{.03, .1, .5, 3}
	}
	return []float64{.1, .4, 1.5}
}

// shiftMixture is the prior for values that noise moves: mostly both events, at one of a few excesses.
func shiftMixture(excesses []float64) mixture { return newMixture(.7, .1, .1, excesses) }

// fittedMixture is the prior for likelihood ratios of fitted laws: more on the plug-in, since laws that differ in scale
// have events of any ratio.
func fittedMixture(excesses []float64) mixture { return newMixture(.6, .075, .25, excesses) }

// supportMixture is the prior for outcomes that one world never has.
func supportMixture(excesses []float64) mixture { return newMixture(.2, .15, .5, excesses) }

// lawMixture has one component, which bets on every bin.
func lawMixture() mixture { return mixture{{byBin, 0, 1}} }

// newMixture spreads the weights of both events, of each one alone, and of the plug-in over the excesses.
func newMixture(both, alone, plug float64, excesses []float64) mixture {
	var m mixture
	for _, s := range []struct {
		share  share
		weight float64
	}{{bothSides, both}, {onlyD0, alone}, {onlyD1, alone}} {
		for _, x := range excesses {
			m = append(m, component{s.share, x, s.weight / float64(len(excesses))})
		}
	}
	return append(m, component{plugIn, 0, plug})
}

// null is the hypothesis that a bet is made against.
type null struct {
	epsilon, ratio, delta float64 // ratio = e^epsilon
}

func newNull(epsilon, delta float64) null {
	return null{epsilon: epsilon, ratio: math.Exp(epsilon), delta: delta}
}

// factors are the logarithms of what a trial multiplies the wealth by, per world and class of its outcome.
type factors [2]ternary

// factorsOf returns what a component bets, given smoothed estimates (p, q) of the classes' probabilities. live says
// on which of the two events one may bet at all.
func (c component) factorsOf(h null, p, q ternary, live [3]bool) factors {
	switch c.share {
	case plugIn:
		return h.ternaryFactors(p, q)
	}
	useD0 := live[towardD0] && c.share != onlyD1
	useD1 := live[towardD1] && c.share != onlyD0
	if h.delta > 0 && c.share != bothSides {
		if useD0 {
			return h.eventFactors(towardD0, p[towardD0]+q[towardD0], c.excess)
		}
		if useD1 {
			return h.eventFactors(towardD1, p[towardD1]+q[towardD1], c.excess)
		}
		return factors{}
	}
	r := math.Exp(h.epsilon + c.excess)
	var p1, q1 ternary
	if useD0 {
		p1[towardD0], q1[towardD0] = split(p[towardD0]+q[towardD0], r)
	}
	if useD1 {
		q1[towardD1], p1[towardD1] = split(p[towardD1]+q[towardD1], r)
	}
	if !useD0 && !useD1 {
		return factors{}
	}
	// An event that is not bet on belongs to the rest.
	rest := [2]float64{p[undecided], q[undecided]}
	if !useD0 {
		rest[0], rest[1] = rest[0]+p[towardD0], rest[1]+q[towardD0]
	}
	if !useD1 {
		rest[0], rest[1] = rest[0]+p[towardD1], rest[1]+q[towardD1]
	}
	fill(&p1, rest[0])
	fill(&q1, rest[1])
	f := h.ternaryFactors(p1, q1)
	for w := range f {
		if !useD0 {
			f[w][towardD0] = f[w][undecided]
		}
		if !useD1 {
			f[w][towardD1] = f[w][undecided]
		}
	}
	return f
}

// split divides a mass (the sum of both worlds' probabilities) in the ratio r : 1.
func split(mass, r float64) (heavy, light float64) { return mass * r / (1 + r), mass / (1 + r) }

// fill gives what is left of 1 to the undecided class; where nothing would be left for it, the others shrink.
func fill(p *ternary, estimate float64) {
	least := min(estimate, .5) * .5
	bet := p[towardD0] + p[towardD1]
	if bet > 1-least {
		p[towardD0] *= (1 - least) / bet
		p[towardD1] *= (1 - least) / bet
	}
	p[undecided] = 1 - p[towardD0] - p[towardD1]
}

// ternaryFactors is binFactors for three bins.
func (h null) ternaryFactors(p1, q1 ternary) factors {
	var f factors
	h.binFactors(p1[:], q1[:], f[0][:], f[1][:])
	return f
}

// binFactors is the bet on bins: the logarithms of the alternative (p1, q1) over its projection, written to f0 and f1.
// With delta > 0 it rests on the decomposition of every (epsilon, delta) pair (Kairouz, Oh and Viswanath 2015):
// P = delta K0 + (1-delta) P', Q = delta K1 + (1-delta) Q' with (P', Q') an (epsilon, 0) pair. With A + B <= 2 for the
// mean factors under (P', Q') and M0, M1 the greatest factors, the mean of the product is at most
// (1 + delta ((M0+M1)/2 - 1))^2, by which the factor is divided.
func (h null) binFactors(p1, q1, f0, f1 []float64) {
	a := projectBins(p1, q1, h.ratio, 1, 1, f0, f1)
	var greatest [2]float64
	for i := range p1 {
		if !(p1[i] > 0) && !(q1[i] > 0) { // no mass in the alternative: the factor of a free bin
			f0[i], f1[i] = math.Log(a), math.Log(2-a)
			greatest[0], greatest[1] = max(greatest[0], a), max(greatest[1], 2-a)
			continue
		}
		f0[i] = logRatio(p1[i], f0[i], &greatest[0])
		f1[i] = logRatio(q1[i], f1[i], &greatest[1])
	}
	if h.delta > 0 {
		tax := math.Log1p(h.delta * max(0, (greatest[0]+greatest[1])/2-1))
		for i := range f0 {
			f0[i] -= tax
			f1[i] -= tax
		}
	}
}

// eventFactors is the bet on one event in one direction at any delta, with the alternative
// p1 - delta = e^(epsilon+excess) q1 on the given mass p1+q1.
func (h null) eventFactors(toward int, mass, excess float64) factors {
	var f factors
	if mass <= h.delta {
		return f
	}
	q1 := (mass - h.delta) / (1 + h.ratio*math.Exp(excess))
	p1 := mass - q1
	if p1 > .999 {
		p1 = .999
		q1 = (p1 - h.delta) / (h.ratio * math.Exp(excess))
	}
	p, q, ok := projectEvent(p1, q1, h.ratio, h.delta, 1, 1)
	if !ok || !(q1 > 0) {
		return f
	}
	heavy, light := 0, 1
	if toward == towardD1 {
		heavy, light = 1, 0
	}
	in, out := math.Log(p1/p), math.Log((1-p1)/(1-p))
	inLight, outLight := math.Log(q1/q), math.Log((1-q1)/(1-q))
	for c := range 3 {
		f[heavy][c], f[light][c] = out, outLight
	}
	f[heavy][toward], f[light][toward] = in, inLight
	return f
}

// ruin is the logarithm of the factor of an outcome that the alternative rules out: not minus infinity, which times a count
// of 0 is no number.
const ruin = -700

// logRatio returns ln(alternative/projection), and keeps the greatest ratio seen.
func logRatio(alternative, projection float64, greatest *float64) float64 {
	r := alternative / projection
	if !(r > 0) {
		return ruin
	}
	*greatest = max(*greatest, r)
	return max(math.Log(r), ruin)
}
