package results

import (
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/textnumber"
)

// This file reads columns of texts that stand for numbers: money, dates, times, arrays, JSON documents. The first
// results decide which columns these are; each of their numbers is then a separate measure. A text that does not have
// the column's form stays a category.

// When texts of one form are read as numbers. A few different texts may be names, and bare numbers are more likely to
// be.
const (
	leastFormed   = 8  // texts
	leastPlain    = 16 // texts that are bare numbers
	maxFormed     = 512
	maxFormedCell = 1024 // measures in all
)

// formOf returns the form of the texts of a column in results seen, the zero Form if they have none.
func formOf(seen []*outcome.Outcome, column int) (f textnumber.Form) {
	var texts []string
	distinct := map[string]bool{}
	for _, o := range seen {
		for _, row := range o.Rows[:min(len(o.Rows), maxKeyRows)] {
			if column >= len(row) || row[column].Kind == outcome.Null || len(texts) == maxFormed {
				continue
			}
			v := &row[column]
			if v.Kind != outcome.Text {
				return f
			}
			texts = append(texts, v.Text)
			distinct[v.Text] = true
		}
	}
	if len(texts) < leastFormed || 3*len(distinct) <= len(texts) {
		return f
	}
	f = textnumber.Learn(texts)
	if f.Plain() && (len(texts) < leastPlain || 4*len(distinct) < 3*len(texts)) {
		return textnumber.Form{}
	}
	return f
}

// addMeasure adds the measures of a column.
func (l *Layout) addMeasure(seen []*outcome.Outcome, column int) {
	f := formOf(seen, column)
	n := max(1, f.Parts())
	if len(l.Measures)+n > maxFormedCell {
		f, n = textnumber.Form{}, 1
	}
	l.Forms = append(l.Forms, f)
	for i := range n {
		l.Measures = append(l.Measures, column)
		if i > 0 {
			l.Forms = append(l.Forms, textnumber.Form{})
		}
	}
}

// formed returns the first measure of the column of a measure, and its form.
func (l *Layout) formed(measure int) (first int, f *textnumber.Form) {
	for first = measure; first > 0 && l.Measures[first-1] == l.Measures[measure]; first-- {
	}
	return first, &l.Forms[first]
}

// equalForms reports whether the measures are the same.
func (l *Layout) equalForms(m *Layout) bool {
	return slices.EqualFunc(l.Forms, m.Forms, func(a, b textnumber.Form) bool { return a.Equal(&b) })
}

// MeasureName names a measure: the column, and which of its numbers.
func (l *Layout) MeasureName(measure int) string {
	name := l.ColumnName(l.Measures[measure])
	if first, f := l.formed(measure); f.Parts() > 1 {
		return fmt.Sprintf("%s (number %d of %d)", name, measure-first+1, f.Parts())
	}
	return name
}

// ValueWords returns what the values of a measure are called, one and several.
func (l *Layout) ValueWords(measure int) (one, many string) {
	if measure < len(l.Measures) {
		if _, f := l.formed(measure); f.Unit() != "" {
			return "value (" + f.Unit() + ")", "values"
		}
	}
	return "value", "values"
}

// readForm writes the codes of a value of a column with a form, one for each of its numbers.
func (r *Reader) readForm(v *outcome.Value, j int, dst []code.Code) {
	f := &r.Forms[j]
	dst = dst[j : j+f.Parts()]
	rest := code.Category(code.OtherText)
	switch v.Kind {
	case outcome.Text:
		var few [4]float64
		numbers := few[:min(len(few), len(dst))]
		if len(dst) > len(few) {
			numbers = make([]float64, len(dst))
		}
		if f.Read(v.Text, numbers) {
			for i, x := range numbers {
				dst[i] = code.Number(x)
			}
			return
		}
		dst[0] = r.Words[j].Code(v.Text)
	case outcome.Number:
		dst[0] = code.Number(v.Num)
	case outcome.Bool:
		dst[0] = r.Words[j].Code(code.BoolWord(v.Num))
	default:
		dst[0], rest = code.Category(code.NullValue), code.Category(code.NullValue)
	}
	for i := range dst[1:] {
		dst[i+1] = rest
	}
}

// formState describes the form of a measure.
func formState(c *state.Codec, f *textnumber.Form) {
	text := f.Encode()
	c.Text(&text)
	if c.Reading && c.Err == nil {
		var err error
		if *f, err = textnumber.Decode(text); err != nil {
			c.Fail()
		}
	}
}

// checkForms checks that every form has its measures.
func (l *Layout) checkForms(c *state.Codec) {
	c.Check(len(l.Forms) == len(l.Measures))
	for j := 0; c.Err == nil && j < len(l.Forms); {
		n := max(1, l.Forms[j].Parts())
		c.Check(j+n <= len(l.Forms))
		for i := j + 1; c.Err == nil && i < j+n; i++ {
			c.Check(l.Measures[i] == l.Measures[j] && l.Forms[i].Parts() == 0)
		}
		c.Check(c.Err != nil || j+n == len(l.Measures) || l.Measures[j+n] != l.Measures[j])
		j += n
	}
}
