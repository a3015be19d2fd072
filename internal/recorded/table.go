package recorded

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// tableReader converts the records of a CSV file to results, after a survey of it.
type tableReader struct {
	records *records
	layout  *layout
	columns []outcome.Column // without the trial column
	from    []int            // the field index of each column
	plain   []bool           // columns that hold texts, whatever their form
	texts   interner

	// The current trial: its first record has been read and not returned yet.
	id      string
	pending []outcome.Value
	ended   bool
	width   int // of the previous result, in values

	expected *trialRange // nil = gaps are not filled
}

// trialRange is a range of trial numbers; next is the next one expected.
type trialRange struct{ next, high int64 }

// newTableReader returns a reader for a file, with the kinds of columns from the surveys of both files.
func newTableReader(r *records, l *layout, kinds [][text + 1]int) (*tableReader, error) {
	t := &tableReader{records: r, layout: l, texts: interner{}}
	for i, name := range l.names {
		if i == l.trial {
			continue
		}
		k := kinds[i]
		numbers := k[whole] > 0 || k[decimal] > 0
		isKey := slices.Contains(l.keys, i)
		c := outcome.Column{Name: name, Discrete: isKey || !numbers}
		if l.trial >= 0 && len(l.keys) == 0 {
			c.Discrete = k[decimal] == 0
		}
		t.columns = append(t.columns, c)
		t.from = append(t.from, i)
		t.plain = append(t.plain, isKey && (k[decimal] > 0 || k[comma] > 0 || k[text] > 0))
	}
	if err := l.skipHeader(r); err != nil {
		return nil, err
	}
	return t, nil
}

// next reads the next result.
func (t *tableReader) next() (outcome.Outcome, error) {
	o := outcome.Outcome{Columns: t.columns}
	if t.layout.trial < 0 {
		fields, err := t.record()
		if err == nil && fields != nil {
			o.Rows = [][]outcome.Value{t.row(nil, fields)}
		}
		return o, err
	}
	if t.pending == nil && !t.ended {
		if err := t.begin(); err != nil {
			return o, err
		}
	}
	if t.expected != nil {
		due := t.expected.next
		t.expected.next++
		if number, err := strconv.ParseInt(t.id, 10, 64); t.ended || err != nil || number != due {
			return o, nil
		}
	}
	values, err := t.trial()
	if err != nil {
		return o, err
	}
	n := len(t.columns)
	o.Rows = make([][]outcome.Value, len(values)/n)
	for i := range o.Rows {
		o.Rows[i] = values[i*n : (i+1)*n : (i+1)*n]
	}
	return o, nil
}

// begin reads the first record of a trial.
func (t *tableReader) begin() error {
	fields, err := t.record()
	for err == nil && fields == nil {
		fields, err = t.record()
	}
	if errors.Is(err, io.EOF) && t.expected != nil {
		t.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	t.start(fields)
	return nil
}

func (t *tableReader) start(fields [][]byte) {
	t.id = string(fields[t.layout.trial])
	t.pending = t.row(make([]outcome.Value, 0, max(t.width, len(t.columns))), fields)
}

// trial reads the remaining records of the current trial, and the first one of the next.
func (t *tableReader) trial() ([]outcome.Value, error) {
	values := t.pending
	t.pending = nil
	for {
		fields, err := t.record()
		switch {
		case errors.Is(err, io.EOF):
			t.ended = true
			return values, nil
		case err != nil:
			return nil, err
		case fields == nil:
			continue
		case string(fields[t.layout.trial]) != t.id:
			t.width = len(values)
			t.start(fields)
			return values, nil
		}
		values = t.row(values, fields)
	}
}

// row appends the values of a record.
func (t *tableReader) row(values []outcome.Value, fields [][]byte) []outcome.Value {
	if values == nil {
		values = make([]outcome.Value, 0, len(t.columns))
	}
	for c, i := range t.from {
		if t.plain[c] && fields[i] != nil {
			values = append(values, outcome.Value{Kind: outcome.Text, Text: t.texts.text(fields[i])})
			continue
		}
		values = append(values, t.texts.value(fields[i]))
	}
	return values
}

// record reads the next record, which the survey has seen.
func (t *tableReader) record() ([][]byte, error) {
	fields, err := t.records.next()
	if err == nil && fields != nil && len(fields) != len(t.layout.names) {
		return nil, refusal(t.records.start, "the file changed while it was read")
	}
	return fields, err
}
