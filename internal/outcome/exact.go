package outcome

import (
	"cmp"
	"math"
	"math/bits"
	"strings"
)

// This file compares values by their exact bytes, and numbers by all of their digits.

// Hash returns a hash of the value as it was sent.
func (v *Value) Hash() uint64 {
	switch {
	case v.Text != "" || v.Kind == Text:
		return HashText(v.Text, uint64(v.Kind))
	case v.Kind == Null:
		return Mix(nullSeed, uint64(v.Kind))
	}
	return Mix(math.Float64bits(v.Num), uint64(v.Kind)+uint64(v.Places)<<8)
}

const (
	nullSeed   = 0x4e554c4c
	hashFirst  = 0xa0761d6478bd642f
	hashSecond = 0xe7037ed1a0b428db
)

// Mix returns a hash of two numbers. Their order counts.
func Mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^hashFirst, b^hashSecond)
	return high ^ low ^ b // a factor of 0 must not make all others equal
}

// HashText returns a hash of a text that also depends on a seed.
func HashText(s string, seed uint64) uint64 {
	h := Mix(seed, uint64(len(s)))
	for ; len(s) > 8; s = s[8:] {
		h = Mix(h, load(s))
	}
	if len(s) == 8 {
		return Mix(h, load(s))
	}
	var tail uint64
	for i := range len(s) {
		tail = tail<<8 | uint64(s[i])
	}
	return Mix(h, tail)
}

// load returns the first 8 bytes of a text.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Compare compares two numbers by all of their digits, where these are known: a float64 has 15 of them for certain. NaN is
// less than every number.
func Compare(x float64, xText string, y float64, yText string) int {
	if x != y || xText == yText || xText == "" || yText == "" {
		return cmp.Compare(x, y) // rounding keeps the order
	}
	a, ok := digitsOf(xText)
	b, fine := digitsOf(yText)
	if !ok || !fine {
		return 0
	}
	return a.compare(&b)
}

// digits are those of a decimal number other than NaN and the infinities: 0.digits times 10 to the exponent. Zero has
// none.
type digits struct {
	negative     bool
	whole, after string // before and after the point, without leading zeros
	exponent     int
}

// digitsOf reads a number in decimals, with or without an exponent.
func digitsOf(text string) (d digits, ok bool) {
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '-' || text[0] == '+') {
		d.negative, text = text[0] == '-', text[1:]
	}
	power := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var fine bool
		if power, fine = exponentOf(text[i+1:]); !fine {
			return d, false
		}
		text = text[:i]
	}
	d.whole, d.after, _ = strings.Cut(text, ".")
	if d.whole+d.after == "" || strings.Trim(d.whole, "0123456789") != "" || strings.Trim(d.after, "0123456789") != "" {
		return d, false
	}
	d.whole = strings.TrimLeft(d.whole, "0")
	d.after = strings.TrimRight(d.after, "0")
	d.exponent = power + len(d.whole)
	if d.whole == "" {
		n := len(d.after)
		d.after = strings.TrimLeft(d.after, "0")
		d.exponent -= n - len(d.after)
	} else if d.after == "" {
		d.whole = strings.TrimRight(d.whole, "0")
	}
	return d, true
}

// exponentOf reads an exponent. Those that no number needs are as good as the largest.
func exponentOf(text string) (n int, ok bool) {
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimLeft(text, "+-")
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	for i := range len(text) {
		n = min(10*n+int(text[i]-'0'), 1<<40)
	}
	if negative {
		n = -n
	}
	return n, true
}

func (d *digits) sign() int {
	switch {
	case d.whole == "" && d.after == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// at returns a digit, 0 behind the last.
func (d *digits) at(i int) byte {
	switch {
	case i < len(d.whole):
		return d.whole[i]
	case i-len(d.whole) < len(d.after):
		return d.after[i-len(d.whole)]
	}
	return '0'
}

func (d *digits) compare(e *digits) int {
	s := d.sign()
	if c := cmp.Compare(s, e.sign()); c != 0 || s == 0 {
		return c
	}
	if c := cmp.Compare(d.exponent, e.exponent); c != 0 {
		return s * c
	}
	for i := range max(len(d.whole)+len(d.after), len(e.whole)+len(e.after)) {
		if c := cmp.Compare(d.at(i), e.at(i)); c != 0 {
			return s * c
		}
	}
	return 0
}
