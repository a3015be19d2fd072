package analysis

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// A code is one outcome of one score as a float64: finite numbers are themselves, everything else (an absent
// row, NULL, NaN, an infinity, a category, an error class) is a category, kept in the payload of a NaN.
type code = float64

const categoryBits = 0x7FF8_0000_0000_0000

// The categories that every score has. Those of texts, error classes and shapes start at firstText
// and firstError.
const (
	absent = iota + 1
	nullValue
	notANumber
	plusInfinity
	minusInfinity
	otherShape
	otherError
	otherText
	firstText
	firstError = firstText + maxCategories
)

// maxCategories is the most texts, or error classes, that a dictionary holds. Of all others, texts are told apart by hash, and
// error classes are one.
const maxCategories = 256

// category returns the code of a category.
func category(id int) code { return math.Float64frombits(categoryBits | uint64(id)) }

// categoryOf returns the category of a code that is not a number.
func categoryOf(c code) uint16 { return uint16(math.Float64bits(c) & 0xFFFF) }

// label tells all outcomes that are no numbers apart: the category in the low 16 bits and, of a text beyond those that the
// dictionary holds, 32 bits of its hash above them. So a text that came late, or is rare, can still have a bin of its own.
type label uint64

const (
	labelBits = 1<<48 - 1
	hashShift = 16
)

// labelOf returns the label of a code that is not a number.
func labelOf(c code) label { return label(math.Float64bits(c) & labelBits) }

// category returns the category of a label.
func (l label) category() uint16 { return uint16(l) }

// code returns the code of a label.
func (l label) code() code { return math.Float64frombits(categoryBits | uint64(l)) }

// otherTextLabel returns the label of a text that the dictionary does not hold.
func otherTextLabel(word string) label {
	h := hashString(word)
	return label(uint64(uint32(h^h>>32))<<hashShift | otherText)
}

func (l *label) state(c *state.Codec) {
	b := uint64(*l)
	c.U64(&b)
	c.Check(b <= labelBits)
	*l = label(b)
}

// isNumber reports whether a code is a finite number.
func isNumber(c code) bool { return !math.IsNaN(c) }

// numberCode returns the code of a numeric value; minus zero is zero.
func numberCode(x float64) code {
	switch {
	case math.IsNaN(x):
		return category(notANumber)
	case math.IsInf(x, 1):
		return category(plusInfinity)
	case math.IsInf(x, -1):
		return category(minusInfinity)
	case x == 0:
		return 0
	}
	return x
}

// boolWord returns the word of a boolean.
func boolWord(x float64) string {
	if x != 0 {
		return "true"
	}
	return "false"
}

// dictionary gives categories to words in the order in which they come.
type dictionary struct {
	ids   map[string]int
	words []string
	first int              // the category of the first word
	rest  int              // the category of what does not fit
	late  map[label]string // words that do not fit and have a bin; empty until they come again
}

func newDictionary(first, rest int) *dictionary {
	return &dictionary{ids: map[string]int{}, first: first, rest: rest}
}

// code returns the category of a word. Of long words the beginning and a hash are kept.
func (d *dictionary) code(word string) code {
	word = brief(word)
	id, ok := d.ids[word]
	switch {
	case ok:
	case len(d.words) < maxCategories:
		id = d.first + len(d.words)
		d.words = append(d.words, shorten(word))
		d.ids[word] = id
	case d.rest == otherText:
		l := otherTextLabel(word)
		if known, wanted := d.late[l]; wanted && known == "" {
			d.late[l] = shorten(word)
		}
		return l.code()
	default:
		id = d.rest
	}
	return category(id)
}

// maxLateWords bounds the words that do not fit and are kept for reports.
const maxLateWords = 64

// want asks for the words of labels that do not fit and have a bin, so that reports can name them.
func (d *dictionary) want(labels []label) {
	for _, l := range labels {
		if _, known := d.late[l]; known || l.category() != otherText || l == otherText || len(d.late) >= maxLateWords {
			continue
		}
		if d.late == nil {
			d.late = map[label]string{}
		}
		d.late[l] = ""
	}
}

// word returns the word of a label.
func (d *dictionary) word(l label) (string, bool) {
	if i := int(l.category()) - d.first; i >= 0 && i < len(d.words) {
		return d.words[i], true
	}
	w := d.late[l]
	return w, w != ""
}

func (d *dictionary) state(c *state.Codec) {
	c.All(&d.first, &d.rest)
	words := make([]string, len(d.words)) // as kept; the dictionary shortens them for display
	for w, id := range d.ids {
		words[id-d.first] = w
	}
	state.List(c, &words, c.Text)
	c.Check(len(words) <= maxCategories)
	if c.Reading && c.Err == nil {
		d.ids, d.words = map[string]int{}, nil
		for _, w := range words {
			d.code(w)
		}
		c.Check(len(d.words) == len(words))
	}
	late := slices.Sorted(maps.Keys(d.late))
	state.List(c, &late, func(l *label) {
		l.state(c)
		w := d.late[*l]
		c.Text(&w)
		if d.want([]label{*l}); c.Reading {
			if _, ok := d.late[*l]; ok {
				d.late[*l] = w
			} else {
				c.Fail()
			}
		}
	})
	c.Check(len(d.late) <= maxLateWords)
}

// shorten keeps what a reader can use of a long word.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

// lowestBit returns the exponent of the lowest bit set in x: x is an odd multiple of 2^lowestBit. It is 1100 for 0.
func lowestBit(x float64) float64 {
	if x == 0 {
		return 1100
	}
	b := math.Float64bits(x)
	exponent := int(b>>52) & 0x7FF
	mantissa := b & (1<<52 - 1)
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa |= 1 << 52
	}
	zeros := bits.TrailingZeros64(mantissa)
	return float64(exponent - 1075 + zeros)
}

// entropyBits is how many significant bits x uses.
func entropyBits(x float64) int {
	if x == 0 || !isNumber(x) {
		return 0
	}
	_, e := math.Frexp(x)
	return e - int(lowestBit(x))
}

// b2i returns 1 for true and 0 for false.
func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
