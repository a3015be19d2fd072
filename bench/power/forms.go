package power

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is answers that leak by what surrounds their noise, or by a sum in which the noise cancels out.

// decimals is noise with two digits, or with three with probability p.
func decimals(r *rand.Rand, p float64) analysis.Outcome {
	o := value(float64(r.IntN(1000)-500) / 100)
	places(&o.Rows[0][0], oneOf(r, p, 3, 2))
	return o
}

// places writes a number with so many digits after the point.
func places(v *analysis.Value, n int) {
	v.Places, v.Text = uint16(n+1), strconv.FormatFloat(v.Num, 'f', n, 64)
}

// fourDecimals is decimals beside three numbers with up to eleven digits by chance.
func fourDecimals(r *rand.Rand, p float64) analysis.Outcome {
	var xs [4]float64
	for i := range xs {
		xs[i] = float64(r.IntN(1000)-500) / 100
	}
	o := columns(xs[:]...)
	for i := range o.Rows[0] {
		places(&o.Rows[0][i], r.IntN(12))
	}
	places(&o.Rows[0][0], oneOf(r, p, 3, 2))
	return o
}

// document is a document of noise, with an optional key with probability p.
func document(r *rand.Rand, p float64) analysis.Outcome {
	return word(fmt.Sprintf(`{"n": %v%s}`, lap(r, 1), oneOf(r, p, `, "vip": true`, "")))
}

// list is an array of up to six noises: an odd number of them, or an even one with probability p.
func list(r *rand.Rand, p float64) analysis.Outcome {
	return arrayOf(noisyVector(r, make([]float64, oneOf(r, p, 2, 1)+2*r.IntN(3)), 1))
}

// arrayOf is a text of numbers.
func arrayOf(xs []float64) analysis.Outcome {
	texts := make([]string, len(xs))
	for i, x := range xs {
		texts[i] = fmt.Sprint(x)
	}
	return word("{" + strings.Join(texts, ",") + "}")
}

// element is an array of two to six noises, one of which, at random, is the largest, with x.
func element(epsilon float64) func(r *rand.Rand, x float64) analysis.Outcome {
	return func(r *rand.Rand, x float64) analysis.Outcome {
		xs := noisyVector(r, make([]float64, 2+r.IntN(5)), 1)
		xs[r.IntN(len(xs))] = 100 + x + lap(r, 1/epsilon)
		return arrayOf(xs)
	}
}

// hash is a text of 32 random digits, in which the eleventh is below 8 with probability p.
func hash(r *rand.Rand, p float64) analysis.Outcome {
	b := fmt.Appendf(nil, "%016x%016x", r.Uint64(), r.Uint64())
	b[10] = "0123456789abcdef"[oneOf(r, p, 0, 8)+r.IntN(8)]
	return word(string(b))
}

// message is noise, or in half of the trials an error with a count or a noisy value.
func message[T any](r *rand.Rand, count T) analysis.Outcome {
	if r.IntN(2) == 0 {
		return analysis.Outcome{SQLState: "P0001", Message: fmt.Sprint("cannot add noise to ", count)}
	}
	return value(lap(r, 1))
}

// messageValue is message with x and noise.
func messageValue(epsilon float64) func(r *rand.Rand, x float64) analysis.Outcome {
	return func(r *rand.Rand, x float64) analysis.Outcome { return message(r, x+lap(r, 1/epsilon)) }
}

// notice is noise with a notice of a count.
func notice(r *rand.Rand, count int) analysis.Outcome {
	o := value(lap(r, 1))
	o.Message = fmt.Sprint("clipped ", count, " rows")
	return o
}

// totalled is 40 groups with Laplace noise of scale 1 of which one has x more, made to add up, with weights, to the true
// total with Laplace noise of the scale own.
func totalled(own float64, weight func(i int) float64) func(r *rand.Rand, x float64) analysis.Outcome {
	return func(r *rand.Rand, x float64) analysis.Outcome {
		xs := noisyVector(r, make([]float64, 40), 1)
		sum, squares := own*lap(r, 1), 0.0
		for i, n := range xs {
			sum -= weight(i) * n
			squares += weight(i) * weight(i)
		}
		for i := range xs { // in steps of 2^-20: otherwise the last bits of the group with x would show it
			xs[i] = math.Round((xs[i]+sum*weight(i)/squares)*(1<<20)) / (1 << 20)
		}
		xs[3] += x
		return groups(xs)
	}
}

// topped is 40 groups with Laplace noise of scale 2, of which one at random is the largest, with x and noise of the scale
// own.
func topped(own float64) func(r *rand.Rand, x float64) analysis.Outcome {
	return func(r *rand.Rand, x float64) analysis.Outcome {
		xs := noisyVector(r, make([]float64, 40), 2)
		xs[r.IntN(len(xs))] = 100 + x + own*lap(r, 1)
		return groups(xs)
	}
}

func alike(int) float64          { return 1 }
func weighted(i int) float64     { return float64(1 + i%7) }
func halfLaws() (p, q []float64) { return []float64{.5, .5, 0}, []float64{.5, 0, .5} }

// wrongForms leak more than they claim.
func wrongForms() []family {
	return []family{
		{name: "the digits after the point, claim 1", claim: only(1), budget: 20_000, draw: each(1.0, 0, decimals), laws: disjoint},
		{name: "the digits after the point (0.9 against 0.1), claim 1", claim: only(1), budget: 20_000, draw: each(.9, .1, decimals), laws: responseLaws(2, .9)},
		{name: "the digits of one of four columns, claim 1", claim: only(1), budget: 20_000, draw: each(1.0, 0, fourDecimals), laws: disjoint},
		{name: "an optional key of a document, claim 1", claim: only(1), budget: 20_000, derived: 134, draw: each(1.0, 0, document), laws: disjoint},
		{name: "the length of an array is odd, claim 1", claim: only(1), budget: 20_000, draw: each(1.0, 0, list), laws: disjoint},
		{name: "one bit of a hash, claim 1", claim: only(1), budget: 20_000, draw: each(1.0, 0, hash), laws: disjoint},
		{name: "one bit of a hash (0.9 against 0.1), claim 1", claim: only(1), budget: 20_000, draw: each(.9, .1, hash), laws: responseLaws(2, .9)},
		{name: "a count in an error, in half of the trials, claim 1", claim: only(1), budget: 20_000, draw: each(101, 100, message[int]), laws: halfLaws},
		{name: "a value in an error, in half of the trials, claim 1, true 4", claim: only(1), budget: 20_000, derived: 101, draw: each(0.0, 1, messageValue(4)), laws: sometimes(.5, laplaceShiftLaws(4))},
		{name: "an element of an array of random length, claim 1, true 4", claim: only(1), budget: 20_000, derived: 76, draw: each(0.0, 1, element(4)), laws: laplaceShiftLaws(4)},
		{name: "a count in a notice, claim 1", claim: only(1), budget: 20_000, draw: each(101, 100, notice), laws: disjoint},
		{name: "an exact total of 40 groups, claim 1", claim: only(1), budget: 20_000, draw: each(0.0, 1, totalled(0, alike)), laws: disjoint},
		{name: "an exact weighted total of 40 groups, claim 1", claim: only(1), budget: 20_000, derived: 124, draw: each(0.0, 1, totalled(0, weighted)), laws: disjoint},
		{name: "an exact largest of 40 groups, claim 1", claim: only(1), budget: 20_000, draw: each(0.0, 1, topped(0)), laws: disjoint},
	}
}

// rightForms are the same kinds of answers at their tight claim.
func rightForms() []family {
	p := pOf(2, 1)
	return []family{
		{name: "the digits after the point by binary response 1", claim: only(1), draw: each(p, 1-p, decimals)},
		{name: "the digits of one of four columns by binary response 1", claim: only(1), draw: each(p, 1-p, fourDecimals)},
		{name: "an optional key of a document by binary response 1", claim: only(1), draw: each(p, 1-p, document)},
		{name: "an odd length of an array by binary response 1", claim: only(1), draw: each(p, 1-p, list)},
		{name: "one bit of a hash by binary response 1", claim: only(1), draw: each(p, 1-p, hash)},
		{name: "a count in an error by binary response, in half of the trials, 1", claim: only(1), draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return message(r, 100+respond(r, x, 2, p)) })},
		{name: "a value in an error, in half of the trials, 1", claim: only(1), draw: each(0.0, 1, messageValue(1))},
		{name: "an element of an array of random length 1", claim: only(1), draw: each(0.0, 1, element(1))},
		{name: "a count in a notice by binary response 1", claim: only(1), draw: each(0, 1, func(r *rand.Rand, x int) analysis.Outcome { return notice(r, 100+respond(r, x, 2, p)) })},
		{name: "a notice without values and Laplace noise 1", claim: only(1), draw: each(0.0, 1, func(r *rand.Rand, x float64) analysis.Outcome {
			o := value(x + lap(r, 1))
			o.Message = "noise was added"
			return o
		})},
		{name: "40 groups with a noisy total, 2", claim: only(2), draw: each(0.0, 1, totalled(1, alike))},
		{name: "40 groups with a noisy largest one 1", claim: only(1), draw: each(0.0, 1, topped(1))},
	}
}
