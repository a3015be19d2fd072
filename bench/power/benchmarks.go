package power

import (
	"math"
	"math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
)

// benchmarks are the mechanisms of Bichsel, Steffen, Bogunovic and Vechev, "DP-Sniper: Black-Box Discovery of
// Differential Privacy Violations using Classifiers" (IEEE S&P 2021), at epsilon 0.1, with the bounds in the reference
// results that come with their code. Queries have sensitivity 1. The hashes of the two values of RAPPOR do not collide.
func benchmarks() []benchmark {
	const e = .1
	fives := [2][]float64{{1, 1, 1, 1, 1}, {0, 2, 2, 2, 2}}
	ups := [2][]float64{fives[0], {2, 2, 2, 2, 2}}
	hist := [2][]float64{{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}
	halves := [2][]float64{ten(0, 1), ten(1, 0)}
	split := [2][]float64{ten(1, 1), ten(2, 0)}
	on := func(in [2][]float64, draw func(*rand.Rand, []float64) analysis.Outcome) func(*rand.Rand) (a, b analysis.Outcome) {
		return each(in[0], in[1], draw)
	}
	laplace := func(r *rand.Rand) float64 { return lap(r, 2/e) }
	exponential := func(r *rand.Rand) float64 { return onGrid(r.ExpFloat64() * 2 / e) }
	return []benchmark{
		{"Laplace", "0.1", laplaceShift(e), published{".0968", ".0976", ".0998 / .0996"}},
		{"TruncatedGeometric", "0.1178", each(2.0, 1.0, truncatedGeometric), published{".1156", ".1155", ".1159 / .1169"}},
		{"NoisyHist1", "0.1", on(hist, noisyHist(1/e)), published{".0978", ".0977", ".0828 / .0994"}},
		{"NoisyHist2", "10", on(hist, noisyHist(e)), published{"4.602", "4.602", "9.717 / 10.002"}},
		{"ReportNoisyMax1", "0.1", on(fives, greatest(laplace, true)), published{".0923", ".0925", ".0920 / .0921"}},
		{"ReportNoisyMax2", "0.1", on(fives, greatest(exponential, true)), published{".0975", ".0979", ".0996 / .0997"}},
		{"ReportNoisyMax3", "0.25", on(ups, greatest(laplace, false)), published{".2478", ".2488", ".1991 / .1961"}},
		{"ReportNoisyMax4", "infinite", on(ups, greatest(exponential, false)), published{".3463", ".3534", ".1960 / .1988"}},
		{"SVT1", "0.1", on(halves, svt{t: .5, b0: 2 / e, b1: 4 / e, cut: 1}.run), published{".0858", ".0858", ".0298 / .0298"}},
		{"SVT2", "0.1", on(halves, svt{t: 1, b0: 2 / e, b1: 4 / e, cut: 1, renew: true}.run), published{".0859", ".0852", ".0316 / .0407"}},
		{"SVT3", "infinite", on(split, svt{t: 1, b0: 2 / e, b1: 2 / e, cut: 1, give: answerItself}.run), published{".1716", ".1822", ".0231 / .1793"}},
		{"SVT4", "0.175", on(halves, svt{t: 1, b0: 4 / e, b1: 4 / e / 3, cut: 1}.run), published{".1687", ".1696", ".1709 / .1719"}},
		{"SVT5", "infinite", each(ten(2, 0), ten(1, 1), svt{t: 1, b0: 2 / e}.run), published{"1.761", "1.761", "14.31 / 14.31"}},
		{"SVT6", "0.5 at most", on(halves, svt{t: 1, b0: 2 / e, b1: 2 / e}.run), published{".2720", ".2698", ".3220 / .3200"}},
		{"RAPPOR", "0.4001", each(0, 4, rappor{f: .75, p: .45, q: .55}.run), published{".2930", ".3008", ".2416 / .0243"}},
		{"OneTimeRAPPOR", "0.8007", each(0, 4, rappor{f: .95, p: 0, q: 1}.run), published{".5978", ".5999", ".4706 / .0602"}},
		{"LaplaceParallel", "0.1", each(1.0, 2.0, laplaceParallel), published{".0350", ".0299", ".0126 / .0135"}},
		{"SVT34Parallel", "infinite", on(split, svt34(e)), published{".2610", ".2616", ".1371 / .1963"}},
		{"PrefixSum", "1.0", on([2][]float64{ten(1, 1), ten(0, 0)}, prefixSum(1/e)), published{".5040", ".5774", ".3516 / .3446"}},
		{"NumericalSVT", "0.1", on(split, svt{t: 1, b0: 3 / e, b1: 12 / e, cut: 2, give: freshNoise, b2: 6 / e}.run), published{".0343", ".0345", "error"}},
	}
}

// truncatedGeometric is GeoSample of Balcer and Vadhan (2018) for counts 0 to 5, whose epsilon is ln(1 + 2^-3).
func truncatedGeometric(r *rand.Rand, count float64) analysis.Outcome {
	return value(min(max(count+geometric(r, math.Log1p(.125)), 0), 5))
}

func noisyHist(b float64) func(*rand.Rand, []float64) analysis.Outcome {
	return func(r *rand.Rand, xs []float64) analysis.Outcome { return columns(noisyVector(r, xs, b)...) }
}

// greatest reports the noisy maximum: which one it is, or the noisy value.
func greatest(noise func(*rand.Rand) float64, which bool) func(*rand.Rand, []float64) analysis.Outcome {
	return func(r *rand.Rand, xs []float64) analysis.Outcome {
		at, top := noisyMax(xs, func() float64 { return noise(r) })
		if which {
			return index(at)
		}
		return value(top)
	}
}

func laplaceParallel(r *rand.Rand, x float64) analysis.Outcome {
	xs := make([]float64, 20)
	for i := range xs {
		xs[i] = x + lap(r, 200)
	}
	return columns(xs...)
}

func prefixSum(b float64) func(*rand.Rand, []float64) analysis.Outcome {
	return func(r *rand.Rand, xs []float64) analysis.Outcome {
		out := noisyVector(r, xs, b)
		for i := range out[1:] {
			out[i+1] += out[i]
		}
		return columns(out...)
	}
}

func svt34(e float64) func(*rand.Rand, []float64) analysis.Outcome {
	three, four := svt{t: 1, b0: 2 / e, b1: 4 / e, cut: 2, give: answerItself}, svt{t: 1, b0: 4 / e, b1: 4 / e / 3, cut: 2}
	return func(r *rand.Rand, queries []float64) analysis.Outcome {
		a, b := three.run(r, queries), four.run(r, queries)
		a.Columns = append(a.Columns, b.Columns...)
		a.Rows[0] = append(a.Rows[0], b.Rows[0]...)
		return a
	}
}
