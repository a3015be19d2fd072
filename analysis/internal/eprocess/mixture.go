package eprocess

import "math"

// Share is the set of classes of outcomes that a component bets on.
type Share uint8

const (
	BothSides Share = iota // the event that is more likely on D0 and the one that is more likely on D1
	OnlyD0                 // the event that is more likely on D0
	OnlyD1                 // the event that is more likely on D1
	PlugIn                 // the laws as estimated
	ByBin                  // every bin by itself, with the table's laws as the working alternative
)

// Component is one working alternative of the mixture: by how much (excess, in nats) the ratio of the event's
// probabilities is above the epsilon under test, and on which events.
type Component struct {
	Share  Share
	Excess float64
	Weight float64 // the weights of a mixture sum to 1
}

// Mixture is the prior over working alternatives. Its wealth is the weighted average of the components'
// products.
type Mixture []Component

// Excesses are those of every prior. Where nothing is claimed the bound climbs to where little excess is left, and
// there is a smaller one as well: an alternative of more than about twice the true excess loses.
func Excesses(noClaim bool) []float64 {
	if noClaim {
		return []float64{.03, .1, .5, 3}
	}
	return []float64{.1, .4, 1.5}
}

// ShiftMixture is the prior for values that noise moves: mostly both events, at one of a few excesses.
func ShiftMixture(excesses []float64) Mixture { return newMixture(.7, .1, .1, excesses) }

// FittedMixture is the prior for likelihood ratios of fitted laws: more on the plug-in, since laws that differ in scale
// have events of any ratio.
func FittedMixture(excesses []float64) Mixture { return newMixture(.6, .075, .25, excesses) }

// SupportMixture is the prior for outcomes that one world never has.
func SupportMixture(excesses []float64) Mixture { return newMixture(.2, .15, .5, excesses) }

// WholeMixture is the prior for answers that are compared whole: few components, since other scores bet on small excesses.
func WholeMixture() Mixture {
	return Mixture{{BothSides, .4, .1}, {BothSides, 1.5, .1}, {OnlyD0, 1.5, .15}, {OnlyD1, 1.5, .15}, {PlugIn, 0, .5}}
}

// LawMixture has one component, which bets on every bin.
func LawMixture() Mixture { return Mixture{{ByBin, 0, 1}} }

// PairedMixture is the prior over directions and over lam as a part of its greatest value.
func PairedMixture() Mixture {
	var m Mixture
	for _, s := range []Share{OnlyD0, OnlyD1} {
		for _, lam := range []float64{.1, .3, .6, .95} {
			m = append(m, Component{s, lam, .125})
		}
	}
	return m
}

// newMixture spreads the weights of both events, of each one alone, and of the plug-in over the excesses.
func newMixture(both, alone, plug float64, excesses []float64) Mixture {
	var m Mixture
	for _, s := range []struct {
		Share  Share
		Weight float64
	}{{BothSides, both}, {OnlyD0, alone}, {OnlyD1, alone}} {
		for _, x := range excesses {
			m = append(m, Component{s.Share, x, s.Weight / float64(len(excesses))})
		}
	}
	return append(m, Component{PlugIn, 0, plug})
}

// Null is the hypothesis that a bet is made against.
type Null struct {
	Epsilon, Ratio, Delta float64 // ratio = e^epsilon
}

// NewNull returns the hypothesis that no event has more than e^epsilon times its probability in the other world, plus
// delta.
func NewNull(epsilon, delta float64) Null {
	return Null{Epsilon: epsilon, Ratio: math.Exp(epsilon), Delta: delta}
}

// Factors are the logarithms of what a trial multiplies the wealth by, per world and class of its outcome.
type Factors [2]Ternary

// FactorsOf returns the bet of a component, given smoothed estimates (p, q) of the classes' probabilities. live marks
// the events that may be bet on.
func (c Component) FactorsOf(h Null, p, q Ternary, live [3]bool) Factors {
	switch c.Share {
	case PlugIn:
		return h.ternaryFactors(p, q)
	}
	useD0 := live[TowardD0] && c.Share != OnlyD1
	useD1 := live[TowardD1] && c.Share != OnlyD0
	if h.Delta > 0 && c.Share != BothSides {
		if useD0 {
			return h.eventFactors(TowardD0, p[TowardD0]+q[TowardD0], c.Excess)
		}
		if useD1 {
			return h.eventFactors(TowardD1, p[TowardD1]+q[TowardD1], c.Excess)
		}
		return Factors{}
	}
	r := math.Exp(h.Epsilon + c.Excess)
	var p1, q1 Ternary
	if useD0 {
		p1[TowardD0], q1[TowardD0] = Split(p[TowardD0]+q[TowardD0], r)
	}
	if useD1 {
		q1[TowardD1], p1[TowardD1] = Split(p[TowardD1]+q[TowardD1], r)
	}
	if !useD0 && !useD1 {
		return Factors{}
	}
	// An event that is not bet on belongs to the rest.
	rest := [2]float64{p[Undecided], q[Undecided]}
	if !useD0 {
		rest[0], rest[1] = rest[0]+p[TowardD0], rest[1]+q[TowardD0]
	}
	if !useD1 {
		rest[0], rest[1] = rest[0]+p[TowardD1], rest[1]+q[TowardD1]
	}
	fill(&p1, rest[0])
	fill(&q1, rest[1])
	f := h.ternaryFactors(p1, q1)
	for w := range f {
		if !useD0 {
			f[w][TowardD0] = f[w][Undecided]
		}
		if !useD1 {
			f[w][TowardD1] = f[w][Undecided]
		}
	}
	return f
}

// Gain returns the log of the gain of a component on the counts of a block.
func (f *Factors) Gain(k0, k1 [3]int32) float64 {
	g := 0.0
	for c := range 3 {
		g += float64(k0[c])*f[0][c] + float64(k1[c])*f[1][c]
	}
	return g
}

// Split divides a mass (the sum of both worlds' probabilities) in the ratio r : 1.
func Split(mass, r float64) (heavy, light float64) { return mass * r / (1 + r), mass / (1 + r) }

// fill gives what is left of 1 to the undecided class; where nothing would be left for it, the others shrink.
func fill(p *Ternary, estimate float64) {
	least := min(estimate, .5) * .5
	bet := p[TowardD0] + p[TowardD1]
	if bet > 1-least {
		p[TowardD0] *= (1 - least) / bet
		p[TowardD1] *= (1 - least) / bet
	}
	p[Undecided] = 1 - p[TowardD0] - p[TowardD1]
}

// ternaryFactors is BinFactors for three bins.
func (h Null) ternaryFactors(p1, q1 Ternary) Factors {
	var f Factors
	h.BinFactors(p1[:], q1[:], f[0][:], f[1][:])
	return f
}

// BinFactors is the bet on bins: the logarithms of the alternative (p1, q1) over its projection, written to f0 and f1.
// With delta > 0 it rests on the decomposition of every (epsilon, delta) pair (Kairouz, Oh and Viswanath 2015):
// P = delta K0 + (1-delta) P', Q = delta K1 + (1-delta) Q' with (P', Q') an (epsilon, 0) pair. With A + B <= 2 for the
// mean factors under (P', Q') and M0, M1 the greatest factors, the mean of the product is at most
// (1 + delta ((M0+M1)/2 - 1))^2, by which the factor is divided.
func (h Null) BinFactors(p1, q1, f0, f1 []float64) {
	a := ProjectBins(p1, q1, h.Ratio, 1, 1, f0, f1)
	var greatest [2]float64
	free := [2]float64{math.Log(a), math.Log(2 - a)}
	for i := range p1 {
		if f0[i] < h.Ratio*f1[i] && f1[i] < h.Ratio*f0[i] || !(p1[i] > 0) && !(q1[i] > 0) { // a free bin, or one without mass
			f0[i], f1[i] = free[0], free[1]
			greatest[0], greatest[1] = max(greatest[0], a), max(greatest[1], 2-a)
			continue
		}
		f0[i] = LogRatio(p1[i], f0[i], &greatest[0])
		f1[i] = LogRatio(q1[i], f1[i], &greatest[1])
	}
	if h.Delta > 0 {
		tax := math.Log1p(h.Delta * max(0, (greatest[0]+greatest[1])/2-1))
		for i := range f0 {
			f0[i] -= tax
			f1[i] -= tax
		}
	}
}

// eventFactors is the bet on one event in one direction at any delta, with the alternative
// p1 - delta = e^(epsilon+excess) q1 on the given mass p1+q1.
func (h Null) eventFactors(toward int, mass, excess float64) Factors {
	var f Factors
	if mass <= h.Delta {
		return f
	}
	q1 := (mass - h.Delta) / (1 + h.Ratio*math.Exp(excess))
	p1 := mass - q1
	if p1 > .999 {
		p1 = .999
		q1 = (p1 - h.Delta) / (h.Ratio * math.Exp(excess))
	}
	p, q, ok := ProjectEvent(p1, q1, h.Ratio, h.Delta, 1, 1)
	if !ok || !(q1 > 0) {
		return f
	}
	heavy, light := 0, 1
	if toward == TowardD1 {
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

// Ruin is the logarithm of the factor of an outcome that the alternative rules out. It is not minus infinity, because
// minus infinity times a count of 0 is NaN.
const Ruin = -700

// LogRatio returns ln(alternative/projection), and keeps the greatest ratio seen.
func LogRatio(alternative, projection float64, greatest *float64) float64 {
	r := alternative / projection
	if !(r > 0) {
		return Ruin
	}
	*greatest = max(*greatest, r)
	return max(math.Log(r), Ruin)
}
