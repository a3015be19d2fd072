package code

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// A Code is one outcome of one score as a float64. A finite number is its own code. Everything else (an absent row,
// NULL, NaN, an infinity, a text, an error class) is a category, stored in the payload of a NaN.
type Code = float64

const categoryBits = 0x7FF8_0000_0000_0000

// The categories that every score has. The categories of texts start at FirstText, those of error classes at
// FirstError.
const (
	Absent = iota + 1
	NullValue
	NotANumber
	PlusInfinity
	MinusInfinity
	OtherShape
	OtherError
	OtherText
	FirstText
	FirstError = FirstText + maxCategories
)

// maxCategories is the maximum number of texts, or error classes, that a dictionary holds. Other texts are
// distinguished by hash; other error classes are one category.
const maxCategories = 256

// Category returns the code of a category.
func Category(id int) Code { return math.Float64frombits(categoryBits | uint64(id)) }

// CategoryOf returns the category of a code that is not a number.
func CategoryOf(c Code) uint16 { return uint16(math.Float64bits(c) & 0xFFFF) }

// Label identifies an outcome that is not a number: the category in the low 16 bits and, for a text that the dictionary
// does not hold, 32 bits of its hash above them. So a text that is rare, or appears late, can still have its own bin.
type Label uint64

const (
	labelBits = 1<<48 - 1
	hashShift = 16
)

// LabelOf returns the label of a code that is not a number.
func LabelOf(c Code) Label { return Label(math.Float64bits(c) & labelBits) }

// Category returns the category of a label.
func (l Label) Category() uint16 { return uint16(l) }

// Code returns the code of a label.
func (l Label) Code() Code { return math.Float64frombits(categoryBits | uint64(l)) }

// otherTextLabel returns the label of a text that the dictionary does not hold.
func otherTextLabel(word string) Label {
	h := Hash(word)
	return Label(uint64(uint32(h^h>>32))<<hashShift | OtherText)
}

// State encodes or decodes a label.
func (l *Label) State(c *state.Codec) {
	b := uint64(*l)
	c.U64(&b)
	c.Check(b <= labelBits)
	*l = Label(b)
}

// IsNumber reports whether a code is a finite number.
func IsNumber(c Code) bool { return !math.IsNaN(c) }

// Number returns the code of a numeric value. Minus zero has the code of zero.
func Number(x float64) Code {
	switch {
	case math.IsNaN(x):
		return Category(NotANumber)
	case math.IsInf(x, 1):
		return Category(PlusInfinity)
	case math.IsInf(x, -1):
		return Category(MinusInfinity)
	case x == 0:
		return 0
	}
	return x
}

// BoolWord returns the text of a boolean that is stored as a number: "true" unless x is 0.
func BoolWord(x float64) string {
	if x != 0 {
		return "true"
	}
	return "false"
}

// Dictionary assigns categories to words (texts or error classes), in the order in which they first appear.
type Dictionary struct {
	ids   map[string]int
	Words []string
	First int              // the category of the first word
	Rest  int              // the category of further words when the dictionary is full
	late  map[Label]string // words that are not in the full dictionary and have a bin; "" until they appear again
}

// NewDictionary returns an empty dictionary. Its words get the categories first, first+1, ...; when it is full, further
// words get the category rest.
func NewDictionary(first, rest int) *Dictionary {
	return &Dictionary{ids: map[string]int{}, First: first, Rest: rest}
}

// Code returns the code of a word, and adds the word if the dictionary is not full. It stores a long word as Brief
// does.
func (d *Dictionary) Code(word string) Code {
	word = Brief(word)
	id, ok := d.ids[word]
	switch {
	case ok:
	case len(d.Words) < maxCategories:
		id = d.First + len(d.Words)
		d.Words = append(d.Words, Shorten(word))
		d.ids[word] = id
	case d.Rest == OtherText:
		l := otherTextLabel(word)
		if known, wanted := d.late[l]; wanted && known == "" {
			d.late[l] = Shorten(word)
		}
		return l.Code()
	default:
		id = d.Rest
	}
	return Category(id)
}

// maxLateWords is the maximum number of words outside the full dictionary that are kept for reports.
const maxLateWords = 64

// Want requests the words of labels that are not in the dictionary and have a bin, so that reports can name them.
func (d *Dictionary) Want(labels []Label) {
	for _, l := range labels {
		if _, known := d.late[l]; known || l.Category() != OtherText || l == OtherText || len(d.late) >= maxLateWords {
			continue
		}
		if d.late == nil {
			d.late = map[Label]string{}
		}
		d.late[l] = ""
	}
}

// Word returns the word of a label, shortened for display. It returns false if the word is not known.
func (d *Dictionary) Word(l Label) (string, bool) {
	if i := int(l.Category()) - d.First; i >= 0 && i < len(d.Words) {
		return d.Words[i], true
	}
	w := d.late[l]
	return w, w != ""
}

// State encodes or decodes a dictionary.
func (d *Dictionary) State(c *state.Codec) {
	c.All(&d.First, &d.Rest)
	words := make([]string, len(d.Words)) // as kept; the dictionary shortens them for display
	for w, id := range d.ids {
		words[id-d.First] = w
	}
	state.List(c, &words, c.Text)
	c.Check(len(words) <= maxCategories)
	if c.Reading && c.Err == nil {
		d.ids, d.Words = map[string]int{}, nil
		for _, w := range words {
			d.Code(w)
		}
		c.Check(len(d.Words) == len(words))
	}
	late := slices.Sorted(maps.Keys(d.late))
	state.List(c, &late, func(l *Label) {
		l.State(c)
		w := d.late[*l]
		c.Text(&w)
		if d.Want([]Label{*l}); c.Reading {
			if _, ok := d.late[*l]; ok {
				d.late[*l] = w
			} else {
				c.Fail()
			}
		}
	})
	c.Check(len(d.late) <= maxLateWords)
}

// Shorten returns s for display: if it has more than 60 bytes, its beginning and an ellipsis.
func Shorten(s string) string {
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

// LowestBit returns the exponent of the lowest bit set in x: x is an odd multiple of 2^LowestBit. It is 1100 for 0.
func LowestBit(x float64) float64 {
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

// SignificantBits returns the number of significant bits of x: from its highest to its lowest bit set. It is 0 for 0
// and for a category.
func SignificantBits(x float64) int {
	if x == 0 || !IsNumber(x) {
		return 0
	}
	_, e := math.Frexp(x)
	return e - int(LowestBit(x))
}

// Bit returns 1 for true and 0 for false.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
