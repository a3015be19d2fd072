package rewrite

// Refusal is why a statement cannot be replayed. No field holds a literal or a parameter.
type Refusal struct {
	Reason Reason
	Node   string // the syntax node; "" for the whole statement
	Detail string // what was found
	Offset int    // byte offset of the node; -1 = not known
	Hint   string // remedy; "" = none

	touches bool // the node may refer to a protected table
}

// plainHints are the hints of refusals without a specific one.
var plainHints = map[Reason]string{
	ReasonSideEffects:     "a replay does not write, lock or wait: leave that part out",
	ReasonSystemColumn:    "leave the column out: it differs between any two copies of a table",
	ReasonUnsafeFunction:  "leave it out, or call it in a separate query: its result differs in a replay",
	ReasonNameInString:    "name the table in FROM, not in a string",
	ReasonRowType:         "name the types of the columns: a copy's rows are of another type",
	ReasonTempTable:       "a replay cannot see the session's temporary tables: put the table's query in its place",
	ReasonUnsupportedNode: "write it in another way, or report the syntax",
}
