package results

import (
	"slices"
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// MaxRetainedBytes bounds the memory of one result that is kept whole.
const MaxRetainedBytes = 1 << 20

// SizeOf is about how many bytes a result takes; it stops counting beyond the bound of what is retained.
func SizeOf(o *outcome.Outcome) int {
	const row, value = int(unsafe.Sizeof([]outcome.Value{})), int(unsafe.Sizeof(outcome.Value{}))
	n := 0
	for _, r := range o.Rows {
		if n += row + value*len(r); n > MaxRetainedBytes {
			break
		}
		for i := range r {
			n += len(r[i].Text)
		}
	}
	return n
}

// CopyOf copies a result, but for its columns.
func CopyOf(o *outcome.Outcome) outcome.Outcome {
	c := outcome.Outcome{Columns: o.Columns, SQLState: o.SQLState, Message: o.Message}
	values := slices.Concat(o.Rows...)
	for _, row := range o.Rows {
		c.Rows = append(c.Rows, values[:len(row):len(row)])
		values = values[len(row):]
	}
	return c
}

// SampleOf copies what the layout is learned from: the first rows, fewer where they are wide, with long texts made
// brief.
func SampleOf(o *outcome.Outcome) outcome.Outcome {
	s := outcome.Outcome{Columns: o.Columns, SQLState: o.SQLState, Message: code.Brief(o.Message)}
	n := 0
	for _, row := range o.Rows[:min(len(o.Rows), maxKeyRows)] {
		if n += len(row) * int(unsafe.Sizeof(outcome.Value{})); n > MaxRetainedBytes && len(s.Rows) > 1 {
			break // two rows at least: with one alone there would seem to be no key
		}
		short := make([]outcome.Value, len(row))
		for i, v := range row {
			v.Text = code.Brief(v.Text)
			short[i] = v
		}
		s.Rows = append(s.Rows, short)
	}
	return s
}
