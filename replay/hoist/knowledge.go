package hoist

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Relation is the name of a relation as stored in the catalog.
type Relation = ident.Table

// relationOf returns the name of a relation in FROM.
func relationOf(n *pg_query.RangeVar) Relation {
	return Relation{Schema: n.GetSchemaname(), Name: n.GetRelname()}
}

// Traits are the properties of a function name: a trait that holds for any overload, in any schema, is set.
type Traits struct {
	Volatile       bool // pg_proc.provolatile = 'v', or a DP function
	Aggregate      bool // pg_proc.prokind is 'a' or 'w'
	ReturnsSet     bool // pg_proc.proretset
	AlwaysVolatile bool // every overload is a plain function with pg_proc.provolatile = 'v'
	PlainFunction  bool // an overload is neither an aggregate nor a window function
	// Transaction: its result may depend on the calling transaction, or it may change the results of later calls in the
	// same transaction: now(), txid_current(), set_config(), and functions that call them.
	Transaction bool
}

// Knowledge holds facts from the catalog of the query's database. It is read-only.
type Knowledge struct {
	Functions map[string]Traits // by name, as stored in the catalog; a function that is missing counts as volatile
	Operators map[string]bool   // the operators whose function is volatile
	// Relations are those that do not give the same rows in every trial: random views, foreign tables, tables with row
	// security.
	Relations map[Relation]bool
	Views     map[Relation]bool // the views among all relations
}

// volatileCall reports whether a call may give different results in two trials.
func (k *Knowledge) callVaries(n *pg_query.FuncCall) bool {
	name := functionName(n)
	if traits, known := k.Functions[name]; !known || traits.Volatile {
		return true
	}
	switch name {
	case "now", "transaction_timestamp", "statement_timestamp":
		return true
	case "age": // with one argument, it is relative to the current date
		return len(n.GetArgs()) == 1
	}
	return false
}

// volatileAttribute reports whether x.name may be a call of a volatile function.
func (k *Knowledge) attributeVaries(name string) bool {
	return k.Functions[name].Volatile
}

// volatileRelation reports whether a relation that is not a CTE may give different rows in two trials. A name without a
// schema is a system catalog, which shows the tables that hoisting creates.
func (k *Knowledge) relationVaries(n *pg_query.RangeVar) bool {
	switch n.GetSchemaname() {
	case "", "pg_catalog", "information_schema":
		return true
	}
	return k.Relations[relationOf(n)]
}

// isTimeWord reports whether a string, as a date or a time, may mean another moment in every trial.
func isTimeWord(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "now", "today", "yesterday", "tomorrow":
		return true
	}
	return false
}

// functionName returns the last part of a function's name.
func functionName(n *pg_query.FuncCall) string { return pgparse.Last(n.GetFuncname()) }
