package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// functionCopy says whether calls of a function that reads protected tables can be redirected to the neighbours' own
// copies of it.
type functionCopy struct {
	fault  string         // why not; "" = they can
	tables map[Table]bool // the protected tables that it reads
}

// copyFunctions checks, for every function that reads a protected table, the functions of its name in the neighbours'
// schemas: each schema must have the same overloads, and each of these must read only that schema and public tables.
func (n *names) copyFunctions(o Options, j *checker) {
	schemas := map[string]map[string]bool{} // by function name, the schemas with a reader
	for f := range n.readers {
		if !n.Source.Has(f) {
			continue
		}
		if schemas[f.Name] == nil {
			schemas[f.Name] = map[string]bool{}
		}
		schemas[f.Name][f.Schema] = true
	}
	for name, in := range schemas {
		for schema := range in {
			c := functionCopy{tables: map[Table]bool{}}
			switch {
			case j == nil || len(o.Neighbours) == 0:
				c.fault = "the neighbours' copies are not known"
			case len(in) > 1:
				c.fault = "a function of the same name in another schema reads one too"
			default:
				c.fault = n.functionCopyFault(schema, name, o.Neighbours, j, c.tables)
			}
			n.copies[Table{Schema: schema, Name: name}] = c
		}
	}
}

func (n *names) functionCopyFault(schema, name string, neighbours []string, j *checker, tables map[Table]bool) string {
	originals := n.Source.Find(schema, name, nil)
	for _, neighbour := range neighbours {
		copies := j.shadow.Find(neighbour, name, nil)
		if len(copies) == 0 {
			return "schema " + neighbour + " has no copy of it"
		}
		for _, f := range originals {
			if !slices.ContainsFunc(copies, func(c *catalog.Function) bool { return sameSignature(f, c) }) {
				return fmt.Sprintf("schema %s has no copy with the arguments (%s) and the same result", neighbour, f.Arguments)
			}
		}
		if len(copies) != len(originals) {
			return "schema " + neighbour + " has another overload of it"
		}
		reached := map[Table]bool{}
		for _, c := range copies {
			if fault := j.function(neighbour, c); fault != "" {
				return "the copy in schema " + neighbour + " " + fault
			}
			j.reach(neighbour, c, reached)
		}
		for t, kind := range n.Kinds {
			if kind == resolve.KindProtected && reached[Table{Schema: neighbour, Name: t.Name}] {
				tables[t] = true
				for _, base := range n.bases[t] {
					tables[base] = true
				}
			}
		}
	}
	return ""
}

// callOfReader checks a call that may refer to a function that reads protected tables, and returns the function's
// schema.
func (n *names) callOfReader(schema, name string, users []*catalog.Function, builtin bool) (Table, string) {
	f := Table{Schema: users[0].Schema, Name: name}
	switch {
	case schema == "" && builtin:
		return f, "and shares its name with a built-in one"
	case slices.ContainsFunc(users, func(u *catalog.Function) bool { return u.Schema != f.Schema }):
		return f, "and has overloads in several schemas of the search path"
	}
	c := n.copies[f]
	if c.fault != "" {
		return f, "and " + c.fault
	}
	return f, ""
}

// isReader reports whether a function of either catalog reads a protected table.
func (n *names) isReader(f *catalog.Function) bool { return n.readers[f] }

// findReaders marks the functions of both catalogs that read protected tables, and records the public relations that
// call one. In the engine's database protected tables are identified by schema and name, in the shadow database by
// name.
func (n *names) findReaders(o Options, f *functions, shadow *catalog.Index) {
	n.callers = n.markReaders(n.Source, n.protectedIn(o, false), o, f)
	n.markReaders(shadow, n.protectedIn(o, true), o, f)
}

// protectedIn returns the relations with protected rows as a catalog of the engine has them, or byName.
func (n *names) protectedIn(o Options, byName bool) map[Table]bool {
	protected := map[Table]bool{}
	if byName {
		for name := range n.Protected {
			protected[Table{Schema: "", Name: name}] = true
		}
		return protected
	}
	for _, t := range o.Protected {
		protected[t] = true
	}
	for t := range n.bases {
		protected[t] = true
	}
	return protected
}

// markReaders marks the readers of one catalog, and returns its relations that read a protected table, or call a
// function that does.
func (n *names) markReaders(x *catalog.Index, protected map[Table]bool, o Options, f *functions) map[Table]bool {
	if x == nil {
		return nil
	}
	functions, relations := n.readersOf(x, protected, o, f)
	maps.Copy(n.readers, functions)
	for _, t := range o.Public {
		for read := range x.Closure(t) {
			if relations[read] {
				n.refused[t] = noCopy("is listed in privacy.public, but calls a function that reads a protected table")
			}
		}
	}
	return relations
}

// sameSignature reports whether a neighbour's function can replace another: same kind, arguments with their names,
// types and defaults, and result, where the neighbour's schema counts as the other's.
func sameSignature(f, copied *catalog.Function) bool {
	same := func(a, b string) bool {
		return withoutSchema(a, f.Schema) == withoutSchema(withoutSchema(b, copied.Schema), f.Schema)
	}
	return f.Kind == copied.Kind && same(f.Arguments, copied.Arguments) && same(f.Result, copied.Result)
}

// withoutSchema removes a schema from the names in the text of types and expressions that a catalog prints.
func withoutSchema(text, schema string) string {
	for _, spelling := range []string{ident.Quote(schema) + ".", schema + "."} {
		var b strings.Builder
		for {
			i := strings.Index(text, spelling)
			if i < 0 {
				break
			}
			b.WriteString(text[:i])
			if i > 0 && (ident.IsNameByte(text[i-1]) || text[i-1] == '"' || text[i-1] == '.') {
				b.WriteString(spelling)
			}
			text = text[i+len(spelling):]
		}
		text = b.String() + text
	}
	return text
}
