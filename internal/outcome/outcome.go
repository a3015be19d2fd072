// Package outcome holds the outcome of one trial: what one execution of a query returned on one of the
// neighbouring datasets. Package replay gives outcomes, package analysis takes them.
package outcome

import "unsafe"

// Kind is the kind of one value.
type Kind uint8

// The kinds of a value. A NULL, an absent row and an error are outcomes of their own, never dropped.
const (
	Null   Kind = iota
	Number      // Num holds it; may be NaN or infinite
	Text        // Text holds it: text, enumerations, dates, arrays, anything not a number or a boolean
	Bool        // Num is 0 or 1
)

// Value is one field of one row.
type Value struct {
	Kind Kind
	Num  float64
	Text string
}

// Column describes one column of a result.
type Column struct {
	Name string
	// Discrete is true where the type is known to hold no fractional noise (integer, text, boolean, date):
	// such a column may be a group key. False for float, numeric and where the type is not known.
	Discrete bool
}

// Outcome is the result of one trial. Either SQLState is set (the statement failed; no rows) or
// Columns and Rows are. Every row has len(Columns) values. No rows is an outcome too.
type Outcome struct {
	Columns  []Column
	Rows     [][]Value
	SQLState string // five characters, "22012", say; or a word of dpwatch's own: "timeout", "too_large"
}

// Size returns about how many bytes of memory the outcome holds, without its Columns, which outcomes share.
func (o Outcome) Size() int {
	n := int(unsafe.Sizeof(o))
	for _, row := range o.Rows {
		n += int(unsafe.Sizeof(row)) + int(unsafe.Sizeof(Value{}))*len(row)
		for i := range row {
			n += len(row[i].Text)
		}
	}
	return n
}

// Failed reports whether the statement failed.
func (o Outcome) Failed() bool { return o.SQLState != "" }
