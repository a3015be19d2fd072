// Package outcome defines the outcome of one trial: the result of one execution of a query on one of the neighbouring
// datasets. Package replay returns outcomes, and package analysis consumes them.
package outcome

import "unsafe"

// Kind is the kind of one value.
type Kind uint8

// The kinds of a value. A NULL, an absent row and an error are outcomes too and are never dropped.
const (
	Null   Kind = iota
	Number      // Num holds it, rounded to a float64; may be NaN or infinite
	Text        // Text holds it: text, enumerations, dates, arrays, anything not a number or a boolean
	Bool        // Num is 0 or 1
)

// Value is one field of one row.
type Value struct {
	Kind   Kind
	Places uint16 // of a number that is written in decimals: the digits after the point, and 1; 0 = not known
	Num    float64
	// Text is the value as it was sent: of a text its text, of a number its digits. It is empty for a NULL and a boolean,
	// and for a number of which nothing is known but Num.
	Text string
}

// Column describes one column of a result.
type Column struct {
	Name string
	// Discrete is true if the type is known to hold no fractional noise (integer, text, boolean, date): such a column
	// may be a group key. It is false for float, numeric and unknown types.
	Discrete bool
	// Type is the OID of the type if PostgreSQL has it built in; 0 = another one, or not known. Types that were created
	// have another OID in each copy.
	Type uint16
}

// Values of Outcome.SQLState for outcomes that have no SQLSTATE.
const (
	Timeout  = "timeout"   // the time of a trial ran out, or it was cancelled
	TooLarge = "too_large" // more rows or bytes than are read
)

// Outcome is the result of one trial. Either SQLState is set (the statement failed; no rows) or Columns and Rows are.
// Every row has len(Columns) values. An empty list of rows is an outcome too.
type Outcome struct {
	Columns  []Column
	Rows     [][]Value
	SQLState string // five characters such as "22012", or Timeout or TooLarge
	Message  string // what the server says of the failure, with its detail and hint; "" = not known
}

// Size returns the approximate memory of the outcome in bytes, without its Columns, which outcomes share.
func (o Outcome) Size() int {
	n := int(unsafe.Sizeof(o)) + len(o.Message)
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
