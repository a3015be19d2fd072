package power

import (
	"math"
	"math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
)

// smallWrong are mechanisms that leak more than a claim of 0.1, most of them twice as much. Their budget is the default.
func smallWrong() []family {
	const e = .1
	oneGood, oneBad := candidates()
	svt3, svt4 := sparse{t: 1, b0: 2 / e, b1: 2 / e, numeric: true}, sparse{t: 1, b0: 4 / e, b1: 4. / 3 / e}
	svt5, svt6 := sparse{t: 1, b0: 2 / e, endless: true}, sparse{t: .5, b0: 2 / e, b1: 2 / e, endless: true}
	oneSided := func(at float64) law {
		return func(x float64) float64 { return 1 - math.Exp(-max(0, x-at)*e) }
	}
	fs := []family{
		{name: "Laplace, claim 0.1, true 0.2", draw: laplaceShift(2 * e), laws: laplaceShiftLaws(2 * e)},
		{
			name: "two-sided geometric, claim 0.1, true 0.2", laws: geometricLaws(2 * e),
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + geometric(r, 2*e)) }),
		},
		{
			name: "4-ary response, claim 0.1, true 0.2", laws: responseLaws(4, pOf(4, 2*e)),
			draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return index(respond(r, x, 4, pOf(4, 2*e))) }),
		},
		{
			name: "noisy max that gives the value away (RNM3), claim 0.1, true 0.25",
			laws: func() ([]float64, []float64) {
				return analysis.Cut(maxLaw(laplaceLaw(1, 2/e), 5), maxLaw(laplaceLaw(2, 2/e), 5), -500, 600, 11_000)
			},
			draw: each(1.0, 2.0, func(r *rand.Rand, x float64) analysis.Outcome {
				_, top := noisyMax([]float64{x, x, x, x, x}, func() float64 { return lap(r, 2/e) })
				return value(top)
			}),
		},
		{
			name: "exponential mechanism without the factor 2, claim 0.1, true 0.18",
			laws: func() ([]float64, []float64) { return scores(2*e, oneGood), scores(2*e, oneBad) },
			draw: each(oneGood, oneBad, func(r *rand.Rand, u []float64) analysis.Outcome { return index(choose(r, scores(2*e, u))) }),
		},
		{
			name: "sparse vector, answers given away (SVT3), claim 0.1",
			draw: each(ten(1, 1), ten(2, 0), svt3.run), laws: lawsOf(ten(1, 1), ten(2, 0), svt3.firstAnswer),
		},
		{
			name: "sparse vector, little noise on queries (SVT4), claim 0.1, true 0.175", derived: 456_500,
			draw: each(ten(0, 1), ten(1, 0), svt4.run), laws: lawsOf(ten(0, 1), ten(1, 0), svt4.firstAbove),
		},
		{
			name: "sparse vector without noise on queries (SVT5), claim 0.1",
			draw: each(ten(2, 0), ten(1, 1), svt5.run), laws: lawsOf(ten(2, 0), ten(1, 1), svt5.allAbove),
		},
		{
			name: "sparse vector without cut-off (SVT6), claim 0.1", derived: 35_700,
			draw: each(ten(0, 1), ten(1, 0), svt6.run), laws: lawsOf(ten(0, 1), ten(1, 0), svt6.allAbove),
		},
		{
			name: "one-sided exponential noise, claim 0.1", derived: 204,
			draw: each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome { return value(x + onGrid(r.ExpFloat64()/e)) }),
			laws: func() ([]float64, []float64) { return analysis.Cut(oneSided(0), oneSided(1), 0, 1, 1) },
		},
		{name: "noisy histogram, 3 bad groups of 40 (true 0.6 together), claim 0.1", derived: 2360, draw: histogram(40, 3, 2*e), laws: histogramLaws(3, 2*e, 50)},
	}
	for i := range fs {
		fs[i].claim = only(e)
		fs[i].budget = analysis.DefaultTrials(fs[i].claim)
	}
	return fs
}
