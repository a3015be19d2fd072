// Package judge decides what a statement may read and call in a replay: relations, functions, operators, types, and
// strings and parameters that may become names.
//
// In: catalogs, as data, and lists of relations and functions, from which New makes Rules; then the nodes of a
// statement that name something, each passed to the method of Statement for its kind. Out: refusals, each with its
// Reason; the relations and DP functions that the statement uses; the assumptions that were made. Functions and views
// of the shadow database are checked by what their bodies name: for this, the caller's walk over a tree is part of the
// Options. The package is pure.
package judge

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/reach"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// Table is the name of a relation or a function as stored in the catalog.
type Table = ident.Table

// Options are what Rules depend on.
type Options struct {
	Protected, Public, Others []Table
	Source                    *catalog.Index    // of the client's database; nil = not known
	Shadow                    *catalog.Index    // of the shadow database; nil = not known
	Neighbours                []string          // the schemas of the copies in the shadow database
	ShadowPath                []string          // further schemas of replays, for functions, operators and types
	OwnEngines                bool              // each neighbour has an engine with its tables alone
	Database                  string            // of the protected tables; "" = names with a database are refused
	Signatures                []claim.Signature // of DP functions, which replays may call
	AllowFunctions            []string          // further functions declared safe, or AnyFunction
	Settings                  []string          // of an application, which hold claims
	Limits                    body.Limits       // of bodies and views that are parsed
	// Walk visits a statement of the body of a function, or of a view, and calls the methods of its Statement.
	Walk func(*Statement, protoreflect.Message)
}

// Rules decide what statements may read and call. They are safe for concurrent use.
type Rules struct {
	options   Options
	names     *names
	functions *functions
	opaque    map[*catalog.Function]bool // of the source: functions whose reads cannot be derived
	setters   *setters
	reach     *reach.Question
	contents  *contents
}

// New analyses the catalogs.
func New(o Options) *Rules {
	f := newFunctions(o)
	n := newNames(o, f)
	return &Rules{
		options: o, names: n, functions: f, opaque: newOpaque(o.Source, o.Limits, f), setters: newSetters(f), reach: n.question(o, f),
		contents: &contents{all: map[any]*uses{}},
	}
}

// Settle replaces the functions in the doubt of a query by what they change and create according to the catalog, and
// reports whether it had to assume that some change nothing (AssumedSetters).
func (r *Rules) Settle(q capture.Query) (settled capture.Query, assumed bool) {
	return r.setters.settle(q), r.setters.assumes(q.Doubt)
}

// IsPublicOrOther reports whether a relation is listed as public or as one without a copy.
func (r *Rules) IsPublicOrOther(t Table) bool {
	kind := r.names.Kinds[t]
	return kind == resolve.KindPublic || kind == resolve.KindOther
}

// Names returns the names, without schemas, of the relations, functions and types of the source through which a
// statement may read a protected table or run a DP function, and of the functions that are declared, in order; nil =
// every statement may. ok is false if the source is not known.
func (r *Rules) Names() (names []string, ok bool) {
	x := r.options.Source
	if x == nil {
		return nil, false
	}
	found, named := r.reach.Names()
	if r.names.Protected[resolve.AnyTable] || r.functions.anyUser || !named || r.readsUnnamed(x.Catalog, found) {
		return nil, true
	}
	maps.Copy(found, r.names.Protected)
	for t := range r.names.mayCall {
		found[t.Name] = true
	}
	for t := range r.names.stored { // REFRESH
		found[t.Name] = true
	}
	for i := range x.Catalog.Functions {
		if f := &x.Catalog.Functions[i]; r.names.readers[f] || r.names.mayRead[f] || r.functions.declared(f.Schema, f.Name) {
			found[f.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), true
}

// readsUnnamed reports whether a cast or an operator that syntax implies calls a function that reads a protected table:
// the text of a statement need not name them. It adds other operators, and types, to names.
func (r *Rules) readsUnnamed(c *catalog.Catalog, names map[string]bool) bool {
	readers := map[Table]bool{}
	for _, found := range []map[*catalog.Function]bool{r.names.readers, r.names.mayRead} {
		for f := range found {
			readers[Table{Schema: f.Schema, Name: f.Name}] = true
		}
	}
	reads := func(t Table) bool { return readers[t] }
	unnamed := !reach.AddOperators(names, c, reads) || slices.ContainsFunc(c.ImplicitCasts, reads)
	for _, t := range c.Types {
		if slices.ContainsFunc(t.Calls, reads) {
			names[t.Name] = true
			unnamed = unnamed || t.Schema == "pg_catalog" // by a cast
		}
	}
	return unnamed
}

// names holds the relations that names may refer to, and what the catalogs say about them and about functions. It is
// read-only after construction.
type names struct {
	*resolve.Relations
	bases   map[Table][]Table          // relations over protected tables, according to the catalog: these tables
	refused map[Table]fault            // relations that are listed, or depend on listed ones, but cannot be replayed
	readers map[*catalog.Function]bool // functions of either catalog that read a protected table
	mayRead map[*catalog.Function]bool // functions that do so only according to words in a body that is not parsed
	callers map[Table]bool             // relations of the source that read a protected table, or call a function that does
	mayCall map[Table]bool             // relations of both that call one of mayRead
	copies  map[Table]functionCopy     // of functions of the source, by schema and name
	graphs  map[*catalog.Index]*reach.Graph
	runsDP  *reach.Set // from which a DP function is reached, in the source
	noise
}

// newNames indexes the listed relations and, from the catalogs, their readers.
func newNames(o Options, f *functions) *names {
	n := &names{
		Relations: resolve.NewRelations(o.Source, o.Protected, o.Public, o.Others),
		refused:   map[Table]fault{}, readers: map[*catalog.Function]bool{}, mayRead: map[*catalog.Function]bool{}, mayCall: map[Table]bool{}, copies: map[Table]functionCopy{}, graphs: map[*catalog.Index]*reach.Graph{},
	}
	n.dependents(o, f, newChecker(o, n, f))
	return n
}
