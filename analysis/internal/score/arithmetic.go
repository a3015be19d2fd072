package score

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// This file finds what a query does to a number after noise was added to it in floating point, so that the lowest bits
// can be read as they were before: the answer divided by 6, say, has other ones.

// arithmetic is what a query does to a number, in up to two steps. The zero value does nothing.
type arithmetic struct {
	last, before operation
}

// operation divides a number by a public constant, multiplies it, or adds to it. The zero value does nothing.
type operation struct {
	step arithmeticStep
	by   float64
}

type arithmeticStep uint8

const (
	nothing arithmeticStep = iota
	division
	multiplication
	addition
	arithmeticSteps // their number
)

// single are the operations that are looked for whatever the query says, nothing first. Powers of two move all binary
// places alike, so that one factor stands for all its multiples by them.
var single = listOperations()

// Limits of the search.
const (
	mostFactor           = 31  // of odd whole numbers
	mostHundredths       = 199 // of a factor
	mostTenths           = 19  // of a factor
	mostAdded            = 99  // hundredths
	arithmeticPairs      = 256 // kept pairs that are used
	leastArithmetic      = 9   // nats of evidence, also beyond those for nothing: chance gives one of all single ones 6
	leastPair            = 12  // the same for two steps
	mostConstants        = 6   // of the query that are used
	arithmeticExceptions = .05 // of the numbers, since the centre is not known exactly
	mostByChance         = .9  // of numbers that would fit by chance, where a number is evidence
)

func listOperations() []operation {
	list := []operation{{}}
	factor := func(x float64) {
		list = append(list, operation{division, x}, operation{multiplication, x})
	}
	for n := 3.; n <= mostFactor; n += 2 {
		factor(n)
	}
	for _, n := range []float64{125, 225, 365} { // of 1000, 3600
		factor(n)
	}
	for n := 1; n <= mostHundredths; n += 2 {
		if n%25 != 0 {
			factor(float64(n) / 100)
		}
	}
	for n := 1; n <= mostTenths; n += 2 {
		if n%5 != 0 {
			factor(float64(n) / 10)
		}
	}
	for n := 1; n <= mostAdded; n++ {
		if n%25 != 0 {
			list = append(list, operation{addition, float64(n) / 100}, operation{addition, -float64(n) / 100})
		}
	}
	return list
}

// operationsWith lists what a query can do with the constants that it has.
func operationsWith(constants []float64) (list []operation) {
	for _, x := range constants[:min(len(constants), mostConstants)] {
		if m, _ := math.Frexp(x); m != .5 { // a factor that is a power of two leaves the bits as they are
			list = append(list, operation{division, x}, operation{multiplication, x})
		}
		list = append(list, operation{addition, x}, operation{addition, -x})
	}
	return list
}

// undo returns a number to which the operation gives y, as a sum of two, how far others may lie from it, since y was
// rounded, and by what a distance between values of y is multiplied.
func (o operation) undo(y float64) (x, rest, within, scale float64) {
	half := lastPlace(y) / 2
	switch o.step {
	case division:
		x = y * o.by
		return x, math.FMA(y, o.by, -x), half * o.by, o.by
	case multiplication:
		x = y / o.by
		return x, math.FMA(-x, o.by, y) / o.by, half / o.by, 1 / o.by
	case addition:
		x = y - o.by
		back := x - y
		return x, (y - (x - back)) - (o.by + back), half, 1
	}
	return y, 0, 0, 1
}

// undo returns a number to which the arithmetic gives y, as a sum of two, and how far others may lie from it.
func (a arithmetic) undo(y float64) (x, rest, within float64) {
	x, rest, within, _ = a.last.undo(y)
	if a.before.step == nothing {
		return x, rest, within
	}
	x, more, rounded, scale := a.before.undo(x)
	return x, more + rest*scale, (rounded + within*scale) * (1 + 0x1p-40) // a little more: these are rounded, too
}

// lastPlace is the value of the last place of a number with 53 bits, 0 if it is too small for one.
func lastPlace(x float64) float64 {
	const exponent = 0x7FF << 52
	return math.Float64frombits(math.Float64bits(x)&exponent) * 0x1p-52
}

// nearMultiple reports whether a multiple of a unit, a power of two, lies within a distance of x + rest.
func nearMultiple(x, rest, within, unit float64) bool {
	off := x - math.RoundToEven(x/unit)*unit + rest
	return math.Abs(off-math.RoundToEven(off/unit)*unit) <= within
}

// tooFine is by how many binary places a number to which the arithmetic gives y is finer than the last place of its
// distance from a center: the coarsest of these numbers.
func (a arithmetic) tooFine(y, center float64) (places int) {
	x, rest, within := a.undo(y)
	z := x - center
	if z == 0 || x == 0 || math.IsNaN(z) || math.IsInf(z, 0) {
		return 0
	}
	for unit := lastPlace(z); places < deepest && unit > 0 && !nearMultiple(x, rest, within, unit); places++ {
		unit /= 2
	}
	return places
}

// evidence is the logarithm of the likelihood ratio of two explanations of numbers around the medians of the worlds:
// that the arithmetic gives them, of numbers no finer than the last place of their distances from the median; and that
// their bits are random. Both worlds count together, so that the choice shows nothing of the difference between them.
func (a arithmetic) evidence(values [2][]float64, medians [2]float64) float64 {
	nats, ratio := 0., 1. // the ratio is nats + ln(ratio): a logarithm of each number would take most of the time
	for w := range values {
		center, _, _ := a.undo(medians[w])
		for _, y := range values[w] {
			x, rest, within := a.undo(y)
			unit, fit := lastPlace(x-center), 2*within
			if a.last.step == nothing {
				fit = lastPlace(x)
			}
			if fit /= unit; !(fit > 0 && fit <= mostByChance) || unit <= lastPlace(x) {
				continue
			}
			if nearMultiple(x, rest, within, unit) {
				ratio *= (1 - arithmeticExceptions) / fit
			} else {
				ratio *= arithmeticExceptions / (1 - fit)
			}
			if ratio > 1e100 || ratio < 1e-100 {
				nats, ratio = nats+math.Log(ratio), 1
			}
		}
	}
	return nats + math.Log(ratio)
}

// findArithmetic returns the arithmetic for which the past of a slot gives the most evidence, nothing if it is little: a
// single step, or two with constants of the query.
func (s *Series) findArithmetic(constants []float64) (best arithmetic) {
	p := PortionOf(len(s.Past[0]), arithmeticPairs)
	var values [2][]float64
	var medians [2]float64
	for w, past := range s.Past {
		for k := range p.N {
			if c := past[p.At(k)]; code.IsNumber(c) && c != 0 {
				values[w] = append(values[w], c)
			}
		}
		if len(values[w]) == 0 {
			return best
		}
		medians[w] = slices.Sorted(slices.Values(values[w]))[len(values[w])/2]
		// A number that is nearer to the median than to 0 is finer than the last place of their distance under every
		// arithmetic, and so is no evidence.
		values[w] = slices.DeleteFunc(values[w], func(y float64) bool { return math.Abs(y-medians[w]) < math.Abs(y)*(1-1e-6) })
	}
	least := max(best.evidence(values, medians), 0)
	most, public := least+leastArithmetic, operationsWith(constants)
	for _, last := range slices.Concat(single[1:], public) {
		if nats := (arithmetic{last: last}).evidence(values, medians); nats > most {
			best, most = arithmetic{last: last}, nats
		}
	}
	for _, last := range public {
		for _, before := range public {
			a := arithmetic{last, before}
			if nats := a.evidence(values, medians); last.by != before.by && nats > most && nats > least+leastPair {
				best, most = a, nats
			}
		}
	}
	return best
}

// words says before what the numbers were as they are read, "" for nothing.
func (a arithmetic) words() string {
	if a.before.step != nothing {
		return " before the last two steps of arithmetic"
	}
	return [arithmeticSteps]string{division: " before the last division", multiplication: " before the last multiplication", addition: " before the last addition"}[a.last.step]
}

func (a *arithmetic) state(c *state.Codec) {
	for _, o := range []*operation{&a.last, &a.before} {
		state.Num(c, &o.step)
		c.Float(&o.by)
		c.Check(o.step < arithmeticSteps)
	}
}
