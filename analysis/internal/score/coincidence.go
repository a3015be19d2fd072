package score

import (
	"math"
	"slices"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// resolution is how finely a slot's numbers are given: the decimals and the significant decimal digits that nine in ten
// of them have at most, and the significant bits and the lowest bit that any of them uses. A sum of two decimals has the
// digits of its rounding now and then: 50 + 4.02 is 54.019999999999996.
type resolution struct {
	decimals, digits, bits int
	lowest                 float64
	lattice                float64 // all values are a whole number of these apart; 0 where none is known
	spread                 float64 // distance of the quartiles: of both worlds, or of this one if that is less and not 0
}

// maxResolutionPairs is the number of pairs from which a resolution is found.
const maxResolutionPairs = 128

// resolutionOf returns the resolution of a slot's kept values of one world, and the values.
func resolutionOf(s *Series, world int) (r resolution, values []float64) {
	r.lowest = 1100
	p := PortionOf(len(s.Past[world]), maxResolutionPairs)
	var decimals, digits []int
	for k := range p.N {
		x := s.Past[world][p.At(k)]
		if !code.IsNumber(x) {
			continue
		}
		values = append(values, x)
		if x != 0 {
			m, n := decimalsOf(x)
			decimals, digits = append(decimals, m), append(digits, n)
		}
		r.bits, r.lowest = max(r.bits, code.SignificantBits(x)), min(r.lowest, code.LowestBit(x))
	}
	r.decimals, r.digits = max(ninthDecile(decimals), 0), ninthDecile(digits)
	r.lattice = max(latticeOf(values), fractionOf(values, r.rounding(values)))
	_, lo, hi, _ := middle(s.Binner.Edges)
	r.spread = min(hi-lo, math.MaxFloat64)
	if own := quartileDistance(values); own > 0 { // worlds may be far apart
		r.spread = min(r.spread, own)
	}
	return r, values
}

// rounding bounds the difference between a value and the number that its digits round.
func (r *resolution) rounding(values []float64) float64 {
	most := 0.0
	for _, x := range values {
		if x != 0 {
			decades := math.Floor(math.Log10(math.Abs(x)))
			most = max(most, math.Pow(10, decades+1-float64(r.digits)), 8*0x1p-52*math.Abs(x))
		}
	}
	return min(max(most, math.Pow(10, -float64(r.decimals))), math.MaxFloat64) / 2
}

// ninthDecile returns the number that nine in ten do not exceed; 0 of none.
func ninthDecile(n []int) int {
	if len(n) == 0 {
		return 0
	}
	slices.Sort(n)
	return n[len(n)*9/10]
}

func quartileDistance(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return min(sorted[3*len(sorted)/4]-sorted[len(sorted)/4], math.MaxFloat64)
}

// latticeOf returns the greatest distance of which those of all values are multiples, to within rounding, else 0: rounded
// noise on a value that is not rounded, or rounded answers that a query divides by 6. It is Euclid's algorithm on
// distances of neighbouring values, the least ones first: so it multiplies their rounding by less than roundings.
func latticeOf(values []float64) float64 {
	const roundings = 1 << 16
	sorted := slices.Compact(slices.Sorted(slices.Values(values)))
	if len(sorted) < 2 {
		return 0
	}
	first, last := sorted[0], sorted[len(sorted)-1]
	rounding := 4 * 0x1p-52 * (math.Abs(first) + math.Abs(last))
	distances := make([]float64, len(sorted)-1)
	for i := range distances {
		distances[i] = sorted[i+1] - sorted[i]
	}
	slices.Sort(distances)
	common := 0.0
	for _, d := range distances {
		a, b := d, common
		for b > roundings*rounding {
			a, b = b, math.Abs(a-math.Round(a/b)*b)
		}
		common = a
	}
	if common <= roundings*rounding {
		return 0
	}
	all := last - first
	lattice := all / math.Round(all/common) // more exactly
	for _, d := range distances {
		if off := math.Abs(d - math.Round(d/lattice)*lattice); !(off <= rounding) {
			return 0
		}
	}
	return lattice
}

// fractionOf returns the step of values that are whole multiples of 1/n apart, for an n that is not known, to within
// rounding: whole numbers that a query divides by an exact count, and rounds. It returns 0 if there is no n whose step is
// much larger than the rounding. All denominators are tried: where the digits are few, the convergents of the continued
// fraction of a value need not contain its own. Numbers with all their digits are left to latticeOf.
func fractionOf(values []float64, rounding float64) float64 {
	const (
		fewest = 24      // a value fits by chance with probability 1/4 at most
		most   = 1 << 16 // denominator
	)
	differ, scale := 0, 0.0
	for _, x := range values {
		differ += code.Bit(x != values[0])
		scale = max(scale, math.Abs(x))
	}
	if differ < fewest || !(rounding > 64*0x1p-52*scale) {
		return 0
	}
	n, last := 1.0, min(most, 1/(16*rounding))
	for ; n <= last; n++ {
		if k := multiples(values, n, 2*rounding*n); k > 0 {
			return k / n
		}
	}
	return 0
}

// multiples returns the greatest common divisor of the distances of values from the first, in units of 1/n, if all of
// them are whole to within an error; 0 if one is not.
func multiples(values []float64, n, most float64) (common float64) {
	for _, x := range values {
		d := math.Abs(x-values[0]) * n
		k := math.Round(d)
		if math.Abs(d-k) > most {
			return 0
		}
		for k != 0 {
			common, k = k, math.Mod(common, k)
		}
	}
	return common
}

// decimalsOf returns the digits after the point, negative for multiples of ten, and the significant digits of the
// shortest decimal that reads back as x, which is not 0.
func decimalsOf(x float64) (decimals, digits int) {
	var buf [32]byte
	b := strconv.AppendFloat(buf[:0], math.Abs(x), 'e', -1, 64) // d.ddde±dd
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
		return max(math.Pow(10, -float64(r.decimals)), math.Ldexp(1, int(r.lowest)), r.lattice)
	}
	_, e := math.Frexp(x)
	decades := math.Floor(math.Log10(math.Abs(x)))
	return max(
		math.Pow(10, -float64(r.decimals)), math.Pow(10, decades+1-float64(r.digits)),
		math.Ldexp(1, e-r.bits), math.Ldexp(1, int(r.lowest)), r.lattice,
	)
}

// coincidence bounds the probability that two fresh answers of a world are exactly equal, in the slot that makes it
// least: the step times the density, taken as at most 1/spread between the quartiles (a Laplace law has 0.35/spread on
// average, a Gaussian one 0.38, a uniform one 0.5). It is 1 where no slot varies.
func (in *Input) coincidence(world int) float64 {
	least := 1.0
	for _, s := range in.Slots[:min(len(in.Slots), mostDivided)] {
		r, values := resolutionOf(s, world)
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

// boundAtoms is the number of values that may repeat because answers are cut off at a bound.
const boundAtoms = 2

// sharedEpsilon is a greater loss than that of two worlds whose answers are compared as if they were close.
const sharedEpsilon = 3

// RepeatsTooOften reports whether more different results of a world come more than once in a number of pairs than their
// resolution makes likely: more than a Poisson number of the expected mean is with a probability of about e^-15.
//
// Values with mass repeat as well. Those of both worlds do not count: a cache or a stock of noise has others for each
// world. Where there are such values, the rarest of them have come in one world alone so far: as many others are
// expected, and two that may be bounds.
//
// The resolution does not show every step: the roots of rounded numbers have all their bits. But their answers come in
// both worlds as well, n^2 times the sum of p0 p1 of them, and in a world more than once n^2/2 times the sum of p^2: of
// laws within epsilon at most e^epsilon/2 times as many. That is expected, too, for an epsilon of sharedEpsilon.
func (in *Input) RepeatsTooOften(world, pairs int) bool {
	k := float64(in.Repeats.Alone[world] - in.Repeats.Common - boundAtoms)
	if k <= 0 {
		return false
	}
	p, n := in.coincidence(world), float64(pairs)
	mean := min(n*n/2*p, n)/float64(uint64(1)<<in.Repeats.thinned) + math.Exp(sharedEpsilon)/2*float64(in.Repeats.Shared)
	// Chernoff: P(N >= k) <= exp(-(k ln(k/mean) - k + mean)).
	return k > mean && k*math.Log(k/mean)-k+mean > 15
}
