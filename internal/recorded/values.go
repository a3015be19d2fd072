package recorded

import (
	"bytes"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// kind is the kind of a field's content.
type kind uint8

const (
	null    kind = iota
	whole        // a number without fraction and exponent
	decimal      // any other number, including NaN and infinities
	comma        // a number with a comma in it, as some languages write fractions and thousands
	text
)

// kindOf returns the kind of a field's content.
func kindOf(b []byte) kind {
	if b == nil {
		return null
	}
	digits, commas, points := 0, 0, 0
	for i, c := range b {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' && points+commas == 0:
			points++
		case c == ',' && digits > 0 && points == 0:
			commas++
		case (c == '-' || c == '+') && i == 0:
		default:
			return kindOfOther(b)
		}
	}
	switch {
	case digits == 0:
		return text
	case commas > 0:
		return comma
	case points > 0:
		return decimal
	}
	return whole
}

func kindOfOther(b []byte) kind {
	if _, ok := outcome.ParseNumber(b); ok {
		return decimal
	}
	if bytes.IndexByte(b, ',') >= 0 { // 1.234,5 and 1,234.5
		if kindOf(bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("."), nil), []byte(","), nil)) == whole {
			return comma
		}
	}
	return text
}

// interner returns one string for equal texts, so that repeated group keys use no memory.
type interner map[string]string

// maxInterned bounds the texts that an interner keeps.
const maxInterned = 100_000

func (m interner) text(b []byte) string {
	if s, ok := m[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(m) < maxInterned {
		m[s] = s
	}
	return s
}

// value parses a field.
func (m interner) value(b []byte) outcome.Value {
	if b == nil {
		return outcome.Value{Kind: outcome.Null}
	}
	if f, ok := outcome.ParseNumber(b); ok {
		return outcome.Value{Kind: outcome.Number, Num: f, Text: string(b)}
	}
	return outcome.Value{Kind: outcome.Text, Text: m.text(b)}
}
