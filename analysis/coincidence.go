package analysis

import (
	"math"
	"strconv"
)

// resolution is how finely a slot's numbers are given: the decimals, the significant decimal digits, the significant
// bits and the lowest bit that any of them uses.
type resolution struct {
	decimals, digits, bits int
	lowest                 float64
	spread                 float64 // distance of the quartiles
}

// maxResolutionPairs are looked at to find a resolution.
const maxResolutionPairs = 128

// resolutionOf looks at a slot's kept values.
func resolutionOf(s *series) (r resolution, values []float64) {
	r.lowest = 1100
	p := newPortion(len(s.past[0]), maxResolutionPairs)
	for _, past := range s.past {
		for k := range p.n {
			x := past[p.at(k)]
			if !isNumber(x) {
				continue
			}
			values = append(values, x)
			decimals, digits := decimalsOf(x)
			r.decimals, r.digits = max(r.decimals, decimals), max(r.digits, digits)
			r.bits, r.lowest = max(r.bits, entropyBits(x)), min(r.lowest, lowestBit(x))
		}
	}
	_, lo, hi, _ := middle(s.binner.edges)
	r.spread = hi - lo
	return r, values
}

// decimalsOf returns the digits after the point, negative for multiples of ten, and the significant digits of the
// shortest decimal that reads back as x. 0 has none of either.
func decimalsOf(x float64) (decimals, digits int) {
	if x == 0 {
		return math.MinInt32, 0
	}
	var buf [32]byte
	b := strconv.AppendFloat(buf[:0], math.Abs(x), 'e', -1, 64) // d.ddde±dd
	digits = 0
	exponent := 0
	for i, c := range b {
		if c == 'e' {
			exponent, _ = strconv.Atoi(string(b[i+1:]))
			break
		}
		if c != '.' {
			digits++
		}
	}
	return digits - 1 - exponent, digits
}

// step returns the distance from x to the next number that could have come instead: the coarsest that the decimals, the
// digits, the bits or the lowest bit allow.
func (r *resolution) step(x float64) float64 {
	if x == 0 {
		return max(math.Pow(10, -float64(r.decimals)), math.Ldexp(1, int(r.lowest)))
	}
	_, e := math.Frexp(x)
	decades := math.Floor(math.Log10(math.Abs(x)))
	return max(
		math.Pow(10, -float64(r.decimals)), math.Pow(10, decades+1-float64(r.digits)),
		math.Ldexp(1, e-r.bits), math.Ldexp(1, int(r.lowest)),
	)
}

// coincidence bounds the probability that two fresh answers are exactly equal, in the slot that makes it least: the step
// times the density, taken as at most 1/spread between the quartiles (a Laplace law has 0.35/spread on average, a
// Gaussian one 0.38, a uniform one 0.5). It is 1 where no slot varies.
func (a *Audit) coincidence() float64 {
	least := 1.0
	for _, s := range a.slots[:min(len(a.slots), maxFractionSlots)] {
		r, values := resolutionOf(s)
		if !(r.spread > 0) || len(values) < 2 {
			continue
		}
		sum := 0.0
		for _, x := range values {
			sum += min(r.step(x)/r.spread, 1)
		}
		least = min(least, sum/float64(len(values)))
	}
	return least
}

// repeatsTooOften reports whether more results of a world repeat an earlier one exactly than their resolution makes
// likely: more than a Poisson number of the expected mean is with a probability of about e^-15.
func (a *Audit) repeatsTooOften(world int) bool {
	n := a.echoes[world]
	if n == 0 {
		return false
	}
	p, pairs := a.coincidence(), float64(a.pairs)
	mean := min(pairs*pairs/2*p, pairs)
	// Chernoff: P(N >= n) <= exp(-(n ln(n/mean) - n + mean)).
	k := float64(n)
	return k > mean && k*math.Log(k/mean)-k+mean > 15
}
