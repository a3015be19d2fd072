package reach

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// Options are what a Question depends on.
type Options struct {
	Graph     *Graph
	Catalog   *catalog.Index // of the graph; nil = not known
	Protected map[Table]bool // relations with protected rows; one without a schema stands for all schemas
	Declared  []Table        // the DP functions; one without a schema stands for all schemas
	Functions *Set           // from which one of them is reached
	// ByName: the catalog is not that of the client's database, so that a name without its schema decides.
	ByName bool
	Limits body.Limits
}

// Question is whether a statement runs a declared DP function and touches a protected relation. It is safe for
// concurrent use.
type Question struct {
	options   Options
	functions *Set // from which a DP function is reached
	protected *Set // from which a protected relation is reached
	planned   *Set // from which a routine that reaches both is reached when the server plans a statement
	executors *Set // from which a text that is built at run time is executed
}

// NewQuestion follows the edges of the graph.
func NewQuestion(o Options) *Question {
	q := &Question{
		options:   o,
		functions: o.Functions,
		protected: o.Graph.From(Start{Relations: o.Protected}),
	}
	var folded []*catalog.Function
	for f := range q.functions.Functions {
		if f.Volatility != "volatile" && q.protected.Functions[f] {
			folded = append(folded, f)
		}
	}
	q.planned = o.Graph.From(Start{Functions: folded, Planned: true})
	q.executors = o.Graph.From(Start{Functions: o.Graph.executors()})
	return q
}

// Names returns the names, without schemas, of which a statement that runs a DP function holds one. ok is false if it may
// hold none, because of a cast or an operator that syntax implies.
func (q *Question) Names() (names map[string]bool, ok bool) {
	names = q.functions.Names()
	for _, name := range Executing() {
		names[name] = true
	}
	if q.options.Catalog == nil {
		return names, true
	}
	c := q.options.Catalog.Catalog
	if slices.ContainsFunc(c.EventTriggers, func(e catalog.EventTrigger) bool { return q.functions.Has(e.Function) }) {
		for _, command := range []string{"create", "alter", "drop", "grant", "revoke", "comment", "refresh", "security", "import", "into", "reassign"} {
			names[command] = true
		}
	}
	for _, t := range c.Types {
		if slices.ContainsFunc(t.Default, q.functions.Has) {
			names[t.Name] = true
		}
	}
	ok = !slices.ContainsFunc(c.Casts, func(c catalog.Cast) bool { return q.functions.Has(c.Function) })
	return names, AddOperators(names, c, q.functions.Has) && ok
}

// AddOperators adds the operators of some functions to names. It returns false if syntax implies one of them: IN is =,
// BETWEEN is >= and <=, LIKE is ~~, SIMILAR TO is ~.
func AddOperators(names map[string]bool, c *catalog.Catalog, of func(function Table) bool) bool {
	ok := true
	for _, o := range c.Operators {
		if of(o.Function) {
			names[o.Name] = true
			ok = ok && !slices.Contains([]string{"=", "<>", "<", ">", "<=", ">=", "~~", "~~*", "!~~", "!~~*", "~", "!~"}, o.Name)
		}
	}
	return ok
}

// Statement is what a Question is asked about.
type Statement struct {
	Node  *pg_query.Node
	Query capture.Query
	Path  resolve.Path
	// Beside restricts the question to what the statement runs beside the query that it runs.
	Beside bool
	// Claims: the statement makes a claim, and so says that it is a DP query.
	Claims bool
}

// Answer says through what a statement reaches a DP function and a protected relation; "" = it does not.
type Answer struct {
	Function, Relation string
	Calls              []*pg_query.FuncCall // the calls of DP functions in the statement and in the texts that it executes
	Hidden             bool                 // it reaches others, too
}

// Of answers the question.
func (q *Question) Of(s Statement) Answer {
	w := &walker{question: q, statement: s, functions: q.functions, protected: q.protected}
	if s.Claims {
		w.answer.Function = "its claim"
	}
	if s.Beside {
		w.beside(s.Node)
	} else {
		w.run(s.Node)
	}
	return w.answer
}

// executors returns the functions of the catalog that execute a text built at run time, or whose bodies are not parsed
// and may.
func (g *Graph) executors() (all []*catalog.Function) {
	seen := map[*catalog.Function]bool{}
	for word, functions := range g.byWord {
		if word != "execute" && !strings.HasPrefix(word, "spi_") && word != "plpy" && !Executes(word) {
			continue
		}
		for _, f := range functions {
			if seen[f] {
				continue
			}
			seen[f] = true
			if names := g.namesIn(f); names == nil || names.Dynamic || names.Executes(Executes) {
				all = append(all, f)
			}
		}
	}
	return all
}
