package calibrate

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/noise"
)

// losses are the queries of the zoo whose laws are Laplace noise of one scale around two centres, by name: how many
// scales apart these are. Rounding an answer only loses evidence, so that the limit holds for rounded answers too.
// Infinity: no answer is possible on both.
func losses() map[string]float64 {
	never := math.Inf(1)
	return map[string]float64{
		"half the noise": 2, "half the noise, not rounded": 2, "one noise for two columns": never, "group of one": never, "null for an empty set": never,
		"no row for an empty set": never, "an error for an empty set": never, "fixed seed": never, "no noise": never, "noise on whole numbers": never,
	}
}

// growth returns the most evidence per pair, in nats, that any auditor can gain against a claim of epsilon 1; NaN = the
// laws are not in closed form here.
func growth(name string) float64 {
	claim, cdf := analysis.Claim{Epsilon: 1}, func(f noise.Family, center, scale float64) func(float64) float64 {
		l := noise.Law{Family: f, Scale: scale}
		return func(x float64) float64 { return l.CDF(x - center) }
	}
	of := func(p, q []float64) float64 { return analysis.Growth(p, q, claim) }
	const cells = 4000
	switch name {
	case "randomised response":
		return of([]float64{.1, .9}, []float64{.9, .1})
	case "Gaussian noise without delta":
		return of(analysis.Cut(cdf(noise.Gaussian, 0, .5), cdf(noise.Gaussian, 1, .5), -5, 6, cells))
	case "a scale from the data":
		return of(analysis.Cut(cdf(noise.Laplace, 0, 5), cdf(noise.Laplace, 0, 1), -60, 60, cells))
	}
	switch e, known := losses()[name]; {
	case !known:
		return math.NaN()
	case math.IsInf(e, 1):
		return of([]float64{1, 0}, []float64{0, 1})
	default:
		return of(analysis.Cut(cdf(noise.Laplace, 0, 1/e), cdf(noise.Laplace, 1, 1/e), 0, 1, cells))
	}
}

// limit returns the pairs that the best auditor, who knows both laws, needs on average; NaN if it is not known.
func limit(name string, confidence float64) float64 { return -math.Log(1-confidence) / growth(name) }
