package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Edge assigns the rows of Child, and of tables below it, to units: a row belongs to the units of those rows of Parent,
// and of tables below it, whose columns On equal its Columns. A NULL among Columns references nothing. The rows do not
// belong to the units that an edge of an act names.
type Edge struct {
	Child, Parent *Relation
	Columns, On   []string
	Covers        map[*Relation]bool // the tables, among child and those below it, to whose own rows it applies
	Declared      bool               // in the configuration: several rows of parent may match
	Keyed         bool               // a foreign key
	Period        bool               // the last column references every range that it overlaps; several rows of parent may match
	Act           bool
	Where         string        // a condition on the rows of child; "" = all
	Element       ident.Element // of the one column, if its values are elements or keys of JSON
	AsText        bool          // values are compared as text
}

// same reports whether two edges match the same rows of the same table, for tables with the columns of both.
func (e Edge) same(other Edge) bool {
	return e.Parent == other.Parent && e.Period == other.Period && slices.Equal(e.Columns, other.Columns) && slices.Equal(e.On, other.On) &&
		e.Where == other.Where && e.Element.Each == other.Element.Each && slices.Equal(e.Element.Keys, other.Element.Keys)
}

// names returns the columns as the configuration spells them.
func (e Edge) names() []string {
	if e.Element.Plain() {
		return e.Columns
	}
	name := e.Columns[0]
	for _, k := range e.Element.Keys {
		if k == "" {
			name += "[]"
		} else {
			name += "->" + k
		}
	}
	if e.Element.Each {
		name += "[]"
	}
	return []string{name}
}

// String describes an edge in a plan.
func (e Edge) String() string {
	text := fmt.Sprintf("(%s) -> %s (%s)", strings.Join(e.names(), ", "), e.Parent.Table, strings.Join(e.On, ", "))
	if e.Where != "" {
		text += " where " + e.Where
	}
	if e.Declared {
		text += ", declared"
	}
	return text
}

// line returns the edge as a line of privacy.paths that makes the rows belong to units.
func (e Edge) line() string {
	return fmt.Sprintf("- {table: %s, columns: [%s], to: %s, on: [%s]}", e.Child.Table, strings.Join(e.names(), ", "), e.Parent.Table, strings.Join(e.On, ", "))
}

// values returns an item of FROM with the values v of an edge's element in a row of child.
func (e Edge) values(child, alias string) string {
	column := child + "." + ident.Quote(e.Columns[0])
	if e.Element.Each {
		return fmt.Sprintf("unnest(%s) %s(v)", column, alias)
	}
	path := "lax $"
	for _, k := range e.Element.Keys {
		if k == "" {
			path += "[*]"
			continue
		}
		quoted, _ := json.Marshal(k) //nolint:errchkjson // a string
		path += "." + string(quoted)
	}
	return fmt.Sprintf("(SELECT j #>> '{}' AS v FROM jsonb_path_query(%s::jsonb, %s) j) %s", column, ident.Literal(path), alias)
}

// equal returns the condition that a value of the i-th column equals that of parent.
func (e Edge) equal(i int, value, parent string) string {
	operator, cast, on := "=", "", parent+"."+ident.Quote(e.On[i])
	if e.Period && i == len(e.On)-1 {
		operator = "&&"
	}
	if e.AsText {
		cast = "::text"
	}
	return value + cast + " " + operator + " " + on + cast
}

// Match returns the condition that a row of child references a row of parent, by their aliases.
func (e Edge) Match(child, parent string) string {
	if !e.Element.Plain() {
		return fmt.Sprintf("EXISTS (SELECT FROM %s WHERE %s)", e.values(child, "e"), e.equal(0, "e.v", parent)) + e.where(child)
	}
	all := make([]string, len(e.On))
	for i := range e.On {
		all[i] = e.equal(i, child+"."+ident.Quote(e.Columns[i]), parent)
	}
	return strings.Join(all, " AND ") + e.where(child)
}

// where returns the condition of the path, as a further one.
func (e Edge) where(child string) string {
	if e.Where == "" {
		return ""
	}
	return fmt.Sprintf(" AND EXISTS (SELECT FROM (SELECT %s.*) %s WHERE (%s\n))", child, ident.Quote(e.Child.Name), e.Where)
}

// Join returns an item of FROM with the rows of child, a table with its alias, and the condition of Match on it. The
// server can use a hash of the values.
func (e Edge) Join(table, child, parent string) (from, condition string) {
	if e.Element.Plain() {
		return table + " " + child, e.Match(child, parent)
	}
	return fmt.Sprintf("(%s %s CROSS JOIN LATERAL %s)", table, child, e.values(child, "e")), e.equal(0, "e.v", parent) + e.where(child)
}

// declare adds the configured paths and returns the tables that have one by which rows belong to units.
func (g *Graph) declare(o *spec.Options) (map[*Relation]bool, error) {
	declared := map[*Relation]bool{}
	var faults []error
	for i, p := range o.Paths {
		e, err := g.Path(p)
		switch {
		case err != nil:
		case p.Owns() && g.Model.Within(e.Child, g.Unit):
			err = fmt.Errorf("%s is the unit's table: its rows belong to the unit of their key", p.Table)
		case p.Act && slices.Contains(e.Element.Keys, ""):
			err = errors.New("an act cannot be one of an array in JSON: leave act out, so that rows belong to the units, or ignore the column")
		}
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("privacy.paths[%d]: %w", i, err))
		case p.Ignore != "":
			for _, name := range p.Columns {
				element, _ := ident.ParseElement(name)
				g.ignored[Place{e.Child, element.Column}] = true
			}
		case p.Act:
			for _, r := range g.Model.Tables() {
				e.Covers[r] = g.Model.Within(r, e.Child) && r.Stores()
			}
			g.Acts = append(g.Acts, e)
		default:
			declared[e.Child] = true
			g.Edges = append(g.Edges, e)
		}
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		for _, r := range g.Model.Tables() {
			if slices.Contains(g.declaring(r, declared), e.Child) && !g.Model.Within(r, g.Unit) {
				e.Covers[r] = true
			}
		}
	}
	return declared, errors.Join(faults...)
}

// Declares reports whether rows belong to units by the columns of an edge, or whether they are those of an act.
func (g *Graph) Declares(e Edge) bool {
	return slices.ContainsFunc(slices.Concat(g.Edges, g.Acts), func(x Edge) bool {
		if x.Parent != e.Parent || !slices.Equal(x.names(), e.names()) || !g.Model.Within(x.Child, e.Child) && !g.Model.Within(e.Child, x.Child) {
			return false
		}
		return slices.ContainsFunc(g.Model.Tables(), func(r *Relation) bool { return x.Covers[r] && g.Model.Within(r, e.Child) })
	})
}

// Paths returns how rows of a table, and of those below it, belong to units, in short.
func (g *Graph) Paths(top *Relation) (out []string) {
	for _, e := range g.Edges {
		text := strings.Join(e.names(), ", ") + " -> " + e.Parent.Name
		if !slices.Contains(out, text) && slices.ContainsFunc(g.Model.Tables(), func(r *Relation) bool { return e.Covers[r] && g.Model.Within(r, top) }) {
			out = append(out, text)
		}
	}
	return out
}

// Leads reports whether rows of a table, or of one below it, belong to units.
func (g *Graph) Leads(top *Relation) bool {
	return slices.ContainsFunc(g.Edges, func(e Edge) bool {
		return slices.ContainsFunc(g.Model.Tables(), func(r *Relation) bool { return e.Covers[r] && g.Model.Within(r, top) })
	})
}

// Ignores reports whether the configuration says that columns of r may name a removed unit, for r or a table above it.
func (g *Graph) Ignores(r *Relation, columns []string) bool {
	return !slices.ContainsFunc(columns, func(c string) bool {
		return !slices.ContainsFunc(g.Model.Tables(), func(above *Relation) bool { return g.ignored[Place{above, c}] && g.Model.Within(r, above) })
	})
}

// Configured reports whether the configuration declares how the rows of a table, or of one below it, belong to units.
func (g *Graph) Configured(top *Relation) bool {
	return slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.Declared && g.Model.Within(e.Child, top) })
}

// many is the number of units from which on the number of owners of a row is not counted.
const many = 3

// Shared returns the tables with rows that may belong to more than two units.
func (g *Graph) Shared() (out []*Relation) {
	owners := map[*Relation]int{}
	of := func(e Edge) (n int) {
		for r, count := range owners {
			if g.Model.Within(r, e.Parent) {
				n = max(n, count)
			}
		}
		if n > 0 && (e.Period || e.Element.Each || slices.Contains(e.Element.Keys, "") || e.Declared && !e.Parent.unique(e.On)) {
			return many
		}
		return n
	}
	for changed := true; changed; {
		changed = false
		for _, r := range g.Model.Tables() {
			n := 0
			if g.Model.Within(r, g.Unit) {
				n = 1
			} else {
				for _, e := range g.edgesOf(r) {
					n += of(e)
				}
			}
			if n = min(n, many); r.Stores() && owners[r] != n {
				owners[r], changed = n, true
			}
		}
	}
	for _, r := range g.Model.Tables() {
		if owners[r] == many {
			out = append(out, r)
		}
	}
	return out
}

// Path converts one declared path; it covers no table yet.
func (g *Graph) Path(p spec.Path) (Edge, error) {
	e := Edge{Child: g.Model.Named(p.Table), Parent: g.Model.Named(p.To), On: p.On, Declared: true, Act: p.Act, Where: p.Where, Covers: map[*Relation]bool{}}
	if e.Child == nil || !e.Child.IsTable() {
		return e, fmt.Errorf("%s is not a protected table", p.Table)
	}
	for _, name := range p.Columns {
		element, ok := ident.ParseElement(name)
		if e.Child.Column(name) != nil { // a name with such characters
			element, ok = ident.Element{Column: name}, true
		}
		if !ok || e.Child.Column(element.Column) == nil {
			return e, fmt.Errorf("table %s has no column %q", p.Table, element.Column)
		}
		e.Columns, e.Element = append(e.Columns, element.Column), element
	}
	if p.Ignore != "" {
		return e, nil
	}
	if len(e.On) == 0 && e.Parent == g.Unit {
		e.On = g.Key
	}
	switch {
	case e.Parent == nil || !e.Parent.IsTable():
		return e, fmt.Errorf("%s is not a protected table", p.To)
	case len(e.Columns) == 0 || len(e.Columns) != len(e.On):
		return e, fmt.Errorf("columns and on must have equally many names: %d and %d are given", len(e.Columns), len(e.On))
	case !e.Element.Plain() && len(e.Columns) > 1:
		return e, errors.New("elements of an array and keys of JSON are a path alone, not with further columns")
	}
	for j, on := range e.On {
		column, to := e.Child.Column(e.Columns[j]), e.Parent.Column(on)
		if to == nil {
			return e, fmt.Errorf("table %s has no column %q", p.To, on)
		}
		asText, err := comparison(column, to, e.Element)
		if err != nil {
			return e, err
		}
		e.AsText = e.AsText || asText
	}
	return e, nil
}

// The types whose values are compared with each other, by the type under domains.
var (
	numbers = []uint32{20, 21, 23, 1700}
	texts   = []uint32{25, 1043, 1042, 19}
	times   = []uint32{1082, 1114, 1184}
)

// comparison returns whether values of a column, or of an element of it, must be compared with those of another one as
// text, or an error if they cannot be equal.
func comparison(c, to *Column, element ident.Element) (asText bool, err error) {
	kind, name := c.Base, c.Type
	switch {
	case element.Each && c.Element == 0:
		return false, fmt.Errorf("column %s has the type %s, which is no array", c.Name, c.Type)
	case element.Each:
		kind, name = c.Element, "element of "+c.Type
	case len(element.Keys) > 0 && kind != 114 && kind != 3802:
		return false, fmt.Errorf("column %s has the type %s, which is no JSON", c.Name, c.Type)
	case len(element.Keys) > 0:
		return true, nil
	}
	in := func(types []uint32) bool { return slices.Contains(types, kind) && slices.Contains(types, to.Base) }
	text := func(a, b uint32) bool {
		return slices.Contains(texts, a) && (slices.Contains(numbers, b) || b == 2950 || b >= 16384)
	}
	switch {
	case kind == to.Base, in(numbers), in(texts), in(times):
		return false, nil
	case text(kind, to.Base), text(to.Base, kind):
		return true, nil
	}
	return false, fmt.Errorf("column %s of type %s cannot be compared with %s of type %s", c.Name, name, to.Name, to.Type)
}
