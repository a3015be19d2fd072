// Package reach answers what the execution of a statement may touch: relations and routines, over every edge that a
// catalog has or that a body, an expression or a text shows.
//
// In: a catalog, as data, and the tree of a statement. A Graph has the edges of the catalog; From follows them backwards
// from some relations or routines to all from which they are reached; a Question compares the names of a statement with
// the result. The package is pure.
package reach

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Table is the name of a relation, a routine or a type as stored in the catalog.
type Table = ident.Table

// Graph holds what uses what in one catalog, by the used object. It is not safe for concurrent use before the last
// From.
type Graph struct {
	index  *catalog.Index
	limits body.Limits
	texts  func(schema, name string) (risky, byName bool)

	byWord    map[string][]*catalog.Function    // by the words in their bodies, in lower case
	escaped   []*catalog.Function               // whose bodies may contain any name in escaped form
	names     map[*catalog.Function]*body.Names // of parsed bodies; nil = it could not be parsed
	callers   map[Table][]*catalog.Function
	readers   map[string][]reader // by the names of the relations that they read
	typed     map[Table][]*catalog.Function
	operators map[Table][]catalog.Operator // by their functions
	types     map[Table][]Table            // by the functions that their values call
	casts     map[Table][]catalog.Cast     // by their functions

	relationCallers, relationReaders                         map[Table][]Table
	effectCallers, effectReaders, effectWriters, effectTypes map[Table][]effect
	executed                                                 []executedText
}

// reader is a function that reads a relation according to the catalog.
type reader struct {
	function *catalog.Function
	reads    Table
}

// effect is one of a relation's.
type effect struct {
	of Table
	*catalog.Effect
}

// executedText holds expressions of a relation that may execute a text, in lower case.
type executedText struct {
	of     Table
	events catalog.Event
	text   string
}

// executing matches the names of functions that execute a text, or read the relation that a text names.
var executing = regexp.MustCompile(`(?i)^(query|table|schema|database|cursor)_to_xml(schema|_and_xmlschema)?$|^ts_(stat|rewrite)$|^crosstab(\d+|_hash)?$|^connectby$|^dblink|^xpath_table$`)

// Executes reports whether a function, built in or of an extension, executes a text.
func Executes(name string) bool { return executing.MatchString(name) }

// Executing returns the names of the built-in functions that execute a text, or read whatever a schema has.
func Executing() []string {
	all := []string{"ts_stat", "ts_rewrite"}
	for _, of := range []string{"query", "table", "schema", "database"} {
		all = append(all, of+"_to_xml", of+"_to_xmlschema", of+"_to_xml_and_xmlschema")
	}
	return append(all, "cursor_to_xml", "cursor_to_xmlschema")
}

// New returns the graph of a catalog; nil has no edges. texts is as in body.NamesOf.
func New(x *catalog.Index, limits body.Limits, texts func(schema, name string) (risky, byName bool)) *Graph {
	g := &Graph{
		index: x, limits: limits, texts: texts, byWord: map[string][]*catalog.Function{}, names: map[*catalog.Function]*body.Names{},
		callers: map[Table][]*catalog.Function{}, readers: map[string][]reader{}, typed: map[Table][]*catalog.Function{},
		operators: map[Table][]catalog.Operator{}, types: map[Table][]Table{}, casts: map[Table][]catalog.Cast{},
		relationCallers: map[Table][]Table{}, relationReaders: map[Table][]Table{},
		effectCallers: map[Table][]effect{}, effectReaders: map[Table][]effect{}, effectWriters: map[Table][]effect{}, effectTypes: map[Table][]effect{},
	}
	if x == nil {
		return g
	}
	for i := range x.Catalog.Functions {
		g.function(&x.Catalog.Functions[i])
	}
	for i := range x.Catalog.Relations {
		g.relation(&x.Catalog.Relations[i])
	}
	for _, o := range x.Catalog.Operators {
		g.operators[o.Function] = append(g.operators[o.Function], o)
	}
	for _, c := range x.Catalog.Casts {
		g.casts[c.Function] = append(g.casts[c.Function], c)
	}
	for _, t := range x.Catalog.Types {
		if t.Schema == "pg_catalog" { // by casts alone
			continue
		}
		for _, f := range slices.Concat(t.Calls, t.Support) {
			g.types[f] = append(g.types[f], Table{Schema: t.Schema, Name: t.Name})
		}
	}
	return g
}

func (g *Graph) function(f *catalog.Function) {
	for _, t := range f.Reads {
		g.readers[t.Name] = append(g.readers[t.Name], reader{f, t})
	}
	for _, t := range f.Calls {
		g.callers[t] = append(g.callers[t], f)
	}
	for _, t := range f.Types {
		g.typed[t] = append(g.typed[t], f)
	}
	if f.Body == "" || f.Language == "sql" && body.IsAtomic(f.Body) {
		return
	}
	text := strings.ToLower(f.Body)
	if strings.Contains(text, "u&") || strings.Contains(text, `\`) {
		g.escaped = append(g.escaped, f)
	}
	words := bodyWords(text)
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		g.byWord[word] = append(g.byWord[word], f)
	}
}

func (g *Graph) relation(r *catalog.Relation) {
	for _, t := range r.Reads {
		g.relationReaders[t] = append(g.relationReaders[t], r.Table)
	}
	for _, t := range r.Calls {
		g.relationCallers[t] = append(g.relationCallers[t], r.Table)
	}
	for _, name := range r.Types { // its values are compared and printed
		for _, t := range g.index.Types[name.Name] {
			for _, f := range t.Support {
				if t.Schema == name.Schema {
					g.relationCallers[f] = append(g.relationCallers[f], r.Table)
				}
			}
		}
	}
	if slices.ContainsFunc(bodyWords(strings.ToLower(r.Definition)), Executes) {
		g.executed = append(g.executed, executedText{r.Table, catalog.Select, strings.ToLower(r.Definition)})
	}
	for i := range r.Effects {
		e := effect{r.Table, &r.Effects[i]}
		for _, edges := range []struct {
			to    map[Table][]effect
			names []Table
		}{{g.effectCallers, e.Calls}, {g.effectReaders, e.Reads}, {g.effectWriters, e.Writes}, {g.effectTypes, e.Types}} {
			for _, t := range edges.names {
				edges.to[t] = append(edges.to[t], e)
			}
		}
		if e.Text != "" {
			g.executed = append(g.executed, executedText{r.Table, e.Events, strings.ToLower(e.Text)})
		}
	}
}

// bodyWords returns the words of a text, including keywords and words in strings and comments.
func bodyWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r < 0x80 && !ident.IsNameByte(byte(r)) })
}

// candidates returns the functions whose bodies may contain a name: those with all of its words.
func (g *Graph) candidates(name string) []*catalog.Function {
	found := g.escaped
	if words := bodyWords(strings.ToLower(name)); len(words) > 0 {
		found = slices.Concat(found, g.byWord[words[0]])
	}
	return found
}

// namesIn returns the names in the body of a function; nil = it cannot be parsed, so that its words count.
func (g *Graph) namesIn(f *catalog.Function) *body.Names {
	names, done := g.names[f]
	if !done {
		names, _ = body.NamesOf(g.limits, f.Language, f.Body, g.texts)
		g.names[f] = names
	}
	return names
}
