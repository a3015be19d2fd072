package results

import (
	"strconv"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file reads the form of a result: what it shows beside its values. That is, of a decimal the digits after the
// point; of a text its letters and signs without its numbers, so the keys of a document, the elements of an array, and
// the first letter; and what the server says beside it: an error, notices.

// newForms returns an empty dictionary of forms.
func newForms() *code.Dictionary { return code.NewDictionary(code.FirstText, code.OtherText) }

// maxForm is the greatest length of a form; what is longer is cut off.
const maxForm = 1 << 10

// FormCode returns the code of the form of a result: that of its rows, each form once, in the order in which they come
// first, so that the number of rows and what is in a row does not matter as long as its form is the same.
func (r *Reader) FormCode(o *outcome.Outcome) code.Code {
	b := r.buf[:0]
	if o.Failed() || o.Message != "" {
		b = append(append(append(b, o.SQLState...), ' '), o.Message[:min(len(o.Message), maxForm/2)]...)
	}
	first := len(b)
	for i := range o.Rows {
		from := len(b)
		for j := range o.Rows[i] {
			b = appendForm(b, &o.Rows[i][j])
		}
		if from > first && string(b[from:]) == string(b[first:from]) { // as the only form before
			b = b[:from]
		}
		if len(b) > maxForm {
			b = b[:maxForm]
			break
		}
	}
	r.buf = b
	return r.forms.Code(string(b))
}

// appendForm appends the form of a value.
func appendForm(b []byte, v *outcome.Value) []byte {
	switch v.Kind {
	case outcome.Null:
		b = append(b, '0')
	case outcome.Bool:
		b = append(b, '?')
	case outcome.Number:
		if b = append(b, '#'); v.Places > 0 {
			b = strconv.AppendUint(append(b, '.'), uint64(v.Places-1), 10)
		}
	default:
		b = appendTextForm(b, v.Text)
	}
	return append(b, 0)
}

// appendTextForm appends the form of a text: # for each number, w for each run of letters and digits that is no word,
// and everything else as it is. Of a text that begins with a letter, that letter comes first.
func appendTextForm(b []byte, text string) []byte {
	if len(text) > 0 && isLetter(text[0]) {
		b = append(b, text[0], ':')
	}
	for i := 0; i < len(text) && len(b) <= maxForm; {
		c := text[i]
		switch {
		case isDigit(c):
			n, word := numberAt(text[i:])
			i += n
			if b = append(b, '#'); word {
				b[len(b)-1] = 'w'
			}
		case isLetter(c):
			from, mixed := i, false
			for i < len(text) && (isLetter(text[i]) || isDigit(text[i])) {
				mixed = mixed || isDigit(text[i])
				i++
			}
			if mixed || i-from > maxWord {
				b = append(b, 'w')
			} else {
				b = append(b, text[from:i]...)
			}
		default:
			if i++; c != '-' || i == len(text) || !isDigit(text[i]) { // else the sign of a number
				b = append(b, c)
			}
		}
	}
	return b
}

// maxWord is the greatest length of a word in a form.
const maxWord = 24

// numberAt returns the length of the number at the start of a text that begins with a digit, and whether it is rather
// the beginning of a run of letters and digits.
func numberAt(text string) (n int, word bool) {
	for n < len(text) && (isDigit(text[n]) || n > 0 && text[n] == '.' && n+1 < len(text) && isDigit(text[n+1])) {
		n++
	}
	if n+1 < len(text) && (text[n] == 'e' || text[n] == 'E') { // an exponent
		sign := n + 1
		if text[sign] == '-' || text[sign] == '+' {
			sign++
		}
		end := sign
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		if end > sign && (end == len(text) || !isLetter(text[end])) {
			return end, false
		}
	}
	for n < len(text) && (isLetter(text[n]) || isDigit(text[n])) {
		n, word = n+1, true
	}
	return n, word
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80 }
