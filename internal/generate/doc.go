// Package generate makes data sets from a specification of tables and columns.
//
// In: a YAML specification and a seed. Out: tables, whose rows are generated while they are read, in constant memory,
// and their CSV form. Every column has its own random stream, derived from the seed and the names of table and column.
// So the same specification and seed give the same bytes, and a change of one column does not change the others. The
// last digits of normal and Zipf values can differ between processor architectures.
//
// It does not store anything: package store does.
package generate

import "iter"

// Table is a table to generate.
type Table struct {
	Name    string
	Columns []Column
	// Rows yields the rows, from the first one at every call. A cell is an int64, a float64, a string, or nil for NULL.
	// The slice is valid until the next row.
	Rows iter.Seq[[]any]
}

// Column is a column of a table.
type Column struct {
	Name string
	SQL  string // data type and constraints in CREATE TABLE
}
