package pgparse

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// IsAnalyze reports whether EXPLAIN runs its statement.
func IsAnalyze(n *pg_query.ExplainStmt) bool {
	on := false
	for _, o := range n.GetOptions() {
		if d := o.GetDefElem(); d.GetDefname() == "analyze" {
			on = d.GetArg() == nil || d.GetArg().GetInteger().GetIval() != 0 || IsOn(d.GetArg().GetString_().GetSval())
		}
	}
	return on
}

// IsOn reports whether a boolean setting is true, with the spellings of the server.
func IsOn(value string) bool {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(value), "'")) {
	case "on", "true", "t", "yes", "y", "1", "tr", "tru", "ye":
		return true
	}
	return false
}

// Leftmost returns the first SELECT of a set operation, which has its INTO clause and its columns.
func Leftmost(n *pg_query.SelectStmt) *pg_query.SelectStmt {
	for n.GetLarg() != nil {
		n = n.GetLarg()
	}
	return n
}
