package judge

import "github.com/dpwatch/dpwatch/rewrite/reasons"

// Refusal is why a statement cannot be replayed. No field holds a literal or a parameter.
type Refusal struct {
	Reason reasons.Reason
	Node   string // the syntax node; "" for the whole statement
	Detail string // what was found
	Offset int    // byte offset of the node; -1 = not known
	Hint   string // remedy; "" = none

	mayBeProtected bool // the node may refer to a protected table, so the query may be one to audit
}

// usualHints are the hints of refusals without a specific one.
var usualHints = map[reasons.Reason]string{
	reasons.SideEffects:     "remove that part: a replay must not write, lock or wait",
	reasons.SystemColumn:    "remove the column: it differs between any two copies of a table",
	reasons.UnsafeFunction:  "remove it, or call it in a separate query: its result differs in a replay",
	reasons.NameInString:    "name the table in FROM, not in a string",
	reasons.RowType:         "use the types of the columns instead: the rows of a copy have another type",
	reasons.TempTable:       "replace the temporary table by its query: a replay cannot see the session's temporary tables",
	reasons.IndirectUse:     "call the DP function in a SELECT on the protected table",
	reasons.UnsupportedNode: "write the query without it, or report it as a missing feature",
}
