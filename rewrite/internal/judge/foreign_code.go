package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// A body in another language than SQL and PL/pgSQL is not parsed: a word in it may be the name of a table, or not. Such
// a function runs with the rights of the replay role, which cannot read the engine's tables, so that it may be
// replayed. Its words count as names only where rights do not protect these tables: in functions that run with the
// rights of their owner, and in a shadow database in which the role may read more than the copies.

// isForeignCode reports whether a function is in a language whose bodies are not parsed.
func isForeignCode(f *catalog.Function) bool { return f.Language != "sql" && f.Language != "plpgsql" }

// readersOf returns the functions and relations of one catalog that read a protected table. It adds those that do so
// only according to words in a body of foreign code to mayRead and mayCall.
func (n *names) readersOf(x *catalog.Index, protected map[Table]bool, o Options, f *functions) (map[*catalog.Function]bool, map[Table]bool) {
	all, allRelations := readersIn(x.Catalog, protected, o.Limits, f, func(*catalog.Function) bool { return true })
	unprotected := x == o.Shadow && n.readable(x, o)
	words := func(g *catalog.Function) bool {
		return !isForeignCode(g) || g.Definer || unprotected || x == o.Shadow && namesNeighbour(g, o)
	}
	certain, relations := readersIn(x.Catalog, protected, o.Limits, f, words)
	var definers []*catalog.Function // that call foreign code, which has their rights then
	for g := range all {
		if g.Definer && !certain[g] {
			definers = append(definers, g)
		}
	}
	if len(definers) > 0 {
		certain, relations = readersIn(x.Catalog, protected, o.Limits, f, words, definers...)
	}
	for g := range all {
		if !certain[g] {
			n.mayRead[g] = true
		}
	}
	maps.Copy(n.mayCall, allRelations)
	return certain, relations
}

// readable reports whether the role of the shadow database may read a relation outside the copies that has the name of
// a protected one.
func (n *names) readable(shadow *catalog.Index, o Options) bool {
	return slices.ContainsFunc(shadow.Catalog.Relations, func(r catalog.Relation) bool {
		return n.Protected[r.Name] && !r.Hidden && !slices.Contains(o.Neighbours, r.Schema)
	})
}

// namesNeighbour reports whether a body contains the name of the schema of a neighbour: on another one it would read
// the wrong rows.
func namesNeighbour(f *catalog.Function, o Options) bool {
	text := strings.ToLower(f.Body)
	return slices.ContainsFunc(o.Neighbours, func(schema string) bool { return ident.ContainsWord(text, strings.ToLower(schema)) })
}
