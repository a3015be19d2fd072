package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Cell is what becomes, in D1, of a row that names the unit by an edge of an act. With a Column that is set the row
// stays; without one the row goes, unless Stays is set.
type Cell struct {
	Edge
	Column string // that names nobody instead; "" = the table allows no other value
	Value  string // the value in SQL; "" = that of the column without the element
	Stays  bool   // a row of the unit's table, which cannot go: it is another unit
}

// Cells returns what becomes of the rows of a table that name the unit by acts.
func (g *Graph) Cells(r *Relation) (out []Cell) {
	for _, e := range g.Acts {
		if !e.Covers[r] {
			continue
		}
		c := Cell{Edge: e}
		switch name := g.settable(r, e.Columns); {
		case !e.Element.Plain():
			c.Column = e.Columns[0]
		case name != "" && !r.Column(name).NotNull:
			c.Column, c.Value = name, "NULL"
		case name != "" && r.Column(name).Expression != "":
			c.Column, c.Value = name, "("+r.Column(name).Expression+")"
		default:
			c.Stays = g.Model.Within(r, g.Unit)
		}
		out = append(out, c)
	}
	return out
}

// CellsBelow returns the cells of a table and of those below it, each once.
func (g *Graph) CellsBelow(top *Relation) (out []Cell) {
	for _, r := range g.Model.Tables() {
		if !g.Model.Within(r, top) {
			continue
		}
		for _, c := range g.Cells(r) {
			if !slices.ContainsFunc(out, func(x Cell) bool { return x.same(c.Edge) && x.Column == c.Column }) {
				out = append(out, c)
			}
		}
	}
	return out
}

// Checked returns the expressions of the CHECK constraints that may name a column.
func (r *Relation) Checked(name string) (out []string) {
	for _, c := range r.Checks {
		if ident.ContainsWord(c.Expression, name) || ident.ContainsWord(c.Expression, ident.Quote(name)) {
			out = append(out, c.Expression)
		}
	}
	return out
}

// settable returns the column of a reference that can have another value: the last one without NOT NULL, otherwise the
// one with a default. Key columns of partitions would move the row, and generated ones and identities cannot be set.
func (g *Graph) settable(r *Relation, columns []string) string {
	usable := func(name string) bool {
		c := r.Column(name)
		for x := r; ; x = g.Model.ByOID(x.Parents[0]) {
			if ident.ContainsWord(x.PartKey, name) {
				return false
			}
			if len(x.Parents) == 0 {
				break
			}
		}
		return c != nil && !c.Generated && c.Identity == "" && !c.Drawn
	}
	for _, name := range slices.Backward(columns) {
		if usable(name) && !r.Column(name).NotNull {
			return name
		}
	}
	for _, name := range columns {
		// A default with a function may be another value in each copy.
		if usable(name) && len(columns) == 1 && r.Column(name).Expression != "" && !strings.Contains(r.Column(name).Expression, "(") {
			return name
		}
	}
	return ""
}

// String describes a cell in a plan.
func (c Cell) String() string {
	what := "the row goes with the unit that it names"
	switch {
	case c.Stays:
		what = "names the unit still: a row of another unit cannot go"
	case c.Column != "" && c.Value == "NULL":
		what = "NULL instead of the unit"
	case c.Value != "":
		what = "the default instead of the unit"
	case c.Column != "":
		what = "without the unit"
	}
	return fmt.Sprintf("act %s: %s", c.Edge.String(), what)
}
