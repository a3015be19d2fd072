package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// Viewable returns the edges that a view of r follows, or an error if it cannot.
func (g *Graph) Viewable(r *Relation) ([]Edge, error) {
	for _, c := range g.CellsBelow(r) {
		if c.Column != "" && c.Value != "NULL" || c.Column != "" && len(r.Checked(c.Column)) > 0 {
			return nil, fmt.Errorf("what becomes of a row that names the unit by %s depends on a default or a constraint, which a view cannot follow: use neighbours.method copy", strings.Join(c.names(), ", "))
		}
	}
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

// Graph describes how rows belong to units.
type Graph struct {
	Model   *Model
	Unit    *Relation
	Key     []string
	Edges   []Edge // by which rows belong to units
	Acts    []Edge // by which rows name the units of rows to whom they do not belong
	ignored map[Place]bool
	persons map[*Relation]bool // the unit's table, and tables with one row for each unit
}

// NewGraph combines the foreign keys and the declared paths. The error lists every path that cannot be followed, and
// every table whose rows belong to no unit, with the line to write.
func NewGraph(m *Model, o *spec.Options) (*Graph, error) {
	g := &Graph{Model: m, Unit: m.Named(o.Unit.Table), Key: o.Unit.Key, ignored: map[Place]bool{}}
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
		e := Edge{Child: child, Parent: parent, Columns: k.Columns, On: k.On, Period: k.Period, Keyed: true, Covers: map[*Relation]bool{}}
		act, named := e, slices.ContainsFunc(k.Columns, func(c string) bool { return owners.Act(c, e.Parent.Name) })
		act.Act, act.Covers = true, map[*Relation]bool{}
		for _, r := range m.Tables() {
			switch ofUnit := m.Within(r, g.Unit); {
			case !m.Within(r, child) || g.configured(r, k.Columns):
			case ofUnit && g.related(parent), named && !ofUnit:
				if r.Stores() {
					act.Covers[r] = true
				}
			case !ofUnit && len(g.declaring(r, declared)) == 0:
				e.Covers[r] = true
			}
		}
		if len(act.Covers) > 0 {
			g.Acts = append(g.Acts, act)
		}
		if named || m.Within(child, g.Unit) {
			continue
		}
		if above := g.declaring(child, declared); len(above) > 0 && above[0] != child {
			o.Notef("foreign key %s of %s is no path to the unit: privacy.paths declares how rows of %s belong to units, which holds for its partitions and children too; declare a path for %s itself if the key is one",
				k.Name, child.Table, above[0].Table, child.Table)
		}
		g.Edges = append(g.Edges, e)
	}
	g.narrow(declared, o)
	return g, g.complete(o)
}

// related reports whether r is the unit's table, or above or below it.
func (g *Graph) related(r *Relation) bool {
	return g.Model.Within(r, g.Unit) || g.Model.Within(g.Unit, r)
}

// configured reports whether the configuration declares, for the rows of r, that columns are ignored, or
// those of an act.
func (g *Graph) configured(r *Relation, columns []string) bool {
	return g.Ignores(r, columns) || slices.ContainsFunc(g.Acts, func(e Edge) bool {
		return e.Declared && e.Covers[r] && slices.Equal(e.Columns, columns) && e.Element.Plain()
	})
}

// narrow removes the longer paths of tables with a person's column of their own: an edge to the unit's table, or to one
// with one row for each unit.
func (g *Graph) narrow(declared map[*Relation]bool, o *spec.Options) {
	g.persons = map[*Relation]bool{}
	for _, r := range g.Model.Tables() {
		g.persons[r] = g.related(r)
	}
	direct := func(r *Relation) (found bool) {
		for _, e := range g.Edges {
			found = found || e.Covers[r] && g.persons[e.Parent]
		}
		return found
	}
	for grown := true; grown; {
		grown = false
		for _, r := range g.Model.Tables() {
			for _, e := range g.Edges {
				if !g.persons[r] && e.Child == r && e.Where == "" && e.Element.Plain() && g.persons[e.Parent] && r.onePerPerson(e.Columns) {
					g.persons[r], grown = true, true
				}
			}
		}
	}
	for _, r := range g.Model.Tables() {
		if r.Stores() && len(g.declaring(r, declared)) == 0 && direct(r) {
			for _, e := range g.Edges {
				if !g.persons[e.Parent] && e.Covers[r] {
					delete(e.Covers, r)
					g.noteNull(r, e, o)
				}
			}
		}
	}
}

// noteNull notes that rows of r with NULL in the person's columns belong to nobody, although they have a longer path.
func (g *Graph) noteNull(r *Relation, longer Edge, o *spec.Options) {
	var null []string
	for _, e := range g.edgesOf(r) {
		if i := slices.IndexFunc(e.Columns, func(c string) bool { return !r.Column(c).NotNull }); g.persons[e.Parent] && i < 0 {
			return
		} else if g.persons[e.Parent] {
			null = append(null, e.Columns[i])
		}
	}
	o.Notef("rows of %s in which %s is NULL belong to no unit: where a table has a person's column of its own, %s is no path; declare both under privacy.paths if it is one",
		r.Table, strings.Join(null, ", "), longer.String())
}

// onePerPerson reports whether a table that references persons has one row for each: it shares their key, or has the
// name of a table of persons, as profiles has. One row for each person alone makes no person: a person may own one site.
func (r *Relation) onePerPerson(columns []string) bool {
	return r.unique(columns) && (owners.PersonTable(r.Name) || slices.ContainsFunc(r.Indexes, func(i index) bool {
		return strings.HasPrefix(i.Constraint, "PRIMARY KEY") && len(i.Unique) == len(columns) && !slices.ContainsFunc(i.Unique, func(c string) bool { return !slices.Contains(columns, c) })
	}))
}

// unique reports whether no two rows of r have the same values in the columns.
func (r *Relation) unique(columns []string) bool {
	return slices.ContainsFunc(r.Indexes, func(i index) bool {
		return len(i.Unique) > 0 && !i.Partial && !slices.ContainsFunc(i.Unique, func(c string) bool { return !slices.Contains(columns, c) })
	})
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

// complete drops the edges that do not lead to the unit, and rejects tables that have no other. Tables that only name
// units, or reference such tables, have a note.
func (g *Graph) complete(o *spec.Options) error {
	reached := map[*Relation]bool{}
	for _, r := range g.Model.Tables() {
		if g.Model.Within(r, g.Unit) {
			reached[r] = true
		}
	}
	// leads reports whether a row found through r may belong to a unit: a row of r or of a table below it.
	leads := func(r *Relation) bool {
		for x := range reached {
			if g.Model.Within(x, r) {
				return true
			}
		}
		return false
	}
	spread := func() {
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
	}
	spread()
	kept := slices.DeleteFunc(slices.Clone(g.Edges), func(e Edge) bool { return !leads(e.Parent) || len(e.Covers) == 0 })
	g.Acts = slices.DeleteFunc(g.Acts, func(e Edge) bool { return !leads(e.Parent) })
	owned := maps.Clone(reached)
	for _, e := range g.Acts {
		for r, covered := range e.Covers {
			if covered {
				reached[r] = true
			}
		}
	}
	spread()
	err := g.noPaths(reached)
	for _, r := range g.Model.Tables() {
		if reached[r] && !owned[r] && r.Stores() {
			o.Notef("%s", g.actsAlone(r, leads))
		}
	}
	g.Edges = kept
	return err
}

// actsAlone describes a table whose rows belong to no unit because it leads to units through columns of acts alone.
func (g *Graph) actsAlone(r *Relation, leads func(*Relation) bool) string {
	for _, e := range g.Acts {
		if e.Covers[r] {
			return fmt.Sprintf("rows of %s belong to no unit: %s names who did something with them; if the rows are theirs, write under privacy.paths: %s",
				r.Table, strings.Join(e.Columns, ", "), e.line())
		}
	}
	for _, e := range g.Edges {
		if e.Covers[r] && leads(e.Parent) {
			return fmt.Sprintf("rows of %s belong to no unit: they reference %s (%s), which leads to units through columns of acts alone", r.Table, e.Parent.Table, strings.Join(e.Columns, ", "))
		}
	}
	return fmt.Sprintf("rows of %s belong to no unit: it leads to units through columns of acts alone", r.Table)
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
	var out []string
	_, alike := g.edgesBelow(top)
	if g.Model.Within(top, g.Unit) {
		out = []string{"key (" + strings.Join(g.Key, ", ") + ")"}
	}
	for _, r := range g.Model.Tables() {
		if !g.Model.Within(r, top) || !r.Stores() && alike {
			continue
		}
		for _, e := range g.edgesOf(r) {
			text := e.String()
			if !alike {
				text = r.Name + ": " + text
			}
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
		for _, c := range g.Cells(r) {
			if text := c.String(); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}
