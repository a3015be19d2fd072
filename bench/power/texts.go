package power

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is answers whose leak lies in texts, or in the order of rows.

// rareTexts is one of so many rare texts, all alike likely, or with probability p one that tells.
func rareTexts(n int) func(r *rand.Rand, p float64) analysis.Outcome {
	return func(r *rand.Rand, p float64) analysis.Outcome {
		if r.Float64() < p {
			return word("telling")
		}
		return word("text " + strconv.Itoa(r.IntN(n)))
	}
}

// ordered is a result of groups with Laplace noise of scale 1, in the given order.
func ordered(r *rand.Rand, order []int) analysis.Outcome {
	o := groups(noisyVector(r, make([]float64, len(order)), 1))
	rows := slices.Clone(o.Rows)
	for i, k := range order {
		o.Rows[i] = rows[k]
	}
	return o
}

// reversed is two groups in one order on D0 and in the other on D1, each with probability p.
func reversed(p float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(p, 1-p, func(r *rand.Rand, p float64) analysis.Outcome {
		return ordered(r, oneOf(r, p, []int{0, 1}, []int{1, 0}))
	})
}

// shuffled is n groups in random order, the first before the second with probability p on D0 and after it on D1.
func shuffled(n int, p float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(p, 1-p, func(r *rand.Rand, p float64) analysis.Outcome {
		order := r.Perm(n)
		i, j := slices.Index(order, 0), slices.Index(order, 1)
		if i < j != (r.Float64() < p) {
			order[i], order[j] = order[j], order[i]
		}
		return ordered(r, order)
	})
}

// oneMoved is n groups of which one comes early on D0 and late on D1.
func oneMoved(n int) func(r *rand.Rand) (a, b analysis.Outcome) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	moved := slices.Insert(slices.Delete(slices.Clone(order), 3, 4), n-10, 3)
	return each(order, moved, ordered)
}

// sortedByNoise is groups in the order of their noisy values, of which one moves by 1.
func sortedByNoise(n int, epsilon float64) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(0.0, 1.0, func(r *rand.Rand, x float64) analysis.Outcome {
		xs := make([]float64, n)
		xs[0] = x
		o := groups(noisyVector(r, xs, 1/epsilon))
		slices.SortFunc(o.Rows, func(a, b []analysis.Value) int { return cmp.Compare(a[1].Num, b[1].Num) })
		return o
	})
}

// wrongTexts leak more than they claim.
func wrongTexts() []family {
	return []family{
		{name: "only the order of two rows, claim 1", claim: only(1), budget: 20_000, draw: reversed(1), laws: disjoint},
		{name: "only the order of 200 rows, one of which moves, claim 1", claim: only(1), budget: 20_000, draw: oneMoved(200), laws: disjoint},
		{
			name: "random order of 6 rows, two of them (0.9 against 0.1), claim 1", claim: only(1), budget: 20_000,
			draw: shuffled(6, .9), laws: responseLaws(2, .9),
		},
		{
			name: "one telling text (0.011 on D0, never on D1) among 400, claim 1", claim: only(1), budget: 20_000,
			draw: each(.01136, 0, rareTexts(400)), laws: eventLaws(.01136, 0),
		},
		{
			name: "one telling text (0.011 on D0, never on D1) among 5000, claim 1", claim: only(1), budget: 20_000,
			draw: each(.01136, 0, rareTexts(5000)), laws: eventLaws(.01136, 0),
		},
		{
			name: "one telling text (0.05 against 0.01) among 1000, claim 1", claim: only(1), budget: 20_000,
			draw: each(.05, .01, rareTexts(1000)), laws: eventLaws(.05, .01),
		},
	}
}

// rightTexts are the same kinds of answers at their tight claim.
func rightTexts() []family {
	return []family{
		{name: "order of two rows 1", claim: only(1), draw: reversed(pOf(2, 1))},
		{name: "random order of 6 rows 1", claim: only(1), draw: shuffled(6, pOf(2, 1))},
		{name: "order of 6 rows by their noisy values 1", claim: only(1), draw: sortedByNoise(6, 1)},
		{name: "one telling text among 5000, 1", claim: only(1), draw: each(.02718281828, .01, rareTexts(5000))},
		{name: "one telling text among 600, 1", claim: only(1), draw: each(.05, .05*2.718281828, rareTexts(600))},
	}
}
