package judge

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/reach"
)

// A body in another language than SQL and PL/pgSQL is not parsed: a word in it may be the name of a table, or not. Its
// words count as names if it executes SQL by the functions of its language, and where rights do not protect the engine's
// tables: in functions that run with the rights of their owner, and in a shadow database in which the role may read more
// than the copies. A call of such a function goes to the copies of it, one in the schema of each neighbour, whose bodies
// name tables of that schema alone. With an engine for each world, nothing is redirected, and words do not count: an
// engine has the tables of its world alone.

// isForeignCode reports whether a function is in a language whose bodies are not parsed.
func isForeignCode(f *catalog.Function) bool { return f.Language != "sql" && f.Language != "plpgsql" }

// readersOf returns the functions and relations of one catalog that read a protected table. It adds those that do so
// only according to words in a body of foreign code to mayRead and mayCall.
func (n *names) readersOf(x *catalog.Index, protected map[Table]bool, o Options, f *functions) (map[*catalog.Function]bool, map[Table]bool) {
	graph := n.graph(x, o, f)
	all := graph.From(reach.Start{Relations: protected})
	unprotected := x == o.Shadow && n.readable(x, o)
	words := func(g *catalog.Function) bool {
		switch {
		case !isForeignCode(g):
			return true
		case o.OwnEngines, x != o.Shadow && slices.Contains(o.Neighbours, g.Schema): // a copy, in a database that is both
			return false
		}
		return executesSQL(g) || g.Definer || unprotected || x == o.Shadow && namesNeighbour(g, o)
	}
	certain := graph.From(reach.Start{Relations: protected, Words: words})
	var definers []*catalog.Function // that call foreign code, which has their rights then
	for g := range all.Functions {
		if g.Definer && !certain.Functions[g] {
			definers = append(definers, g)
		}
	}
	if len(definers) > 0 {
		certain = graph.From(reach.Start{Relations: protected, Words: words, Functions: definers})
	}
	for g := range all.Functions {
		if !certain.Functions[g] {
			n.mayRead[g] = true
		}
	}
	maps.Copy(n.mayCall, all.Relations)
	return certain.Functions, certain.Relations
}

// sqlCalls matches the functions by which PL/Python, PL/Perl, PL/Tcl, PL/v8, PL/Rust, PL/R, PL/Lua and PL/Java execute SQL.
var sqlCalls = regexp.MustCompile(`(?i)\bplpy\s*\.\s*(execute|prepare|cursor)\b|\bspi_\w+|\bspi\s*::|\bplv8\s*\.\s*(execute|prepare|cursor)\b|\bpg\.spi\.\w+|\bdbGetQuery\b|\bserver\s*\.\s*(execute|prepare|rows|find)\b|jdbc:default:connection`)

// executesSQL reports whether a body of foreign code executes SQL.
func executesSQL(f *catalog.Function) bool { return sqlCalls.MatchString(f.Body) }

// foreignBody checks the words of a copy of foreign code: every table of the neighbour that it names must have the
// schema of the neighbour, and it must not name the schema of another one. It adds these tables to relations.
func (j *checker) foreignBody(neighbour string, f *catalog.Function, relations map[Table]bool) string {
	text := strings.ToLower(f.Body)
	for _, other := range j.neighbours {
		if other != neighbour && ident.ContainsWord(text, strings.ToLower(other)) {
			return "contains the name of the schema " + other + " of another neighbour"
		}
	}
	for t := range j.shadow.Relations {
		if name := strings.ToLower(t.Name); t.Schema == neighbour && ident.ContainsWord(text, name) {
			if !isQualified(text, strings.ToLower(neighbour), name) {
				return fmt.Sprintf("contains the name %s without the schema %s before it", t.Name, neighbour)
			}
			relations[t] = true
		}
	}
	return ""
}

// isQualified reports whether each occurrence of a word in a text has a schema before it.
func isQualified(text, schema, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return true
		}
		start, end := from+i, from+i+len(word)
		from = end
		if start > 0 && ident.IsNameByte(text[start-1]) || end < len(text) && ident.IsNameByte(text[end]) {
			continue // a part of another word
		}
		before, dotted := strings.CutSuffix(strings.TrimRight(text[:start], `"`), ".")
		before, is := strings.CutSuffix(strings.TrimRight(before, `"`), schema)
		if !dotted || !is || before != "" && ident.IsNameByte(before[len(before)-1]) {
			return false
		}
	}
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
