package outcome

import (
	"math"
	"math/bits"
)

// maxDigits is the largest number of digits that always fits in a uint64.
const maxDigits = 19

// powers are the powers of ten that fit in a uint64.
var powers = func() (p [maxDigits + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// decimal parses the number at the start of text: digits as in JSON (RFC 8259, section 6), at most maxDigits of them,
// with or without a fraction, without exponent. n is the number of bytes read, 0 if there is no such number; the value
// is that of strconv.ParseFloat.
func decimal[T string | []byte](text T) (x float64, n int, fraction bool) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	var digits uint64
	first := i
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		digits = 10*digits + uint64(text[i]-'0')
	}
	all, places := i-first, 0
	if all == 0 || all > 1 && text[first] == '0' {
		return 0, 0, false
	}
	if i < len(text) && text[i] == '.' {
		i++
		first = i
		for ; i < len(text) && text[i]-'0' <= 9; i++ {
			digits = 10*digits + uint64(text[i]-'0')
		}
		if places, fraction = i-first, true; places == 0 {
			return 0, 0, false
		}
	}
	if all+places > maxDigits || i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		return 0, 0, false
	}
	if x = quotient(digits, powers[places]); negative {
		x = -x
	}
	return x, i, fraction
}

// quotient returns p/q for a power of ten q, rounded to the nearest float64, ties to even. It divides integers: 64 bits
// of the quotient are exact, and the lowest bit is set if there is a remainder, so that rounding to the 53 bits of a
// float64 is correct.
func quotient(p, q uint64) float64 {
	if p < 1<<53 { // both are float64 values: powers of ten up to 10^22 are
		return float64(p) / float64(q)
	}
	if q == 1 {
		return float64(p)
	}
	exponent := bits.LeadingZeros64(q) - bits.LeadingZeros64(p) - 64
	high, low := p<<bits.LeadingZeros64(p), uint64(0)
	if q <<= bits.LeadingZeros64(q); high >= q { // the quotient would have 65 bits: use one less
		high, low = high>>1, high<<63
		exponent++
	}
	quo, rem := bits.Div64(high, low, q)
	if rem != 0 {
		quo |= 1
	}
	return float64(quo) * math.Float64frombits(uint64(1023+exponent)<<52) // times a power of two, exactly
}
