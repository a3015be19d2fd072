package main

import (
	"math/rand/v2"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is answers whose leak lies in texts.

// rareTexts is one of so many rare texts, all alike likely, or with probability p one that tells.
func rareTexts(n int) func(r *rand.Rand, p float64) analysis.Outcome {
	return func(r *rand.Rand, p float64) analysis.Outcome {
		if r.Float64() < p {
			return word("telling")
		}
		return word("text " + strconv.Itoa(r.IntN(n)))
	}
}

// oftenLaws are the laws of an outcome of the given probabilities, all else being equal.
func oftenLaws(p, q float64) func() ([]float64, []float64) {
	return func() ([]float64, []float64) { return []float64{p, 1 - p}, []float64{q, 1 - q} }
}

// wrongTexts leak more than they claim.
func wrongTexts() []family {
	return []family{
		{
			name: "one telling text (0.011 on D0, never on D1) among 400, claim 1", claim: only(1), budget: 20_000, bar: 1700,
			draw: each(.01136, 0, rareTexts(400)), laws: oftenLaws(.01136, 0),
		},
		{
			name: "one telling text (0.011 on D0, never on D1) among 5000, claim 1", claim: only(1), budget: 20_000, bar: 1700,
			draw: each(.01136, 0, rareTexts(5000)), laws: oftenLaws(.01136, 0),
		},
		{
			name: "one telling text (0.05 against 0.01) among 1000, claim 1", claim: only(1), budget: 20_000, bar: 3400,
			draw: each(.05, .01, rareTexts(1000)), laws: oftenLaws(.05, .01),
		},
	}
}

// rightTexts are the same kinds of answers at their tight claim.
func rightTexts() []family {
	return []family{
		{name: "one telling text among 5000, 1", claim: only(1), draw: each(.02718281828, .01, rareTexts(5000))},
		{name: "one telling text among 600, 1", claim: only(1), draw: each(.05, .05*2.718281828, rareTexts(600))},
	}
}
