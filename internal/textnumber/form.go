// Package textnumber parses texts that represent numbers: money, dates, times, intervals, numbers written as text, and
// arrays, composite values and JSON documents of numbers. It owns the forms of such texts but does not decide which
// column has one. Texts go in, numbers come out. Everything in a text except its numbers must be the same in all texts
// of a form, so that a form and its numbers determine the text.
package textnumber

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the input.
const (
	MaxParts = 64   // numbers in one text
	maxText  = 4096 // bytes
)

// kind is a kind of texts.
type kind uint8

const (
	none     kind = iota
	money         // one amount, with or without currency and separators
	date          // days since 2000-01-01
	instant       // seconds since 2000-01-01, in UTC if the text has an offset
	interval      // seconds
	several       // numbers between fixed texts: a number, an array, a composite value, a JSON document
	wrapped       // numbers with digits after the point between words: np.float64(1.5), a sentence
)

// Form describes how to parse the texts of a column. The zero Form parses none.
type Form struct {
	kind     kind
	decimals []int    // per number: the digits after the point, -1 if the number of digits varies
	fixed    []string // several and money: the texts around the numbers, one more than numbers
	comma    bool     // money: the comma is the decimal point
	minus    minus    // money: how negative amounts are written; positive if there was none
	plain    bool     // only numbers, without other text
}

// Parts returns the number of numbers in a text of the form, 0 for the zero Form.
func (f *Form) Parts() int { return len(f.decimals) }

// Plain reports whether the texts are only numbers. Such texts may also be names.
func (f *Form) Plain() bool { return f.plain }

// Unit returns the unit of a number of the form, empty if the text contains it.
func (f *Form) Unit() string {
	switch f.kind {
	case date:
		return "days since 2000-01-01"
	case instant:
		return "seconds since 2000-01-01"
	case interval:
		return "seconds"
	}
	return ""
}

// Equal reports whether two forms parse texts alike.
func (f *Form) Equal(g *Form) bool {
	if f.kind != g.kind || f.comma != g.comma || f.minus != g.minus || len(f.decimals) != len(g.decimals) || len(f.fixed) != len(g.fixed) {
		return false
	}
	for i, d := range f.decimals {
		if d != g.decimals[i] {
			return false
		}
	}
	for i, s := range f.fixed {
		if s != g.fixed[i] {
			return false
		}
	}
	return true
}

// Learn returns the common form of all texts, the zero Form if there is none.
func Learn(texts []string) Form {
	if len(texts) == 0 {
		return Form{}
	}
	for _, f := range [...]Form{{kind: date}, {kind: instant}, {kind: interval}, {kind: money}, {kind: money, comma: true}, {kind: several}, {kind: wrapped}} {
		if f.fit(texts) {
			return f
		}
	}
	return Form{}
}

// fit sets the parts of a form that depend on the texts, and reports whether it parses all of them.
func (f *Form) fit(texts []string) bool {
	var numbers []number
	fractions := 0
	for i, text := range texts {
		all, fixed, ok := f.scan(text, nil, nil, i == 0)
		for _, n := range all {
			if n.minus != positive {
				f.minus = n.minus // the same for all texts, which is checked below
			}
		}
		if slices.ContainsFunc(all, func(n number) bool { return n.decimals != 0 }) {
			fractions++
		}
		switch {
		case !ok || len(all) == 0 || len(all) > MaxParts:
			return false
		case i == 0:
			numbers = all
			for _, n := range all {
				f.decimals = append(f.decimals, n.decimals)
			}
			f.fixed = fixed
			continue
		case len(all) != len(numbers):
			return false
		}
		for j, n := range all {
			if n.decimals != f.decimals[j] {
				f.decimals[j] = -1
			}
		}
	}
	if f.kind == wrapped && 2*fractions < len(texts) { // names: user 17
		return false
	}
	f.plain = (f.kind == several || f.kind == money) && !slices.ContainsFunc(texts, func(s string) bool {
		return strings.Trim(s, "-+.eE0123456789") != ""
	})
	dst := make([]float64, len(f.decimals))
	for _, text := range texts {
		if !f.Read(text, dst) {
			return false
		}
	}
	return true
}

// Read parses a text into dst, which must have Parts elements. It reports whether the text has the form.
func (f *Form) Read(text string, dst []float64) bool {
	var few [4]number
	numbers, _, ok := f.scan(text, few[:0], f.fixed, false)
	if !ok || len(numbers) != len(f.decimals) || len(dst) != len(numbers) {
		return false
	}
	for i, n := range numbers {
		if n.minus != positive && f.minus != positive && n.minus != f.minus {
			return false
		}
		if f.decimals[i] < 0 && n.padded || f.decimals[i] >= 0 && n.decimals != f.decimals[i] {
			return false
		}
		dst[i] = n.value
	}
	return true
}

// scan returns the numbers of a text. It compares the texts around the numbers with fixed, or returns them if wanted is
// set.
func (f *Form) scan(text string, dst []number, fixed []string, wanted bool) ([]number, []string, bool) {
	if len(text) > maxText || text == "" || !utf8.ValidString(text) {
		return nil, nil, false
	}
	one := func(n number, ok bool) ([]number, []string, bool) { return append(dst, n), nil, ok }
	switch f.kind {
	case money:
		n, before, behind, ok := scanMoney(text, f.comma)
		switch {
		case wanted:
			fixed = []string{before, behind}
		case fixed != nil && (fixed[0] != before || fixed[1] != behind):
			ok = false
		}
		return append(dst, n), fixed, ok
	case date:
		return one(scanDate(text))
	case instant:
		return one(scanInstant(text))
	case interval:
		return one(scanInterval(text))
	}
	if f.kind == several && !strings.ContainsRune("{[(", rune(text[0])) { // a single number, possibly with a percent sign
		n, end := numberAt(text, 0)
		behind := text[end:]
		if wanted {
			fixed = []string{"", behind}
		}
		return append(dst, n), fixed, end > 0 && (behind == "" || behind == "%") && (fixed == nil || len(fixed) == 2 && fixed[1] == behind)
	}
	return scanSeveral(text, dst, fixed, wanted)
}
