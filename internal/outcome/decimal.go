package outcome

import (
	"math"
	"math/bits"
)

// maxDigits is the most digits that a uint64 holds in any case.
const maxDigits = 19

// powers are those of ten that a uint64 holds.
var powers = func() (p [maxDigits + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// decimal reads the number that text begins with: digits as JSON has them (RFC 8259, section 6), at most maxDigits of them, with or
// without a fraction, and no exponent. n is the number of bytes read, 0 where there is no such number; the value is that of
// strconv.ParseFloat.
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

// quotient returns p/q for q > 0, rounded to the nearest float64, of two equally near to the even one. It divides integers: 64 bits
// of the quotient are known exactly, and the lowest one is set where there is a remainder, so that rounding them to the 53 bits of
// a float64 is right.
func quotient(p, q uint64) float64 {
	if p == 0 || q == 1 {
		return float64(p)
	}
	exponent := bits.LeadingZeros64(q) - bits.LeadingZeros64(p) - 64
	high, low := p<<bits.LeadingZeros64(p), uint64(0)
	if q <<= bits.LeadingZeros64(q); high >= q { // the quotient has 65 bits: one less
		high, low = high>>1, high<<63
		exponent++
	}
	quo, rem := bits.Div64(high, low, q)
	if rem != 0 {
		quo |= 1
	}
	return float64(quo) * math.Float64frombits(uint64(1023+exponent)<<52) // times a power of two, exactly
}
