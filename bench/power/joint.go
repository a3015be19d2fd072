package power

import (
	"math"
	"math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is leaks that no column or group shows by itself, and leaks in few of the trials.

// jointly are mechanisms that leak through how values go together, and mechanisms that leak seldom.
func jointly() []family {
	signs := each(.95, .05, func(r *rand.Rand, same float64) analysis.Outcome { return columns(signed(r, same)...) })
	columnsOf2 := each(.9, -.9, func(r *rand.Rand, c float64) analysis.Outcome { return columns(correlated(r, 2, c)...) })
	groupsOf2 := each(.9, -.9, func(r *rand.Rand, c float64) analysis.Outcome { return groups(correlated(r, 2, c)) })
	groupsOf100 := each(.9, -.9, func(r *rand.Rand, c float64) analysis.Outcome { return groups(twoOf(r, 100, c)) })
	columnsOf4 := each(.99, 0, func(r *rand.Rand, c float64) analysis.Outcome { return columns(correlated(r, 4, c)...) })
	oneOf20 := each(0., 4, func(r *rand.Rand, moved float64) analysis.Outcome { return groups(oneMoves(r, 20, moved)) })
	return []family{
		{
			name: "sign follows the other column, 19 of 20 against 1 of 20, claim 1", claim: only(1), budget: 5000, derived: 79, draw: signs,
			laws: eventLaws(.95, .05),
		},
		{
			name: "correlation .9 against -.9 of 2 columns, claim 1", claim: only(1), budget: 5000, derived: 78, draw: columnsOf2,
			laws: sampled(columnsOf2, 1<<18, 1, correlationRatio(2, .9, -.9)),
		},
		{
			name: "correlation .9 against -.9 of 2 groups, claim 1", claim: only(1), budget: 5000, derived: 78, draw: groupsOf2,
			laws: sampled(groupsOf2, 1<<18, 1, correlationRatio(2, .9, -.9)),
		},
		{
			name: "correlation .9 against -.9 of 2 of 100 groups, claim 1", claim: only(1), budget: 5000, derived: 78, draw: groupsOf100,
			laws: sampled(groupsOf2, 1<<18, 1, correlationRatio(2, .9, -.9)),
		},
		{
			name: "correlation .99 against 0 of 4 columns, claim 1", claim: only(1), budget: 5000, derived: 67, draw: columnsOf4,
			laws: sampled(columnsOf4, 1<<18, 1, correlationRatio(4, .99, 0)),
		},
		{
			name: "one random group of 20 moves (true 4), claim 1", claim: only(1), budget: 10_000, derived: 313, draw: oneOf20,
			laws: sampled(oneOf20, 1<<18, 1, oneMovesRatio(4)),
		},
		{
			name: "true value with probability .01, claim 1", claim: only(1), budget: 40_000, draw: revealing(.01),
			laws: revealingLaws(.01),
		},
		{
			name: "true value with probability .001, claim 1", claim: only(1), budget: 40_000, draw: revealing(.001),
			laws: revealingLaws(.001),
		},
		{
			name: "far out with probability .01 against .001, claim 1", claim: only(1), budget: 20_000, draw: each(.01, .001, farOut),
			laws: eventLaws(.01, .001),
		},
		{
			name: "a tenth of the noise in 1 of 20 trials, claim 1", claim: only(1), budget: 20_000, draw: each(0., 1, littleNoise),
			laws: func() (p, q []float64) { return analysis.Cut(littleNoiseLaw(0), littleNoiseLaw(1), -3, 4, 7000) },
		},
	}
}

// jointlyRight are the honest counterparts.
func jointlyRight() []family {
	p := pOf(2, 1)
	return []family{
		{
			name: "sign follows the other column 1", claim: only(1),
			draw: each(p, 1-p, func(r *rand.Rand, same float64) analysis.Outcome { return columns(signed(r, same)...) }),
		},
		{
			name: "correlation .9 or -.9 by binary response 1", claim: only(1),
			draw: each(p, 1-p, func(r *rand.Rand, same float64) analysis.Outcome {
				return columns(correlated(r, 2, oneOf(r, same, .9, -.9))...)
			}),
		},
		{
			name: "correlation .9 or -.9 of 2 groups by binary response 1", claim: only(1),
			draw: each(p, 1-p, func(r *rand.Rand, same float64) analysis.Outcome {
				return groups(correlated(r, 2, oneOf(r, same, .9, -.9)))
			}),
		},
		{
			name: "correlation .9 or -.9 of 2 of 100 groups by binary response 1", claim: only(1),
			draw: each(p, 1-p, func(r *rand.Rand, same float64) analysis.Outcome {
				return groups(twoOf(r, 100, oneOf(r, same, .9, -.9)))
			}),
		},
		{
			name: "correlation .99 or 0 of 4 columns by binary response 1", claim: only(1),
			draw: each(p, 1-p, func(r *rand.Rand, same float64) analysis.Outcome {
				return columns(correlated(r, 4, oneOf(r, same, .99, 0))...)
			}),
		},
		{
			name: "one random group of 20 moves 1", claim: only(1),
			draw: each(0., 1, func(r *rand.Rand, moved float64) analysis.Outcome { return groups(oneMoves(r, 20, moved)) }),
		},
		{
			name: "the far group of 20 by binary response 1", claim: only(1),
			draw: each(p, 1-p, func(r *rand.Rand, moves float64) analysis.Outcome {
				return groups(oneMoves(r, 20, oneOf(r, moves, 8., 0)))
			}),
		},
		{name: "one of two values by binary response 1 in 1 of 50 trials", claim: only(1), draw: each(p, 1-p, sometimesExact)},
		{name: "far out with probability .01 against .01/e 1", claim: only(1), draw: each(.01, .01*math.Exp(-1), farOut)},
		{
			name: "half of the noise in 1 of 20 trials 1", claim: only(1),
			draw: each(0., .5, func(r *rand.Rand, x float64) analysis.Outcome {
				b := 1.
				if r.IntN(20) == 0 {
					b = .5
				}
				return value(x + lap(r, b))
			}),
		},
	}
}

// twoOf is n numbers of one law, of which two are correlated.
func twoOf(r *rand.Rand, n int, correlation float64) []float64 {
	xs := correlated(r, n, 0)
	two := correlated(r, 2, correlation)
	xs[7], xs[n-9] = two[0], two[1]
	return xs
}

// signed is two numbers of one law, the signs of which agree with the given probability.
func signed(r *rand.Rand, same float64) []float64 {
	x, y := lap(r, 1), lap(r, 1)
	if agree := r.Float64() < same; agree != (x*y > 0) {
		y = -y
	}
	return []float64{x, y}
}

// correlated is n standard normal numbers, every two of them with the given correlation; a negative one is of two
// numbers.
func correlated(r *rand.Rand, n int, c float64) []float64 {
	xs := make([]float64, n)
	shared := r.NormFloat64()
	for i := range xs {
		xs[i] = onGrid(math.Sqrt(math.Abs(c))*shared + math.Sqrt(1-math.Abs(c))*r.NormFloat64())
	}
	if c < 0 {
		xs[1] = -xs[1]
	}
	return xs
}

// oneOf returns x with probability p, else y.
func oneOf[T any](r *rand.Rand, p float64, x, y T) T {
	if r.Float64() < p {
		return x
	}
	return y
}

// correlationRatio is the log-ratio of [correlated] with the correlation c0 on D0 and c1 on D1. With S the sum of n
// numbers, the exponent of the law is -(sum of squares - c S^2/(1 + (n-1) c))/(2 (1-c)), its determinant (1-c)^(n-1) (1
// + (n-1) c).
func correlationRatio(n int, c0, c1 float64) func(analysis.Outcome) float64 {
	density := func(xs []float64, c float64) float64 {
		sum, squares := 0., 0.
		for _, x := range xs {
			sum, squares = sum+x, squares+x*x
		}
		all := 1 + float64(n-1)*c
		return -(squares-c*sum*sum/all)/(2*(1-c)) - (float64(n-1)*math.Log(1-c)+math.Log(all))/2
	}
	return func(o analysis.Outcome) float64 {
		xs := numbers(o)
		return density(xs, c0) - density(xs, c1)
	}
}

// numbers are the numbers of one row, or the second of every row.
func numbers(o analysis.Outcome) (xs []float64) {
	if len(o.Rows) == 1 {
		for _, v := range o.Rows[0] {
			xs = append(xs, v.Num)
		}
		return xs
	}
	for _, row := range o.Rows {
		xs = append(xs, row[1].Num)
	}
	return xs
}

// oneMoves is n groups with Laplace noise of scale 1, of which a random one is moved.
func oneMoves(r *rand.Rand, n int, moved float64) []float64 {
	xs := noisyVector(r, make([]float64, n), 1)
	xs[r.IntN(n)] += moved
	return xs
}

// oneMovesRatio is the log-ratio of [oneMoves] on D0, where nothing is moved, and on D1.
func oneMovesRatio(moved float64) func(analysis.Outcome) float64 {
	return func(o analysis.Outcome) float64 {
		sum := 0.
		for _, x := range numbers(o) {
			sum += math.Exp(math.Abs(x) - math.Abs(x-moved))
		}
		return math.Log(float64(len(o.Rows))) - math.Log(sum)
	}
}

// revealing adds Laplace noise of epsilon 1, but in some trials.
func revealing(p float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(0., 1, func(r *rand.Rand, x float64) analysis.Outcome {
		if r.Float64() < p {
			return value(x)
		}
		return value(x + lap(r, 1))
	})
}

// revealingLaws has the true value, which the other world has with probability 0, as a cell of its own.
func revealingLaws(p float64) func() ([]float64, []float64) {
	return func() (ps, qs []float64) {
		ps, qs = laplaceShiftLaws(1)()
		for i := range ps {
			ps[i], qs[i] = ps[i]*(1-p), qs[i]*(1-p)
		}
		return append(ps, p, 0), append(qs, 0, p)
	}
}

// farOut is Laplace noise, with the given probability around a place far out.
func farOut(r *rand.Rand, p float64) analysis.Outcome {
	x := lap(r, 1)
	if r.Float64() < p {
		x += 30
	}
	return value(x)
}

// sometimesExact is one of two exact values in one of 50 trials, by randomised response, else the same Laplace noise in
// both worlds.
func sometimesExact(r *rand.Rand, p float64) analysis.Outcome {
	if r.IntN(50) > 0 {
		return value(lap(r, 1))
	}
	return value(oneOf(r, p, .25, .75))
}

func littleNoise(r *rand.Rand, x float64) analysis.Outcome {
	b := 1.
	if r.IntN(20) == 0 {
		b = .1
	}
	return value(x + lap(r, b))
}

func littleNoiseLaw(center float64) law {
	most, few := laplaceLaw(center, 1), laplaceLaw(center, .1)
	return func(x float64) float64 { return .95*most(x) + .05*few(x) }
}
