package power

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
)

// family is a mechanism on two neighbouring inputs, audited against a claim.
type family struct {
	name    string
	claim   analysis.Claim
	budget  int
	derived int // the median that docs/statistics.md derives for this way of learning, if it is above the goal; 0 = none
	draw    func(r *rand.Rand) (d0, d1 analysis.Outcome)
	numbers []float64               // with which the query calculates after the noise
	laws    func() (p, q []float64) // of what is sufficient; nil for right mechanisms
}

func only(epsilon float64) analysis.Claim { return analysis.Claim{Epsilon: epsilon} }

// each draws both worlds with one function of the input.
func each[T any](d0, d1 T, draw func(r *rand.Rand, in T) analysis.Outcome) func(r *rand.Rand) (a, b analysis.Outcome) {
	return func(r *rand.Rand) (a, b analysis.Outcome) { return draw(r, d0), draw(r, d1) }
}

func laplaceShift(epsilon float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + lap(r, 1/epsilon)) })
}

// nonDP is the mean of D = [0] and D' = [0, 1] with noise of a scale that tells their sizes apart (Gonzalez et al.
// 2025).
func nonDP(claim analysis.Claim, noise func(*rand.Rand, float64) float64, l func(center, scale float64) law) family {
	b0, b1 := 2/claim.Epsilon, 1/claim.Epsilon
	return family{
		claim: claim, budget: 5000,
		draw: func(r *rand.Rand) (a, b analysis.Outcome) { return value(noise(r, b0)), value(.5 + noise(r, b1)) },
		laws: func() (p, q []float64) { return analysis.Cut(l(0, b0), l(.5, b1), -12*b0, 12*b0, 1000) },
	}
}

func named(f family, name string) family {
	f.name = name
	return f
}

// wrong are mechanisms that leak more than they claim.
func wrong() []family {
	fs := rareWrong()
	for _, c := range []struct {
		claim, true float64
		budget      int
	}{
		{1, 4, 200},
		{1, 2, 1000},
		{1, 1.5, 3000},
		{1, 1.3, 5000},
		{1, 1.2, 10_000},
		{1, 1.1, 10_000},
		{.1, .5, 3000},
		{2, 3, 3000},
		{4, 5, 20_000},
	} {
		fs = append(fs, family{
			name: fmt.Sprintf("Laplace, claim %g, true %g", c.claim, c.true), claim: only(c.claim), budget: c.budget,
			draw: laplaceShift(c.true), laws: laplaceShiftLaws(c.true),
		})
	}
	for _, e := range []float64{.01, .1, .5, 1} {
		fs = append(fs,
			named(nonDP(only(e), lap, laplaceLaw), fmt.Sprintf("NonDPLaplace1, claim %g", e)),
			named(nonDP(analysis.Claim{Epsilon: e, Delta: 1e-5}, gauss, gaussLaw), fmt.Sprintf("NonDPGaussian1, claim %g, delta 1e-5", e)))
	}
	sigma := gaussSigma(1, 1e-5)
	oneGood, oneBad := candidates()
	svt3, svt4 := sparse{t: 1, b0: 2, b1: 2, numeric: true}, sparse{t: 1, b0: 4, b1: 4. / 3}
	svt5, svt6 := sparse{t: 1, b0: 2, endless: true}, sparse{t: .5, b0: 2, b1: 2, endless: true}
	naive := naiveThen(0, func(y float64) float64 { return y })
	sharedInPart := each(0, 1, func(r *rand.Rand, moved int) analysis.Outcome {
		return sharedNoise(r, 10, moved, lap(r, 1), .1)
	})
	fs = slices.Concat(fs, smallWrong(), wrongTexts(), wrongWritings(), wrongForms(), wrongArithmetic(), wrongResolution(), []family{
		{
			name: "Gaussian for (1, 1e-5), noise halved", claim: analysis.Claim{Epsilon: 1, Delta: 1e-5}, budget: 10_000,
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + gauss(r, sigma/2)) }),
			laws: func() ([]float64, []float64) {
				return analysis.Cut(gaussLaw(0, sigma/2), gaussLaw(1, sigma/2), -12, 13, 800)
			},
		},
		{
			name: "two-sided geometric, claim 1, true 1.5", claim: only(1), budget: 5000, laws: geometricLaws(1.5),
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + geometric(r, 1.5)) }),
		},
		{
			name: "4-ary response, claim 1, true 1.5", claim: only(1), budget: 5000, laws: responseLaws(4, pOf(4, 1.5)),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return index(respond(r, x, 4, pOf(4, 1.5))) }),
		},
		{
			name: "noisy max that gives the value away (RNM3), claim 1, true 2.5", claim: only(1), budget: 20_000,
			laws: func() ([]float64, []float64) {
				return analysis.Cut(maxLaw(laplaceLaw(1, 2), 5), maxLaw(laplaceLaw(2, 2), 5), -50, 60, 11_000)
			},
			draw: each(1.0, 2.0, func(r *rand.Rand, x float64) analysis.Outcome {
				_, top := noisyMax([]float64{x, x, x, x, x}, func() float64 { return lap(r, 2) })
				return value(top)
			}),
		},
		{
			name: "exponential mechanism without the factor 2, claim 1, true 1.8", claim: only(1), budget: 5000,
			laws: func() ([]float64, []float64) { return scores(2, oneGood), scores(2, oneBad) },
			draw: each(oneGood, oneBad, func(r *rand.Rand, u []float64) analysis.Outcome {
				return index(choose(r, scores(2, u)))
			}),
		},
		{
			name: "sparse vector, answers given away (SVT3), claim 1", claim: only(1), budget: 20_000, derived: 7854,
			draw: each(ten(1, 1), ten(2, 0), svt3.run),
			laws: lawsOf(ten(1, 1), ten(2, 0), svt3.firstAnswer),
		},
		{
			name: "sparse vector, little noise on queries (SVT4), claim 1, true 1.75", claim: only(1), budget: 20_000,
			draw: each(ten(0, 1), ten(1, 0), svt4.run), laws: lawsOf(ten(0, 1), ten(1, 0), svt4.firstAbove),
		},
		{
			name: "sparse vector without noise on queries (SVT5), claim 1", claim: only(1), budget: 5000,
			draw: each(ten(2, 0), ten(1, 1), svt5.run), laws: lawsOf(ten(2, 0), ten(1, 1), svt5.allAbove),
		},
		{
			name: "sparse vector without cut-off (SVT6), claim 1", claim: only(1), budget: 20_000, derived: 538,
			draw: each(ten(0, 1), ten(1, 0), svt6.run), laws: lawsOf(ten(0, 1), ten(1, 0), svt6.allAbove),
		},
		{
			name: "noisy histogram, 10 groups of 0.3 each, claim 1, true 3", claim: only(1), budget: 5000,
			draw: histogram(10, 10, .3), laws: histogramLaws(10, .3, 50),
		},
		{
			name: "noisy histogram, 200 groups of a third each, claim 1", claim: only(1), budget: 2000,
			draw: histogram(200, 200, 1./3), laws: histogramLaws(200, 1./3, 50),
		},
		{
			name: "noisy histogram, 1 bad group of 200 (true 2), claim 1", claim: only(1), budget: 2000,
			draw: histogram(200, 1, 2), laws: laplaceShiftLaws(2),
		},
		{
			name: "noise truncated at 3 scales, claim 1", claim: only(1), budget: 5000,
			laws: func() ([]float64, []float64) {
				return analysis.Cut(truncatedLaw(laplaceLaw(0, 1), -3, 3), truncatedLaw(laplaceLaw(1, 1), -2, 4), -3, 4, 1400)
			},
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome {
				for {
					if z := lap(r, 1); math.Abs(z) <= 3 {
						return value(x + z)
					}
				}
			}),
		},
		{
			name: "noise rounded before it is added, claim 1", claim: only(1), budget: 2000, laws: disjoint,
			draw: each(0.0, .5, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + math.Round(lap(r, .5)*8)/8 + x*1e-3) }),
		},
		{
			name: "naive floating-point Laplace, claim 1", claim: only(1), budget: 2000, derived: 88,
			draw: naive, laws: sampled(naive, 1<<18, 1, naiveRatio(0)),
		},
		{
			name: "one noise for two columns, claim 1", claim: only(1), budget: 2000, laws: disjoint,
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { z := lap(r, 1); return columns(10+z+x, 20+z) }),
		},
		{
			name: "sum and count share their noise, claim 1", claim: only(1), budget: 2000, laws: disjoint,
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { z := lap(r, 1); return columns(1000+10*z+3*x, 20+z+x) }),
		},
		{
			name: "one noise for 200 groups, one of them moves, claim 1", claim: only(1), budget: 2000, laws: disjoint,
			draw: each(0, 1, func(r *rand.Rand, moved int) analysis.Outcome { return sharedNoise(r, 200, moved, lap(r, 1), 0) }),
		},
		{
			name: "noise shared in part by 10 groups, one of them moves, claim 1", claim: only(1), budget: 2000,
			draw: sharedInPart, laws: sampled(sharedInPart, 1<<18, 1, sharedRatio(.1)),
		},
		{
			name: "integer noise leaves the fraction, claim 1", claim: only(1), budget: 2000, derived: 66, laws: disjoint,
			draw: each(10.25, 11.75, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + geometric(r, .05)) }),
		},
		{name: "row count 55 % against 45 %, 100 groups, claim 1", claim: only(1), budget: 2000, draw: rowCount, laws: binomialLaws(100, .55, .45)},
	})
	return append(fs, jointly()...)
}

// right are mechanisms at their tight claim: every alarm is false.
func right() []family {
	return slices.Concat(rareRight(), jointlyRight(), rightTexts(), rightForms(), rightArithmetic(), rightWritings(), plainRight())
}

// plainRight are right mechanisms whose answers are a number, a category or a few numbers.
func plainRight() []family {
	sigma := gaussSigma(1, 1e-5)
	oneGood, oneBad := candidates()
	return []family{
		{name: "Laplace 1", claim: only(1), draw: laplaceShift(1)},
		{name: "Laplace 0.1", claim: only(.1), draw: laplaceShift(.1)},
		{
			name: "Gaussian (1, 1e-5)", claim: analysis.Claim{Epsilon: 1, Delta: 1e-5},
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + gauss(r, sigma)) }),
		},
		{
			name: "Gaussian sigma 1 at epsilon 1", claim: analysis.Claim{Epsilon: 1, Delta: gaussDelta(1, 1)},
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + gauss(r, 1)) }),
		},
		{
			name: "two-sided geometric 1", claim: only(1),
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + geometric(r, 1)) }),
		},
		{
			name: "binary response 1", claim: only(1),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return index(respond(r, x, 2, pOf(2, 1))) }),
		},
		{
			name: "4-ary response 1", claim: only(1),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return index(respond(r, x, 4, pOf(4, 1))) }),
		},
		{
			name: "noisy max 1", claim: only(1),
			draw: each([]float64{1, 1, 1, 1, 1}, []float64{0, 2, 2, 2, 2}, func(r *rand.Rand, x []float64) analysis.Outcome {
				at, _ := noisyMax(x, func() float64 { return lap(r, 2) })
				return index(at)
			}),
		},
		{name: "sparse vector 1 (SVT1)", claim: only(1), draw: each(ten(0, 1), ten(1, 0), sparse{t: .5, b0: 2, b1: 4}.run)},
		{
			name: "exponential mechanism 1 (11 candidates: true 0.91)", claim: only(1),
			draw: each(oneGood, oneBad, func(r *rand.Rand, u []float64) analysis.Outcome { return index(choose(r, scores(1, u))) }),
		},
		{
			name: "one noise for 3 columns that move alike 1", claim: only(1),
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { z := x + lap(r, 1); return columns(z, 20+z, 7-10*z) }),
		},
		{
			name: "noise shared in part by 10 groups that move alike 1", claim: only(1),
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return sharedNoise(r, 10, 0, x+lap(r, 1), .2) }),
		},
		{name: "noisy histogram 1, 10 groups", claim: only(1), draw: histogram(10, 10, .1)},
		{
			name: "Laplace 1 clipped and rounded", claim: only(1),
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome {
				return value(math.Round(min(max(x+lap(r, 1), -1), 2)*4) / 4)
			}),
		},
	}
}

func pOf(k int, epsilon float64) float64 {
	return math.Exp(epsilon) / (math.Exp(epsilon) + float64(k-1))
}

// ten is five times a, then five times b.
func ten(a, b float64) []float64 { return []float64{a, a, a, a, a, b, b, b, b, b} }

// candidates are the utilities of eleven candidates: of one and of all the others, which change by 1 in opposite
// directions.
func candidates() (oneGood, oneBad []float64) {
	oneGood, oneBad = make([]float64, 11), make([]float64, 11)
	oneGood[0] = 1
	for i := range oneBad[1:] {
		oneBad[i+1] = 1
	}
	return oneGood, oneBad
}

// scores are the exponential mechanism's probabilities, proportional to exp(epsilon u / 2).
func scores(epsilon float64, u []float64) []float64 {
	w, all := make([]float64, len(u)), 0.0
	for i := range u {
		w[i] = math.Exp(epsilon * u[i] / 2)
		all += w[i]
	}
	for i := range w {
		w[i] /= all
	}
	return w
}

// histogram has n groups, the first k of which differ by 1, with Laplace noise of scale 1/epsilon in each.
func histogram(n, k int, epsilon float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	x, y := make([]float64, n), make([]float64, n)
	for i := range k {
		y[i] = 1
	}
	return each(x, y, func(r *rand.Rand, in []float64) analysis.Outcome { return groups(noisyVector(r, in, 1/epsilon)) })
}

func rowCount(r *rand.Rand) (a, b analysis.Outcome) {
	some := func(p float64) analysis.Outcome {
		x := make([]float64, 100)
		for i := range x {
			if x[i] = lap(r, 1); r.Float64() > p {
				x[i] = math.NaN()
			}
		}
		return groups(x)
	}
	return some(.55), some(.45)
}
