package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Viewable returns the edges that a view of r follows, or an error if it cannot.
func (g *Graph) Viewable(r *Relation) ([]Edge, error) {
	if g.Model.Within(r, g.Unit) {
		return nil, nil
	}
	if g.Model.Within(g.Unit, r) {
		return nil, fmt.Errorf("the unit's table %s is a partition or child of it, which a view cannot follow: use neighbours.method copy", g.Unit.Table)
	}
	edges, alike := g.edgesBelow(r)
	if !alike {
		return nil, fmt.Errorf("its partitions or children have different paths to the unit, which a view cannot follow: use neighbours.method copy")
	}
	if slices.ContainsFunc(edges, func(e Edge) bool { return e.Period }) {
		return nil, fmt.Errorf("it references periods of time, which a view cannot follow: use neighbours.method copy")
	}
	return edges, nil
}

// Edge assigns the rows of Child, and of tables below it, to units: a row belongs to the units of those rows of Parent,
// and of tables below it, whose columns On equal its Columns. A NULL among Columns references nothing.
type Edge struct {
	Child, Parent *Relation
	Columns, On   []string
	Covers        map[*Relation]bool // the tables, among child and those below it, to whose own rows it applies
	Declared      bool               // in the configuration: several rows of parent may match
	Period        bool               // the last column references every range that it overlaps; several rows of parent may match
}

// same reports whether two edges match the same rows of the same table, for tables with the columns of both.
func (e Edge) same(other Edge) bool {
	return e.Parent == other.Parent && e.Period == other.Period && slices.Equal(e.Columns, other.Columns) && slices.Equal(e.On, other.On)
}

// Match returns the condition that a row of child references a row of parent, by their aliases.
func (e Edge) Match(child, parent string) string {
	all := make([]string, len(e.On))
	for i := range e.On {
		operator := "="
		if e.Period && i == len(e.On)-1 {
			operator = "&&"
		}
		all[i] = fmt.Sprintf("%s.%s %s %s.%s", child, ident.Quote(e.Columns[i]), operator, parent, ident.Quote(e.On[i]))
	}
	return strings.Join(all, " AND ")
}

// Graph describes how rows belong to units.
type Graph struct {
	Model *Model
	Unit  *Relation
	Key   []string
	Edges []Edge
}

// NewGraph combines the foreign keys and the declared paths. The error lists every path that cannot be followed, and
// every table whose rows belong to no unit, with the line to write.
func NewGraph(m *Model, o *spec.Options) (*Graph, error) {
	g := &Graph{Model: m, Unit: m.Named(o.Unit.Table), Key: o.Unit.Key}
	if g.Unit == nil || !g.Unit.IsTable() {
		return nil, fmt.Errorf("privacy.unit.table: %s is not a table of the source", o.Unit.Table)
	}
	var faults []error
	for _, c := range g.Key {
		if g.Unit.Column(c) == nil {
			faults = append(faults, fmt.Errorf("privacy.unit.key: table %s has no column %q", o.Unit.Table, c))
		}
	}
	declared, err := g.declare(o)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	for _, k := range m.Keys {
		child, parent := m.ByOID(k.Child), m.ByOID(k.Parent)
		if m.Within(child, g.Unit) {
			continue
		}
		e := Edge{Child: child, Parent: parent, Columns: k.Columns, On: k.On, Period: k.Period, Covers: map[*Relation]bool{}}
		for _, r := range m.Tables() {
			if m.Within(r, child) && !m.Within(r, g.Unit) && len(g.declaring(r, declared)) == 0 {
				e.Covers[r] = true
			}
		}
		if above := g.declaring(child, declared); len(above) > 0 && above[0] != child {
			o.Notef("foreign key %s of %s is no path to the unit: privacy.paths declares how rows of %s belong to units, which holds for its partitions and children too; declare a path for %s itself if the key is one",
				k.Name, child.Table, above[0].Table, child.Table)
		}
		g.Edges = append(g.Edges, e)
	}
	return g, g.complete()
}

// declaring returns the tables whose declared paths apply to the rows of r: r itself, or the nearest tables above it,
// of which inheritance may give several. None: foreign keys apply.
func (g *Graph) declaring(r *Relation, declared map[*Relation]bool) []*Relation {
	if declared[r] {
		return []*Relation{r}
	}
	var out []*Relation
	for _, oid := range r.Parents {
		out = append(out, g.declaring(g.Model.ByOID(oid), declared)...)
	}
	return out
}

// declare adds the configured paths and returns the tables that have one.
func (g *Graph) declare(o *spec.Options) (map[*Relation]bool, error) {
	declared := map[*Relation]bool{}
	var faults []error
	for i, p := range o.Paths {
		e, err := g.path(p)
		if err != nil {
			faults = append(faults, fmt.Errorf("privacy.paths[%d]: %w", i, err))
			continue
		}
		declared[e.Child] = true
		g.Edges = append(g.Edges, e)
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

// path converts one declared path; it covers no table yet.
func (g *Graph) path(p spec.Path) (Edge, error) {
	child, parent := g.Model.Named(p.Table), g.Model.Named(p.To)
	on := p.On
	if len(on) == 0 && parent == g.Unit {
		on = g.Key
	}
	switch {
	case child == nil || !child.IsTable():
		return Edge{}, fmt.Errorf("%s is not a protected table", p.Table)
	case parent == nil || !parent.IsTable():
		return Edge{}, fmt.Errorf("%s is not a protected table", p.To)
	case g.Model.Within(child, g.Unit):
		return Edge{}, fmt.Errorf("%s is the unit's table: its rows belong to the unit of their key", p.Table)
	case len(p.Columns) == 0 || len(p.Columns) != len(on):
		return Edge{}, fmt.Errorf("columns and on must have equally many names: %d and %d are given", len(p.Columns), len(on))
	}
	for j := range on {
		if child.Column(p.Columns[j]) == nil {
			return Edge{}, fmt.Errorf("table %s has no column %q", p.Table, p.Columns[j])
		}
		if parent.Column(on[j]) == nil {
			return Edge{}, fmt.Errorf("table %s has no column %q", p.To, on[j])
		}
	}
	return Edge{Child: child, Parent: parent, Columns: p.Columns, On: on, Declared: true, Covers: map[*Relation]bool{}}, nil
}

// complete drops the edges that do not lead to the unit and rejects tables that have no other.
func (g *Graph) complete() error {
	reached := map[*Relation]bool{}
	// leads reports whether a row found through r may belong to a unit: a row of r or of a table below it.
	leads := func(r *Relation) bool {
		for x := range reached {
			if g.Model.Within(x, r) {
				return true
			}
		}
		return false
	}
	for _, r := range g.Model.Tables() {
		if g.Model.Within(r, g.Unit) {
			reached[r] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range g.Edges {
			if !leads(e.Parent) {
				continue
			}
			for r := range e.Covers {
				changed = changed || !reached[r]
				reached[r] = true
			}
		}
	}
	err := g.noPaths(reached)
	g.Edges = slices.DeleteFunc(g.Edges, func(e Edge) bool { return !leads(e.Parent) || len(e.Covers) == 0 })
	return err
}

// noPaths lists the tables whose rows belong to no unit, a table with all its partitions and children once.
func (g *Graph) noPaths(reached map[*Relation]bool) error {
	unreached := func(r *Relation) bool { return r.Stores() && !reached[r] }
	all := func(top *Relation) bool {
		return !slices.ContainsFunc(g.Model.Tables(), func(r *Relation) bool { return r.Stores() && g.Model.Within(r, top) && reached[r] })
	}
	var faults []error
	reported := map[*Relation]bool{}
	for _, r := range g.Model.Tables() {
		if !unreached(r) {
			continue
		}
		for len(r.Parents) > 0 && all(g.Model.ByOID(r.Parents[0])) {
			r = g.Model.ByOID(r.Parents[0])
		}
		if !reported[r] {
			faults = append(faults, g.noPath(r))
		}
		reported[r] = true
	}
	return errors.Join(faults...)
}

func (g *Graph) noPath(r *Relation) error {
	why := "no foreign key leads from it to " + g.Unit.Table.String()
	for _, e := range g.Edges {
		if g.Model.Within(e.Child, r) || g.Model.Within(r, e.Child) {
			why = "its foreign keys lead only to tables without a path to " + g.Unit.Table.String()
			if e.Declared {
				why = "its declared path leads only to tables without a path to " + g.Unit.Table.String()
			}
		}
	}
	columns := make([]string, len(g.Key))
	for i := range columns {
		columns[i] = "column"
	}
	return fmt.Errorf("table %s belongs to no privacy unit: %s; write under privacy.paths: - {table: %s, columns: [%s], to: %s, on: [%s]}, or list the table in privacy.public if it holds no personal data",
		r.Table, why, r.Table, strings.Join(columns, ", "), g.Unit.Table, strings.Join(g.Key, ", "))
}

// edgesOf returns the edges that apply to the own rows of r.
func (g *Graph) edgesOf(r *Relation) []Edge {
	var out []Edge
	for _, e := range g.Edges {
		if e.Covers[r] && !slices.ContainsFunc(out, e.same) { // a partition may repeat a foreign key of its parent
			out = append(out, e)
		}
	}
	return out
}

// edgesBelow returns the edges that apply to all rows of r, including those of the tables below it. alike is false if
// these tables do not have the same edges.
func (g *Graph) edgesBelow(r *Relation) (edges []Edge, alike bool) {
	first := true
	for _, x := range g.Model.Tables() {
		if !x.Stores() || !g.Model.Within(x, r) {
			continue
		}
		own := g.edgesOf(x)
		if first {
			edges, first = own, false
		}
		for _, pair := range [][2][]Edge{{edges, own}, {own, edges}} {
			for _, e := range pair[0] {
				if !slices.ContainsFunc(pair[1], e.same) {
					return nil, false
				}
			}
		}
	}
	return edges, true
}

// Describe returns how the rows of a table, and of those below it, belong to units.
func (g *Graph) Describe(top *Relation) []string {
	if g.Model.Within(top, g.Unit) {
		return []string{"key (" + strings.Join(g.Key, ", ") + ")"}
	}
	var out []string
	_, alike := g.edgesBelow(top)
	for _, r := range g.Model.Tables() {
		if !g.Model.Within(r, top) || !r.Stores() && alike {
			continue
		}
		for _, e := range g.edgesOf(r) {
			text := fmt.Sprintf("(%s) -> %s (%s)", strings.Join(e.Columns, ", "), e.Parent.Table, strings.Join(e.On, ", "))
			if e.Declared {
				text += ", declared"
			}
			if !alike {
				text = r.Name + ": " + text
			}
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}
