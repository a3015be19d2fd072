package sqltext

import (
	"strconv"
	"strings"
)

// maxExponent limits the length of a number written in full.
const maxExponent = 100

// canonicalNumber returns the text that PostgreSQL prints for a numeric literal with an optional minus sign: an integer
// without leading zeros, or a decimal that keeps the zeros of its fraction. ok is false for hexadecimal, octal, binary
// and underscored literals.
func canonicalNumber(text string) (value string, integer, ok bool) {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, exponent, scientific := strings.Cut(Lower(text), "e")
	shift := 0
	if scientific {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > maxExponent || shift < -maxExponent {
			return "", false, false
		}
	}
	whole, fraction, pointed := strings.Cut(mantissa, ".")
	if whole+fraction == "" || !digits(whole) || !digits(fraction) {
		return "", false, false
	}
	whole, fraction = shiftPoint(whole, fraction, shift)
	value = strings.TrimLeft(whole, "0")
	if value == "" {
		value = "0"
	}
	if fraction != "" {
		value += "." + fraction
	}
	if negative && strings.Trim(value, "0.") != "" {
		value = "-" + value
	}
	return value, !pointed && !scientific, true
}

func shiftPoint(whole, fraction string, n int) (string, string) {
	if n >= 0 {
		fraction += strings.Repeat("0", max(0, n-len(fraction)))
		return whole + fraction[:n], fraction[n:]
	}
	whole = strings.Repeat("0", max(0, -n-len(whole))) + whole
	at := len(whole) + n
	return whole[:at], whole[at:] + fraction
}

func digits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// significant returns the number of digits of a decimal, from the first nonzero one.
func significant(value string) int {
	return len(strings.TrimLeft(strings.ReplaceAll(strings.TrimPrefix(value, "-"), ".", ""), "0"))
}
