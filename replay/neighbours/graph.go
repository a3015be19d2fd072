package neighbours

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// edge says that a row of child, or of a table below it, belongs to the units of those rows of parent, and of tables below
// it, whose columns on equal columns. A NULL among columns references nothing.
type edge struct {
	child, parent *relation
	columns, on   []string
	covers        map[*relation]bool // the tables, among child and those below it, to whose own rows it applies
	declared      bool               // in the configuration: several rows of parent may match
	period        bool               // the last column references every range that it overlaps; several rows of parent may match
}

// same reports whether two edges match the same rows of the same table, for tables with the columns of both.
func (e edge) same(other edge) bool {
	return e.parent == other.parent && e.period == other.period && slices.Equal(e.columns, other.columns) && slices.Equal(e.on, other.on)
}

// match returns the condition that a row of child references a row of parent, by their aliases.
func (e edge) match(child, parent string) string {
	all := make([]string, len(e.on))
	for i := range e.on {
		operator := "="
		if e.period && i == len(e.on)-1 {
			operator = "&&"
		}
		all[i] = fmt.Sprintf("%s.%s %s %s.%s", child, ident.Quote(e.columns[i]), operator, parent, ident.Quote(e.on[i]))
	}
	return strings.Join(all, " AND ")
}

// graph describes how rows belong to units.
type graph struct {
	m     *model
	unit  *relation
	key   []string
	edges []edge
}

// newGraph combines the foreign keys and the declared paths. The error lists every path that cannot be followed, and every
// table whose rows belong to no unit, with the line to write.
func newGraph(m *model, o *Options) (*graph, error) {
	g := &graph{m: m, unit: m.named(o.Unit.Table), key: o.Unit.Key}
	if g.unit == nil || !g.unit.isTable() {
		return nil, fmt.Errorf("privacy.unit.table: %s is not a table of the source", o.Unit.Table)
	}
	var faults []error
	for _, c := range g.key {
		if g.unit.column(c) == nil {
			faults = append(faults, fmt.Errorf("privacy.unit.key: table %s has no column %q", o.Unit.Table, c))
		}
	}
	declared, err := g.declare(o)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	for _, k := range m.keys {
		child, parent := m.byOID(k.child), m.byOID(k.parent)
		if m.within(child, g.unit) {
			continue
		}
		e := edge{child: child, parent: parent, columns: k.columns, on: k.on, period: k.period, covers: map[*relation]bool{}}
		for _, r := range m.tables() {
			if m.within(r, child) && !m.within(r, g.unit) && len(g.declaring(r, declared)) == 0 {
				e.covers[r] = true
			}
		}
		if above := g.declaring(child, declared); len(above) > 0 && above[0] != child {
			o.note("foreign key %s of %s is no path to the unit: privacy.paths declares how rows of %s belong to units, which holds for its partitions and children too; declare a path for %s itself if the key is one",
				k.name, child.Table, above[0].Table, child.Table)
		}
		g.edges = append(g.edges, e)
	}
	return g, g.complete()
}

// declaring returns the tables whose declared paths apply to the rows of r: r itself, or the nearest tables above it, of
// which inheritance may give several. None: foreign keys apply.
func (g *graph) declaring(r *relation, declared map[*relation]bool) []*relation {
	if declared[r] {
		return []*relation{r}
	}
	var out []*relation
	for _, oid := range r.parents {
		out = append(out, g.declaring(g.m.byOID(oid), declared)...)
	}
	return out
}

// declare adds the configured paths and returns the tables that have one.
func (g *graph) declare(o *Options) (map[*relation]bool, error) {
	declared := map[*relation]bool{}
	var faults []error
	for i, p := range o.Paths {
		e, err := g.path(p)
		if err != nil {
			faults = append(faults, fmt.Errorf("privacy.paths[%d]: %w", i, err))
			continue
		}
		declared[e.child] = true
		g.edges = append(g.edges, e)
	}
	for i := range g.edges {
		e := &g.edges[i]
		for _, r := range g.m.tables() {
			if slices.Contains(g.declaring(r, declared), e.child) && !g.m.within(r, g.unit) {
				e.covers[r] = true
			}
		}
	}
	return declared, errors.Join(faults...)
}

// path converts one declared path; it covers no table yet.
func (g *graph) path(p Path) (edge, error) {
	child, parent := g.m.named(p.Table), g.m.named(p.To)
	on := p.On
	if len(on) == 0 && parent == g.unit {
		on = g.key
	}
	switch {
	case child == nil || !child.isTable():
		return edge{}, fmt.Errorf("%s is not a protected table", p.Table)
	case parent == nil || !parent.isTable():
		return edge{}, fmt.Errorf("%s is not a protected table", p.To)
	case g.m.within(child, g.unit):
		return edge{}, fmt.Errorf("%s is the unit's table: its rows belong to the unit of their key", p.Table)
	case len(p.Columns) == 0 || len(p.Columns) != len(on):
		return edge{}, fmt.Errorf("columns and on must have equally many names: %d and %d are given", len(p.Columns), len(on))
	}
	for j := range on {
		if child.column(p.Columns[j]) == nil {
			return edge{}, fmt.Errorf("table %s has no column %q", p.Table, p.Columns[j])
		}
		if parent.column(on[j]) == nil {
			return edge{}, fmt.Errorf("table %s has no column %q", p.To, on[j])
		}
	}
	return edge{child: child, parent: parent, columns: p.Columns, on: on, declared: true, covers: map[*relation]bool{}}, nil
}

// complete drops the edges that do not lead to the unit and rejects tables that have no other.
func (g *graph) complete() error {
	reached := map[*relation]bool{}
	// leads reports whether a row found through r may belong to a unit: a row of r or of a table below it.
	leads := func(r *relation) bool {
		for x := range reached {
			if g.m.within(x, r) {
				return true
			}
		}
		return false
	}
	for _, r := range g.m.tables() {
		if g.m.within(r, g.unit) {
			reached[r] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range g.edges {
			if !leads(e.parent) {
				continue
			}
			for r := range e.covers {
				changed = changed || !reached[r]
				reached[r] = true
			}
		}
	}
	err := g.noPaths(reached)
	g.edges = slices.DeleteFunc(g.edges, func(e edge) bool { return !leads(e.parent) || len(e.covers) == 0 })
	return err
}

// noPaths lists the tables whose rows belong to no unit, a table with all its partitions and children once.
func (g *graph) noPaths(reached map[*relation]bool) error {
	unreached := func(r *relation) bool { return r.stores() && !reached[r] }
	all := func(top *relation) bool {
		return !slices.ContainsFunc(g.m.tables(), func(r *relation) bool { return r.stores() && g.m.within(r, top) && reached[r] })
	}
	var faults []error
	reported := map[*relation]bool{}
	for _, r := range g.m.tables() {
		if !unreached(r) {
			continue
		}
		for len(r.parents) > 0 && all(g.m.byOID(r.parents[0])) {
			r = g.m.byOID(r.parents[0])
		}
		if !reported[r] {
			faults = append(faults, g.noPath(r))
		}
		reported[r] = true
	}
	return errors.Join(faults...)
}

func (g *graph) noPath(r *relation) error {
	why := "no foreign key leads from it to " + g.unit.Table.String()
	for _, e := range g.edges {
		if g.m.within(e.child, r) || g.m.within(r, e.child) {
			why = "its foreign keys lead only to tables without a path to " + g.unit.Table.String()
			if e.declared {
				why = "its declared path leads only to tables without a path to " + g.unit.Table.String()
			}
		}
	}
	columns := make([]string, len(g.key))
	for i := range columns {
		columns[i] = "column"
	}
	return fmt.Errorf("table %s belongs to no privacy unit: %s; write under privacy.paths: - {table: %s, columns: [%s], to: %s, on: [%s]}, or list the table in privacy.public if it holds no personal data",
		r.Table, why, r.Table, strings.Join(columns, ", "), g.unit.Table, strings.Join(g.key, ", "))
}

// edgesOf returns the edges that apply to the own rows of r.
func (g *graph) edgesOf(r *relation) []edge {
	var out []edge
	for _, e := range g.edges {
		if e.covers[r] && !slices.ContainsFunc(out, e.same) { // a partition may repeat a foreign key of its parent
			out = append(out, e)
		}
	}
	return out
}

// edgesBelow returns the edges that apply to all rows of r, including those of the tables below it. alike is false if these
// tables do not have the same edges.
func (g *graph) edgesBelow(r *relation) (edges []edge, alike bool) {
	first := true
	for _, x := range g.m.tables() {
		if !x.stores() || !g.m.within(x, r) {
			continue
		}
		own := g.edgesOf(x)
		if first {
			edges, first = own, false
		}
		for _, pair := range [][2][]edge{{edges, own}, {own, edges}} {
			for _, e := range pair[0] {
				if !slices.ContainsFunc(pair[1], e.same) {
					return nil, false
				}
			}
		}
	}
	return edges, true
}
