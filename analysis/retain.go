package analysis

import (
	"slices"
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// retained is a pair of results that the layout is learned from.
type retained struct {
	worlds [2]Outcome
	cut    bool // one is kept in part: good for the layout, not to be read again
}

// What is retained of results: the first and the latest pairs, each result within a bound of memory.
const (
	firstRetained    = 8
	latestRetained   = 8
	maxRetainedBytes = 1 << 20
)

// retain keeps the first pairs and the latest before a turn, to learn the layout from. Results beyond the bound are kept in part.
func (a *Audit) retain(d0, d1 *Outcome) {
	if a.reader != nil && (widthOf(d0) != a.reader.width || widthOf(d1) != a.reader.width) {
		a.unmatched++
	}
	misfit := a.reader != nil && !a.reader.keyed && (len(d0.Rows) > 1 || len(d1.Rows) > 1)
	if full := len(a.retained) == firstRetained+latestRetained; full && !misfit && !a.monotony.constant() && a.nextTurn-a.pairs >= latestRetained {
		return // later pairs will take its place before the layout is learned
	}
	var p retained
	for w, o := range [2]*Outcome{d0, d1} {
		if sizeOf(o) > maxRetainedBytes {
			p.worlds[w], p.cut = sampleOf(o), true
		} else {
			p.worlds[w] = copyOf(o)
		}
	}
	if misfit {
		a.misfit = true
		if len(a.retained) >= firstRetained { // the layout is learned at the end of the block, when the latest are others
			a.retained[firstRetained-1] = p
			return
		}
	}
	if len(a.retained) < firstRetained+latestRetained {
		a.retained = append(a.retained, p)
		return
	}
	a.retained[firstRetained+a.pairs%latestRetained] = p
}

// sizeOf is about how many bytes a result takes; it stops counting beyond the bound of what is retained.
func sizeOf(o *Outcome) int {
	const row, value = int(unsafe.Sizeof([]Value{})), int(unsafe.Sizeof(Value{}))
	n := 0
	for _, r := range o.Rows {
		if n += row + value*len(r); n > maxRetainedBytes {
			break
		}
		for i := range r {
			n += len(r[i].Text)
		}
	}
	return n
}

// copyOf copies a result, but for its columns.
func copyOf(o *Outcome) Outcome {
	c := Outcome{Columns: o.Columns, SQLState: o.SQLState}
	values := slices.Concat(o.Rows...)
	for _, row := range o.Rows {
		c.Rows = append(c.Rows, values[:len(row):len(row)])
		values = values[len(row):]
	}
	return c
}

// sampleOf copies what the layout is learned from: the first rows, fewer where they are wide, with long texts made
// brief.
func sampleOf(o *Outcome) Outcome {
	s := Outcome{Columns: o.Columns, SQLState: o.SQLState}
	n := 0
	for _, row := range o.Rows[:min(len(o.Rows), maxKeyRows)] {
		if n += len(row) * int(unsafe.Sizeof(Value{})); n > maxRetainedBytes && len(s.Rows) > 1 {
			break // two rows at least: with one alone there would seem to be no key
		}
		short := make([]Value, len(row))
		for i, v := range row {
			v.Text = code.Brief(v.Text)
			short[i] = v
		}
		s.Rows = append(s.Rows, short)
	}
	return s
}
