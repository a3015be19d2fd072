package power

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is noise in floating point of which the query makes something else before it answers.

// then is what a query does after the noise.
type then struct {
	name string
	do   func(y float64) float64
}

// inThousandths is two steps of arithmetic.
func inThousandths(y float64) float64 { return y / 1000 * 37 }

func thens() []then {
	return []then{
		{"divided by 6", func(y float64) float64 { return y / 6 }},
		{"times 1.1", func(y float64) float64 { return y * 1.1 }},
		{"plus 0.1", func(y float64) float64 { return y + .1 }},
	}
}

// naiveThen is naive Laplace noise of scale 1 around from or from + 1, and then something public.
func naiveThen(from float64, do func(y float64) float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(from, from+1, func(r *rand.Rand, x float64) analysis.Outcome { return value(do(x + naiveLaplace(r, 1))) })
}

// wrongArithmetic leaks more than it claims. An answer around 3 or 4 shows in 3 % of the trials which of both it is.
func wrongArithmetic() []family {
	same := func(y float64) float64 { return y }
	sum := func(name string, derived int, do func(y float64) float64) family {
		return family{name: "naive floating-point Laplace around 3 and 4" + name + ", claim 1", claim: only(1), budget: 5000, derived: derived, draw: naiveThen(3, do), laws: sampled(naiveThen(3, same), 1<<18, 1, naiveRatio(3))}
	}
	fs := []family{sum("", 638, same)}
	for _, t := range thens() {
		fs = append(fs, sum(", "+t.name, 956, t.do))
	}
	return append(fs, family{
		name: "naive floating-point Laplace around 0 and 1, in thousandths, times 37, claim 1", claim: only(1), budget: 5000, numbers: []float64{37, 1000},
		draw: naiveThen(0, inThousandths),
		laws: sampled(naiveThen(0, inThousandths), 1<<15, 1, naiveThenRatio(0, 8, inThousandths, func(y float64) float64 { return y / 37 * 1000 })),
	})
}

// coarseLaplace is Laplace noise of scale 1 from a uniform number with so many bits.
func coarseLaplace(r *rand.Rand, bits int) float64 {
	u := (float64(r.Uint64()>>(64-bits))+.5)*math.Ldexp(1, 1-bits) - 1
	return -math.Copysign(math.Log(1-math.Abs(u)), u)
}

// wrongResolution leaks through the numbers that noise can give, which have all their bits: whoever knows the generator
// sees which centre gives an answer.
func wrongResolution() (fs []family) {
	for _, bits := range [...]int{24, 31} {
		fs = append(fs, family{
			name: "Laplace from uniform numbers of " + strconv.Itoa(bits) + " bits, claim 1", claim: only(1), budget: 20_000, derived: 638, laws: disjoint,
			draw: each(3., 4., func(r *rand.Rand, x float64) analysis.Outcome { return value(x + coarseLaplace(r, bits)) }),
		})
	}
	naive := naiveThen(3.1, func(y float64) float64 { return y })
	sigma := .8 * gaussSigma(1, 1e-5)
	return append(fs, family{
		name: "naive floating-point Laplace around 3.1 and 4.1, claim 1", claim: only(1), budget: 20_000, derived: 638, draw: naive,
		laws: sampled(naive, 1<<18, 1, naiveRatio(3.1)),
	}, family{
		name: "Gaussian for (1, 1e-5), 0.8 of its scale", claim: analysis.Claim{Epsilon: 1, Delta: 1e-5}, budget: 20_000,
		draw: each(0., 1., func(r *rand.Rand, x float64) analysis.Outcome { return value(x + gauss(r, sigma)) }),
		laws: func() (p, q []float64) { return analysis.Cut(gaussLaw(0, sigma), gaussLaw(1, sigma), -20, 21, 800) },
	})
}

// rightArithmetic does the same with noise and sums on a grid, or in hundredths.
func rightArithmetic() (fs []family) {
	for _, t := range thens() {
		fs = append(fs, family{name: "Laplace 1, " + t.name, claim: only(1), draw: each(3.0, 4.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(t.do(x + lap(r, 1))) })})
	}
	fs = append(fs, family{
		name: "Laplace 1, in thousandths, times 37", claim: only(1), numbers: []float64{37, 1000},
		draw: each(3.0, 4.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(inThousandths(x + lap(r, 1))) }),
	})
	return append(fs, family{name: "Laplace 1 in hundredths, times 1.1", claim: only(1), draw: each(3.0, 4.0, func(r *rand.Rand, x float64) analysis.Outcome {
		return value(math.Round(100*(x+lap(r, 1))) / 100 * 1.1)
	})})
}
