package hoist

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// Relation names a relation as the catalog spells it.
type Relation struct{ Schema, Name string }

// Traits say what a function does: what holds of any overload, in any schema, holds.
type Traits struct {
	Volatile  bool // pg_proc.provolatile = 'v', or a DP function
	Aggregate bool // pg_proc.prokind is 'a' or 'w'
	Set       bool // pg_proc.proretset
	Always    bool // every overload is a plain function with pg_proc.provolatile = 'v'
	Plain     bool // an overload is neither an aggregate nor a window function
	// Transaction: its result may depend on the transaction that it is called in, or change what later calls in the same
	// transaction give: now(), txid_current(), set_config(), and whatever calls them.
	Transaction bool
}

// Knowledge is what the catalog of the database that the query runs in says. It is only read.
type Knowledge struct {
	Functions map[string]Traits // by name, as the catalog spells it; one that is missing counts as volatile
	Operators map[string]bool   // the operators whose function is volatile
	// Relations are those that do not give the same rows in every trial: views over chance, foreign tables, tables with
	// row security.
	Relations map[Relation]bool
	Views     map[Relation]bool // those that are views
}

// volatileCall reports whether a call may give different results in two trials.
func (k *Knowledge) volatileCall(n *pg_query.FuncCall) bool {
	name := functionName(n)
	if traits, known := k.Functions[name]; !known || traits.Volatile {
		return true
	}
	switch name {
	case "now", "transaction_timestamp", "statement_timestamp":
		return true
	case "age": // of one argument: until today
		return len(n.GetArgs()) == 1
	}
	return false
}

// volatileAttribute reports whether x.name may be a call of a volatile function.
func (k *Knowledge) volatileAttribute(name string) bool {
	return k.Functions[name].Volatile
}

// volatileRelation reports whether a relation that is no CTE may give different rows in two trials. Without a
// schema it is a system catalog, which sees the tables that hoisting makes.
func (k *Knowledge) volatileRelation(n *pg_query.RangeVar) bool {
	switch n.GetSchemaname() {
	case "", "pg_catalog", "information_schema":
		return true
	}
	return k.Relations[Relation{n.GetSchemaname(), n.GetRelname()}]
}

// tellsTime reports whether a string may mean another moment in every trial, as a date or a time.
func tellsTime(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "now", "today", "yesterday", "tomorrow":
		return true
	}
	return false
}

// functionName returns the last part of a function's name.
func functionName(n *pg_query.FuncCall) string { return lastString(n.GetFuncname()) }

func lastString(parts []*pg_query.Node) string {
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1].GetString_().GetSval()
}
