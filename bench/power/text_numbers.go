package power

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// This file is numbers written as texts.

// writing is how a number of hundredths is written.
type writing struct {
	name  string
	write func(x float64) analysis.Outcome
}

// amount is hundredths with a point, and separators of thousands.
func amount(x float64) string {
	s := strconv.FormatInt(int64(math.Abs(x)), 10)
	for len(s) < 3 {
		s = "0" + s
	}
	whole, cents := s[:len(s)-2], s[len(s)-2:]
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return whole + "." + cents
}

// clock is hundredths of a second as a time.
func clock(x float64) string {
	s := int64(math.Abs(x))
	return fmt.Sprintf("%02d:%02d:%02d.%02d", s/360_000, s/6000%60, s/100%60, s%100)
}

func sign(x float64, s string) string {
	if x < 0 {
		return "-" + s
	}
	return s
}

func writings() []writing {
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	return []writing{
		{"the numbers themselves", func(x float64) analysis.Outcome { return value(x / 100) }},
		{"money", func(x float64) analysis.Outcome { return word(sign(x, "$"+amount(x))) }},
		{"money in parentheses", func(x float64) analysis.Outcome {
			if x < 0 {
				return word("($" + amount(x) + ")")
			}
			return word("$" + amount(x))
		}},
		{"dates", func(x float64) analysis.Outcome { return word(day.AddDate(0, 0, int(x)).Format("2006-01-02")) }},
		{"timestamps", func(x float64) analysis.Outcome {
			return word(day.Add(time.Duration(x) * time.Second).Format("2006-01-02 15:04:05"))
		}},
		{"intervals", func(x float64) analysis.Outcome { return word(sign(x, clock(x))) }},
		{"JSON numbers", func(x float64) analysis.Outcome { return word(strconv.FormatFloat(x/100, 'f', -1, 64)) }},
		{"JSON objects", func(x float64) analysis.Outcome {
			return word(fmt.Sprintf(`{"n": %s, "unit": "kg"}`, strconv.FormatFloat(x/100, 'f', -1, 64)))
		}},
	}
}

// written is a number with Laplace noise of 100 units, moved on D1.
func written(moved float64, w writing) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(0.0, moved, func(r *rand.Rand, x float64) analysis.Outcome { return w.write(math.Round(1000 + 100*(x+lap(r, 1)))) })
}

// array is two numbers with noise of their own, of which one moves; as an array, or as columns.
func array(moved float64, text bool) func(r *rand.Rand) (a, b analysis.Outcome) {
	return each(0.0, moved, func(r *rand.Rand, x float64) analysis.Outcome {
		xs := []float64{math.Round(100 * lap(r, 1)), math.Round(100 * (x + lap(r, 1)))}
		if !text {
			return columns(xs...)
		}
		return word("{" + fmt.Sprintf("%g,%g", xs[0], xs[1]) + "}")
	})
}

// wrongWritings leak more than they claim: the numbers lie apart by 40 scales, or by 6 or 2.
func wrongWritings() (fs []family) {
	for _, w := range writings() {
		fs = append(fs, family{
			name: "numbers as text, disjoint: " + w.name + ", claim 1", claim: only(1), budget: 20_000,
			draw: written(40, w), laws: disjoint,
		})
		for _, e := range []float64{6, 2} {
			fs = append(fs, family{
				name: fmt.Sprintf("numbers as text, shifted: %s, claim 1, true %g", w.name, e), claim: only(1), budget: 20_000,
				draw: written(e, w), laws: laplaceShiftLaws(e),
			})
		}
	}
	for _, text := range []bool{false, true} {
		name := map[bool]string{false: "two columns", true: "arrays"}[text]
		fs = append(fs,
			family{name: "numbers as text, disjoint: " + name + ", claim 1", claim: only(1), budget: 20_000, draw: array(40, text), laws: disjoint},
			family{name: "numbers as text, shifted: " + name + ", claim 1, true 6", claim: only(1), budget: 20_000, draw: array(6, text), laws: laplaceShiftLaws(6)})
	}
	return fs
}

// rightWritings are the same kinds of answers at their tight claim.
func rightWritings() (fs []family) {
	for _, w := range writings()[1:] {
		fs = append(fs, family{name: "numbers as text: " + w.name + " 1", claim: only(1), draw: written(1, w)})
	}
	return append(fs, family{name: "numbers as text: arrays 1", claim: only(1), draw: array(1, true)})
}
