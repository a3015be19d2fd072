package rewrite

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Reason is the reason code of a refusal; package reasons lists them.
type Reason = reasons.Reason

// UnsupportedError is the refusal of a query. No field holds a literal or a parameter of the query; fields may hold
// identifiers (tables, functions, columns).
type UnsupportedError struct {
	Reason Reason
	Node   string // the syntax node ("RangeVar", "FuncCall"); "" for the whole text
	Detail string // what was found
	Offset int    // byte offset in capture.Query.SQL, 0-based; -1 = not known
	Hint   string // remedy for the client or the operator; "" = none

	expression string
}

// Expression returns the SQL text of a claim that is an expression of constants and parameters, if the query was
// refused because its value is not known; otherwise "". It reads nothing and calls immutable built-in functions.
// AnalyzeWith takes its value.
func (e *UnsupportedError) Expression() string { return e.expression }

// Error returns all fields in one line.
func (e *UnsupportedError) Error() string {
	var b strings.Builder
	b.WriteString("query refused: ")
	b.WriteString(string(e.Reason))
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	switch {
	case e.Node != "" && e.Offset >= 0:
		fmt.Fprintf(&b, " (%s at byte %d)", e.Node, e.Offset)
	case e.Node != "":
		fmt.Fprintf(&b, " (%s)", e.Node)
	case e.Offset >= 0:
		fmt.Fprintf(&b, " (at byte %d)", e.Offset)
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// reportBug is the hint of a refusal that is a fault of this package.
const reportBug = "report this as a bug"

// refuse returns a refusal of the whole text.
func refuse(reason Reason, detail, hint string) *UnsupportedError {
	return &UnsupportedError{Reason: reason, Detail: detail, Offset: -1, Hint: hint}
}
