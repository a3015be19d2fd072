package exact

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
	maxWord   = 24
)

// scan calls number for each number in a text, with a hash of the word between it and the number before, and word for each
// run of letters. It returns a hash of the text without its numbers. Digits in a run that has letters before them are no
// number, and those with letters behind are one only if no digit follows.
func scan(text string, number func(word uint64, text string), word func(uint64)) (skeleton uint64) {
	skeleton = fnvOffset
	before := uint64(0)
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case isDigit(c):
			from := i
			for i < len(text) && isDigit(text[i]) {
				i++
			}
			if i+1 < len(text) && text[i] == '.' && isDigit(text[i+1]) {
				for i++; i < len(text) && isDigit(text[i]); {
					i++
				}
			}
			end := i
			mixed := false
			for i < len(text) && (isLetter(text[i]) || isDigit(text[i])) {
				mixed = mixed || isDigit(text[i])
				i++
			}
			if mixed {
				skeleton = (skeleton ^ outcome.HashText(text[from:i], 0)) * fnvPrime
				continue
			}
			if from > 0 && (text[from-1] == '-' || text[from-1] == '+') && (from == 1 || !isDigit(text[from-2]) && !isLetter(text[from-2]) && text[from-2] != '.') {
				from--
			}
			number(before, text[from:end])
			i, before = end, 0
			skeleton = (skeleton ^ '#') * fnvPrime
		case isLetter(c):
			from, mixed := i, false
			for i < len(text) && (isLetter(text[i]) || isDigit(text[i])) {
				mixed = mixed || isDigit(text[i])
				i++
			}
			h := outcome.HashText(text[from:i], 0)
			skeleton = (skeleton ^ h) * fnvPrime
			before = 0
			if !mixed {
				word(h)
				if i-from <= maxWord {
					before = h
				}
			}
		default:
			if (c != '-' && c != '+') || i+1 == len(text) || !isDigit(text[i+1]) { // else a sign
				skeleton = (skeleton ^ uint64(c)) * fnvPrime
			}
			i++
		}
	}
	return skeleton
}

// moduli are those of the remainders. allModuli is their product.
var moduli = [...]int{16, 9, 5, 7, 11, 13}

const allModuli = 16 * 9 * 5 * 7 * 11 * 13

// remainder returns what all digits of a number, as an integer, leave over allModuli.
func remainder(text string) (r int, ok bool) {
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case isDigit(c):
			r = (10*r + int(c-'0')) % allModuli
			digits++
		case c == 'e' || c == 'E':
			return r, digits > 0
		case c != '.' && c != '-' && c != '+' && c != ' ':
			return 0, false
		}
	}
	if text != "" && text[0] == '-' {
		r = (allModuli - r) % allModuli
	}
	return r, digits > 0
}

// hashOf returns the hash of a value by which it is known again. Where the lowest bits of numbers do not count they are
// left out.
func (a *Answers) hashOf(v *outcome.Value) uint64 {
	if a.coarse && v.Kind == outcome.Number && fine(v) {
		return outcome.Mix(math.Float64bits(v.Num)>>20, uint64(v.Kind))
	}
	return v.Hash()
}

// fine reports whether a number has so many digits that it may have come from a float64.
func fine(v *outcome.Value) bool {
	if v.Places > 0 || v.Text != "" && len(v.Text) < longDigits {
		return false
	}
	return v.Num != math.Trunc(v.Num) || math.Abs(v.Num) >= 1<<53
}
