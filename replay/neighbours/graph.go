package neighbours

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// edge says that a row of child, or of a table below it, belongs to the units of the rows of parent, and of tables below,
// in which on equals columns. A NULL among columns references nothing.
type edge struct {
	child, parent *relation
	columns, on   []string
	declared      bool // by the configuration: several rows of parent may match
	period        bool // the last column references every time that it overlaps; several rows of parent may match
}

// match is the condition that a row of child references a row of parent, by their aliases.
func (e edge) match(child, parent string) string {
	all := make([]string, len(e.on))
	for i := range e.on {
		operator := "="
		if e.period && i == len(e.on)-1 {
			operator = "&&"
		}
		all[i] = fmt.Sprintf("%s.%s %s %s.%s", child, quote(e.columns[i]), operator, parent, quote(e.on[i]))
	}
	return strings.Join(all, " AND ")
}

// graph says how rows belong to units.
type graph struct {
	m     *model
	unit  *relation
	key   []string
	edges []edge
}

// newGraph takes the foreign keys and the declared paths. The error names every table whose rows belong to nobody, and
// what to write.
func newGraph(m *model, o *Options) (*graph, error) {
	g := &graph{m: m, unit: m.named(o.Unit.Table), key: o.Unit.Key}
	if g.unit == nil || !g.unit.isTable() {
		return nil, fmt.Errorf("privacy.unit.table: %s is not a table of the source", o.Unit.Table)
	}
	for _, c := range g.key {
		if g.unit.column(c) == nil {
			return nil, fmt.Errorf("privacy.unit.key: table %s has no column %q", o.Unit.Table, c)
		}
	}
	declared, err := g.declare(o)
	if err != nil {
		return nil, err
	}
	for _, k := range m.keys {
		child, parent := m.byOID(k.child), m.byOID(k.parent)
		if !declared[child] && !m.within(child, g.unit) {
			g.edges = append(g.edges, edge{child: child, parent: parent, columns: k.columns, on: k.on, period: k.period})
		}
	}
	return g, g.complete()
}

// declare adds the paths of the configuration and returns the tables that have one.
func (g *graph) declare(o *Options) (map[*relation]bool, error) {
	declared := map[*relation]bool{}
	for i, p := range o.Paths {
		where := fmt.Sprintf("privacy.paths[%d]", i)
		child, parent := g.m.named(p.Table), g.m.named(p.To)
		on := p.On
		if len(on) == 0 && parent == g.unit {
			on = g.key
		}
		switch {
		case child == nil || !child.isTable():
			return nil, fmt.Errorf("%s: %s is not a protected table", where, p.Table)
		case parent == nil || !parent.isTable():
			return nil, fmt.Errorf("%s: %s is not a protected table", where, p.To)
		case g.m.within(child, g.unit):
			return nil, fmt.Errorf("%s: %s is the unit's table: its rows belong to the unit of their key", where, p.Table)
		case len(p.Columns) == 0 || len(p.Columns) != len(on):
			return nil, fmt.Errorf("%s: as many columns as on are needed: %d and %d are given", where, len(p.Columns), len(on))
		}
		for j := range on {
			if child.column(p.Columns[j]) == nil {
				return nil, fmt.Errorf("%s: table %s has no column %q", where, p.Table, p.Columns[j])
			}
			if parent.column(on[j]) == nil {
				return nil, fmt.Errorf("%s: table %s has no column %q", where, p.To, on[j])
			}
		}
		declared[child] = true
		g.edges = append(g.edges, edge{child: child, parent: parent, columns: p.Columns, on: on, declared: true})
	}
	return declared, nil
}

// complete drops the edges that do not lead to the unit and refuses tables that have no other.
func (g *graph) complete() error {
	reached := map[*relation]bool{}
	mark := func(top *relation) (changed bool) {
		for _, r := range g.m.tables() {
			if g.m.within(r, top) && !reached[r] {
				reached[r], changed = true, true
			}
		}
		return changed
	}
	// leads reports whether a row found through r may be one that belongs to somebody: of r or of a table below.
	leads := func(r *relation) bool {
		for _, x := range g.m.tables() {
			if reached[x] && g.m.within(x, r) {
				return true
			}
		}
		return false
	}
	mark(g.unit)
	for changed := true; changed; {
		changed = false
		for _, e := range g.edges {
			if leads(e.parent) && mark(e.child) {
				changed = true
			}
		}
	}
	var faults []error
	for _, r := range g.m.tables() {
		if r.stores() && !reached[r] {
			faults = append(faults, g.noPath(r))
		}
	}
	g.edges = slices.DeleteFunc(g.edges, func(e edge) bool { return !leads(e.parent) })
	return errors.Join(faults...)
}

func (g *graph) noPath(r *relation) error {
	top := r
	for len(top.parents) > 0 {
		top = g.m.byOID(top.parents[0])
	}
	why := "no foreign key leads from it to " + g.unit.Table.String()
	for _, e := range g.edges {
		if e.child == r || e.child == top {
			why = "its foreign keys lead only to tables without a path to " + g.unit.Table.String()
		}
	}
	columns := make([]string, len(g.key))
	for i := range columns {
		columns[i] = "column"
	}
	return fmt.Errorf("table %s belongs to no privacy unit: %s; write under privacy.paths: - {table: %s, columns: [%s], to: %s, on: [%s]}, or list the table in privacy.public if it holds no personal data",
		top.Table, why, top.Table, strings.Join(columns, ", "), g.unit.Table, strings.Join(g.key, ", "))
}

// edgesOf are the edges that apply to the rows of r: its own and those of the tables above.
func (g *graph) edgesOf(r *relation) []edge {
	var out []edge
	for _, e := range g.edges {
		if g.m.within(r, e.child) {
			out = append(out, e)
		}
	}
	return out
}

// edgesBelow reports whether a table below r has edges that r has not: a child that repeats a foreign key of r has none.
func (g *graph) edgesBelow(r *relation) bool {
	own := g.edgesOf(r)
	for _, e := range g.edges {
		repeats := func(x edge) bool {
			return x.parent == e.parent && x.period == e.period && slices.Equal(x.columns, e.columns) && slices.Equal(x.on, e.on)
		}
		if e.child != r && g.m.within(e.child, r) && !slices.ContainsFunc(own, repeats) {
			return true
		}
	}
	return false
}
