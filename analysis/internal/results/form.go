package results

import (
	"encoding/binary"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file reads the form of the texts of a result: their letters and signs without the numbers, so the keys of a
// document, the elements of an array, and the first letter.

// newForms returns an empty dictionary of forms.
func newForms() *code.Dictionary { return code.NewDictionary(code.FirstText, code.OtherText) }

const (
	maxForm     = 1 << 10 // bytes of a row's; what is longer is cut off
	maxRowForms = 64      // forms of rows; results with more have one form
)

// FormCode returns the code of the form of the texts of a result: of its rows without their group keys, and of what the
// server says beside it. Each form counts once, and the order of rows does not matter.
func (r *Reader) FormCode(o *outcome.Outcome) code.Code {
	r.rowForms = r.rowForms[:0]
	for _, row := range o.Rows {
		b := r.buf[:0]
		for j := range row {
			if row[j].Kind == outcome.Text && len(b) <= maxForm && !slices.Contains(r.Keys, j) {
				b = append(appendTextForm(b, row[j].Text), 0)
			}
		}
		r.buf = b
		if len(b) == 0 {
			continue
		}
		if form := code.Hash(string(b)); !slices.Contains(r.rowForms, form) && len(r.rowForms) < maxRowForms {
			r.rowForms = append(r.rowForms, form)
		}
	}
	slices.Sort(r.rowForms)
	b := append(appendTextForm(append(r.buf[:0], o.SQLState...), o.Message), 0)
	for _, form := range r.rowForms {
		b = binary.LittleEndian.AppendUint64(b, form)
	}
	r.buf = b
	return r.forms.Code(string(b))
}

// appendTextForm appends the form of a text: # for each number, w for each run of letters and digits that is no word or is
// the whole text, and everything else as it is. Of a text that begins with a letter, that letter comes first.
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
			if mixed || i-from > maxWord || i-from == len(text) {
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
