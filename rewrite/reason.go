package rewrite

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/rewrite/internal/judge"
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
	Claim  *Claim // of a statement with reasons.IndirectUse, if its text has it

	question *Question
}

// Question is what a server has to answer before the claim of a query is known.
type Question struct {
	// SQL is an expression of constants and parameters, which reads nothing and calls immutable built-in functions; if
	// Asked is set, the statement on D0, whose claim the engine states. It holds constants of the query.
	SQL        string
	Asked      bool
	Settings   map[string]string // of the session, if Asked is set
	SearchPath []string          // if Asked is set
}

// Question returns the question because of which the query was refused; nil = it was refused for another reason.
// AnalyzeWith takes the answer, by Question.SQL.
func (e *UnsupportedError) Question() *Question { return e.question }

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

// refusedFor returns the refusal of the judge.
func refusedFor(f *judge.Refusal) *UnsupportedError {
	return &UnsupportedError{Reason: f.Reason, Node: f.Node, Detail: f.Detail, Offset: f.Offset, Hint: f.Hint}
}

// refuse returns a refusal of the whole text.
func refuse(reason Reason, detail, hint string) *UnsupportedError {
	return &UnsupportedError{Reason: reason, Detail: detail, Offset: -1, Hint: hint}
}
