package power

import (
	"math"
	"math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is leaks that few results show, or that only the shape of a law shows.

// sparseGroups is a GROUP BY of n keys, each there with probability p, with Laplace noise of scale 1; the first one's
// value is moved, and it is there with a probability of its own.
func sparseGroups(r *rand.Rand, n int, p, first, moved float64) analysis.Outcome {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = math.NaN()
		if r.Float64() < p {
			xs[i] = 100 + lap(r, 1)
		}
	}
	if xs[0] = math.NaN(); r.Float64() < first {
		xs[0] = 100 + moved + lap(r, 1)
	}
	return groups(xs)
}

// sometimes are the laws of something that is there with a probability and then has one of two laws.
func sometimes(p float64, laws func() (p, q []float64)) func() ([]float64, []float64) {
	return func() ([]float64, []float64) {
		x, y := laws()
		for i := range x {
			x[i], y[i] = p*x[i], p*y[i]
		}
		return append(x, 1-p), append(y, 1-p)
	}
}

// eventLaws are the laws of an outcome of the given probabilities, all else being equal.
func eventLaws(p, q float64) func() ([]float64, []float64) {
	return func() ([]float64, []float64) { return []float64{p, 1 - p}, []float64{q, 1 - q} }
}

// period is a number that leaks modulo .37 alone: noise of ten periods, and jitter over a part of a period around the
// phase.
func period(r *rand.Rand, phase, part float64) analysis.Outcome {
	return value(onGrid(.37 * (geometric(r, .1) + phase + part*(r.Float64()-.5))))
}

func clamped(r *rand.Rand, x float64) analysis.Outcome { return value(x + min(max(lap(r, 1), -3), 3)) }

func clampedLaws() (p, q []float64) {
	p, q = analysis.Cut(laplaceLaw(0, 1), laplaceLaw(1, 1), -3, 4, 1400)
	atoms := func(law []float64, from, to int) []float64 { // index i > 0 is the cell that ends at -3 + i/200
		var low, high float64
		for i := range law {
			if i <= from {
				low, law[i] = low+law[i], 0
			}
			if i > to {
				high, law[i] = high+law[i], 0
			}
		}
		return append(law, low, high)
	}
	p, q = atoms(p, 0, 1200), atoms(q, 200, 1400)
	return append(p, 0, 0), append(append(q[:len(q)-2:len(q)-2], 0, 0), q[len(q)-2:]...)
}

// skewed has mean 0, variance 1 and the third moment 2 or -2.
func skewed(r *rand.Rand, sign float64) analysis.Outcome {
	return value(100 + onGrid(sign*(r.ExpFloat64()-1)))
}

func skewedLaws() (p, q []float64) {
	return analysis.Cut(func(x float64) float64 { return 1 - math.Exp(-max(x+1, 0)) }, func(x float64) float64 { return math.Exp(-max(1-x, 0)) }, -12, 12, 2400)
}

// now returns one of two results, the first with a probability.
func now(r *rand.Rand, p float64, rare, common func() analysis.Outcome) analysis.Outcome {
	return oneOf(r, p, rare, common)()
}

// seldom are mechanisms whose results differ in something rare: a row, a text, an error.
func seldom(p, q float64) map[string]func(r *rand.Rand) (a, b analysis.Outcome) {
	same := func() analysis.Outcome { return word("none") }
	two := func(r *rand.Rand) []float64 { return []float64{100 + lap(r, 1), 50 + lap(r, 1)} }
	return map[string]func(r *rand.Rand) (a, b analysis.Outcome){
		"a row appears": each(p, q, func(r *rand.Rand, p float64) analysis.Outcome {
			return now(r, p, func() analysis.Outcome { return groups(append(two(r), 3+lap(r, 1))) }, func() analysis.Outcome { return groups(two(r)) })
		}),
		"a second row appears": each(p, q, func(r *rand.Rand, p float64) analysis.Outcome {
			return now(r, p, func() analysis.Outcome { return groups(two(r)) }, func() analysis.Outcome { return groups(two(r)[:1]) })
		}),
		"the only row appears": each(p, q, func(r *rand.Rand, p float64) analysis.Outcome {
			return now(r, p, func() analysis.Outcome { return value(lap(r, 1)) }, func() analysis.Outcome { return analysis.Outcome{Columns: value(0).Columns} })
		}),
		"a new text each time": each(p, q, func(r *rand.Rand, p float64) analysis.Outcome {
			return now(r, p, func() analysis.Outcome { return index(int(r.Uint64() >> 2)) }, same)
		}),
		"one text": each(p, q, func(r *rand.Rand, p float64) analysis.Outcome {
			return now(r, p, func() analysis.Outcome { return word("one") }, same)
		}),
		"an error": each(p, q, func(r *rand.Rand, p float64) analysis.Outcome {
			return now(r, p, func() analysis.Outcome { return analysis.Outcome{SQLState: "22012"} }, func() analysis.Outcome { return value(lap(r, 1)) })
		}),
	}
}

var seldomNames = [...]string{"a row appears", "a second row appears", "the only row appears", "a new text each time", "one text", "an error"}

// rareWrong are leaks that are rare or lie in the shape of a law.
func rareWrong() []family {
	fs := []family{
		{
			name: "100 keys at 5 %, one of them moved by 50 scales, claim 1", claim: only(1), budget: 20_000, derived: 440,
			draw: each(0.0, 50, func(r *rand.Rand, x float64) analysis.Outcome { return sparseGroups(r, 100, .05, .05, x) }),
			laws: sometimes(.05, disjoint),
		},
		{
			name: "100 keys at 5 %, one of them moved by 3 scales, claim 1", claim: only(1), budget: 20_000,
			draw: each(0.0, 3, func(r *rand.Rand, x float64) analysis.Outcome { return sparseGroups(r, 100, .05, .05, x) }),
			laws: sometimes(.05, laplaceShiftLaws(3)),
		},
		{
			name: "2,000 keys at 2 %, one of 5 % on D0 alone, claim 1", claim: only(1), budget: 20_000, derived: 967,
			draw: each(.05, 0, func(r *rand.Rand, p float64) analysis.Outcome { return sparseGroups(r, 2000, .02, p, 0) }),
			laws: eventLaws(.05, 0),
		},
		{
			name: "value leaks modulo .37, claim 1", claim: only(1), budget: 20_000, derived: 174,
			draw: each(0, .5, func(r *rand.Rand, x float64) analysis.Outcome { return period(r, x, .648) }),
			laws: func() (p, q []float64) {
				return []float64{.352 / .648, 1 - .352/.648, 0}, []float64{0, 1 - .352/.648, .352 / .648}
			},
		},
		{
			name: "noise clamped at 3 scales, claim 1", claim: only(1), budget: 20_000,
			draw: each(0.0, 1, clamped), laws: clampedLaws,
		},
		{
			name: "laws that differ in the third moment, claim 1", claim: only(1), budget: 20_000, derived: 163,
			draw: each(1.0, -1, func(r *rand.Rand, sign float64) analysis.Outcome { return skewed(r, sign) }), laws: skewedLaws,
		},
	}
	for _, name := range seldomNames {
		fs = append(fs, family{
			name: name + " in 1 of 1000 trials, claim (1, 1e-5)", claim: analysis.Claim{Epsilon: 1, Delta: 1e-5}, budget: 40_000,
			draw: seldom(1e-3, 0)[name], laws: eventLaws(1e-3, 0),
		})
	}
	return fs
}

// rareRight are mechanisms whose answers look like those of rareWrong, at their tight claim.
func rareRight() []family {
	flip := func(r *rand.Rand, x int) int { return respond(r, x, 2, pOf(2, 1)) }
	fs := []family{
		{
			name: "100 keys at 5 %, one of them moved by 1 scale, 1", claim: only(1),
			draw: each(0.0, 1, func(r *rand.Rand, x float64) analysis.Outcome { return sparseGroups(r, 100, .05, .05, x) }),
		},
		{
			name: "500 keys at 2 %, one of 5 % on D0 and of 1.8 % on D1, 1", claim: only(1),
			draw: each(.05, .05/math.E, func(r *rand.Rand, p float64) analysis.Outcome { return sparseGroups(r, 500, .02, p, 0) }),
		},
		{
			name: "a random response modulo .37, 1", claim: only(1),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return period(r, float64(flip(r, x))/2, .4) }),
		},
		{
			name: "a random response with clamped noise, 1", claim: only(1),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return clamped(r, float64(flip(r, x))) }),
		},
		{
			name: "a random response by the third moment, 1", claim: only(1),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return skewed(r, float64(2*flip(r, x)-1)) }),
		},
	}
	for _, name := range seldomNames {
		fs = append(fs, family{
			name: name + " in 28 or 10 of 1000 trials, (1, 1e-3)", claim: analysis.Claim{Epsilon: 1, Delta: 1e-3},
			draw: seldom(.01*math.E+1e-3, .01)[name],
		})
	}
	return fs
}
