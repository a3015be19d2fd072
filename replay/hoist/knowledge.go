package hoist

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Relation is the qualified name of a relation as stored in the catalog.
type Relation = ident.Table

// relationOf returns the name of a relation in FROM.
func relationOf(n *pg_query.RangeVar) Relation {
	return Relation{Schema: n.GetSchemaname(), Name: n.GetRelname()}
}

// Traits are the properties of a name. A trait is set if it holds for any function of that name, in any schema, or for the
// functions of an operator of that name, or those of the casts to and the checks of a type of that name.
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
	// Functions are by name, as stored in the catalog, with operators and types that are not built in. A missing function
	// counts as volatile.
	Functions map[string]Traits
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

// namesOf returns the names by which a node other than a call may call functions: its operator, its type, or what may be
// the name of a column or that of a function, as x.f is f(x).
func namesOf(m proto.Message) (kind string, names []string) {
	switch n := m.(type) {
	case *pg_query.A_Expr:
		return "operator", []string{pgparse.Last(n.GetName())}
	case *pg_query.SubLink:
		return "operator", []string{pgparse.Last(n.GetOperName())}
	case *pg_query.SortBy:
		return "operator", []string{pgparse.Last(n.GetUseOp())}
	case *pg_query.TypeName:
		return "type", []string{pgparse.Last(n.GetNames())}
	case *pg_query.ColumnRef:
		if len(n.GetFields()) > 1 {
			return "function", []string{pgparse.Last(n.GetFields())}
		}
	case *pg_query.A_Indirection:
		for _, i := range n.GetIndirection() {
			names = append(names, i.GetString_().GetSval())
		}
		return "function", names
	}
	return "", nil
}

// any reports whether a node other than a call has a name with a trait.
func (k *Knowledge) any(m proto.Message, trait func(Traits) bool) bool {
	_, names := namesOf(m)
	return slices.ContainsFunc(names, func(name string) bool { return trait(k.Functions[name]) })
}

// reader names a function, an operator or a type in a node that may read relations; "" = none.
func (k *Knowledge) reader(m proto.Message) string {
	if n, ok := m.(*pg_query.FuncCall); ok {
		if traits, known := k.Functions[functionName(n)]; !known || traits.Reads {
			return "the function " + functionName(n)
		}
		return ""
	}
	kind, names := namesOf(m)
	for _, name := range names {
		if k.Functions[name].Reads {
			return "the " + kind + " " + name
		}
	}
	return ""
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
