package hoist

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Relation is the qualified name of a relation as stored in the catalog.
type Relation = ident.Table

// relationOf returns the name of a relation in FROM.
func relationOf(n *pg_query.RangeVar) Relation {
	return Relation{Schema: n.GetSchemaname(), Name: n.GetRelname()}
}

// Traits are the properties of a function name. A trait is set if it holds for any function of that name, in any
// schema.
type Traits struct {
	Volatile   bool // pg_proc.provolatile = 'v', a DP function, or a built-in one that is not listed
	Aggregate  bool // pg_proc.prokind is 'a' or 'w'
	ReturnsSet bool // pg_proc.proretset
	// Transaction: its result may depend on the calling transaction, or it may change the results of later calls in the
	// same transaction: now(), txid_current(), set_config(), and functions that call them.
	Transaction bool
	// Draws: it is Volatile, or its text names a function that is, whatever its own declaration.
	Draws bool
	// Reads: it may read relations that are no arguments, by its text, or because its language does not show that.
	Reads bool
}

// Knowledge holds facts from the catalog of the query's database. It is read-only.
type Knowledge struct {
	Functions map[string]Traits // by name, as stored in the catalog; a missing function counts as volatile
	Operators map[string]bool   // the operators whose function is volatile
	// Relations holds the relations that the query reads, except CTEs. The value is true if a relation varies between
	// trials: a random view, a foreign table, a table with row security.
	Relations map[Relation]bool
	Views     map[Relation]string // the definitions of those of Relations that are views
}

// callVaries reports whether a function call may give different results in two trials.
func (k *Knowledge) callVaries(n *pg_query.FuncCall) bool {
	name := functionName(n)
	if traits, known := k.Functions[name]; !known || traits.Volatile {
		return true
	}
	switch name {
	case "now", "transaction_timestamp", "statement_timestamp":
		return true
	case "age": // with one argument: from the current date
		return len(n.GetArgs()) == 1
	}
	return false
}

// attributeVaries reports whether x.name may be a call of a volatile function, name(x).
func (k *Knowledge) attributeVaries(name string) bool {
	return k.Functions[name].Volatile
}

// relationVaries reports whether a relation that is not a CTE may give different rows in two trials. A name without a
// schema is that of a system catalog, in which the tables that hoisting creates appear.
func (k *Knowledge) relationVaries(n *pg_query.RangeVar) bool {
	switch n.GetSchemaname() {
	case "", "pg_catalog", "information_schema":
		return true
	}
	return k.Relations[relationOf(n)]
}

// isTimeWord reports whether a string stands for the current time if it is read as a date or a timestamp.
func isTimeWord(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "now", "today", "yesterday", "tomorrow":
		return true
	}
	return false
}

// functionName returns the last part of a function's name.
func functionName(n *pg_query.FuncCall) string { return pgparse.Last(n.GetFuncname()) }
