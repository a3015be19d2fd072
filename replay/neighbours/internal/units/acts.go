package units

import (
	"context"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// actsRound is the round of the rows that go because they name a unit and the table allows no other value. What hangs
// on them stays.
const actsRound = -1

// Owned is a table of rows of units: own, or the part of it for the chosen units.
type Owned struct {
	Graph *source.Graph
	World string // schema of the rows
	Table string // quoted: unit, rel, tid, round
}

// Names returns the condition that a row, by its alias, references one of a unit's own rows by an edge.
func (o Owned) Names(e source.Edge, row string, unit int) string {
	return fmt.Sprintf("EXISTS (%s AND %s)", o.rows(e, unit), e.Match(row, "p"))
}

// NamesOther returns the condition that a row references one that belongs to another unit.
func (o Owned) NamesOther(e source.Edge, row string, unit int) string {
	return fmt.Sprintf("EXISTS (SELECT FROM %s p WHERE %s AND NOT EXISTS (SELECT FROM %s g WHERE g.unit = %d AND g.round >= 0 AND g.rel = p.tableoid AND g.tid = p.ctid))",
		ident.Quote(o.World, e.Parent.Copy), e.Match(row, "p"), o.Table, unit)
}

// rows is a query of a unit's own rows p of an edge's parent.
func (o Owned) rows(e source.Edge, unit int) string {
	var leaves []string // so that an index finds the few rows of the unit there
	for _, r := range o.Graph.Model.Tables() {
		if r.Stores() && o.Graph.Model.Within(r, e.Parent) {
			leaves = append(leaves, ident.Literal(ident.Quote(o.World, r.Copy))+"::regclass::oid")
		}
	}
	return fmt.Sprintf("SELECT FROM %s g JOIN %s p ON p.tableoid = g.rel AND p.ctid = g.tid WHERE g.unit = %d AND g.rel IN (%s) AND g.round >= 0",
		o.Table, ident.Quote(o.World, e.Parent.Copy), unit, strings.Join(leaves, ", "))
}

// Cleared returns the expression for a column of a row t of r in a neighbour without a unit: names that are acts of the
// unit are replaced.
func (o Owned) Cleared(r *source.Relation, name string, unit int) string {
	value := "t." + ident.Quote(name)
	for _, c := range o.Graph.Cells(r) {
		if c.Column != name {
			continue
		}
		value = fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", o.Names(c.Edge, "t", unit), o.other(c, r, value, unit), value)
	}
	return value
}

// other returns the value of a cell that names the unit.
func (o Owned) other(c source.Cell, r *source.Relation, value string, unit int) string {
	switch {
	case c.Value != "":
		return c.Value + "::" + r.Column(c.Column).Type
	case c.Element.Each:
		cast := ""
		if c.AsText {
			cast = "::text"
		}
		return fmt.Sprintf("ARRAY(SELECT x.v FROM unnest(%s) WITH ORDINALITY x(v, n) WHERE x.v IS NULL OR NOT EXISTS (%s AND x.v%s = p.%s%s) ORDER BY x.n)",
			value, o.rows(c.Edge, unit), cast, ident.Quote(c.On[0]), cast)
	}
	path := make([]string, len(c.Element.Keys))
	for i, k := range c.Element.Keys {
		path[i] = ident.Literal(k)
	}
	return fmt.Sprintf("jsonb_set(%s::jsonb, ARRAY[%s], 'null')::%s", value, strings.Join(path, ", "), r.Column(c.Column).Type)
}

// acts adds the rows that name a unit where the table allows no other value: no NULL, no default that is a valid
// reference, or a value that a CHECK constraint rejects.
func (w *Ownership) acts(ctx context.Context, condition string) error {
	for _, r := range w.Graph.Model.Tables() {
		if !r.Stores() {
			continue
		}
		for _, c := range w.Graph.Cells(r) {
			refused := w.refused(r, c)
			if refused == "" || c.Stays {
				continue
			}
			from, match := c.Join("ONLY "+w.in(r), "c", "p")
			err := connect.Run(ctx, w.Conn, fmt.Sprintf(`INSERT INTO %[1]s SELECT DISTINCT o.unit, c.tableoid, c.ctid, %[2]d
				FROM %[1]s o JOIN %[3]s p ON p.tableoid = o.rel AND p.ctid = o.tid JOIN %[4]s u ON u.unit = o.unit AND %[5]s JOIN %[6]s ON %[7]s
				WHERE o.round >= 0 AND (%[8]s) AND NOT EXISTS (SELECT FROM %[1]s x WHERE x.unit = o.unit AND x.rel = c.tableoid AND x.tid = c.ctid)`,
				w.Table("own"), actsRound, w.in(c.Parent), w.Table("units"), condition, from, match, refused))
			if err != nil {
				return fmt.Errorf("rows of %s: %w", r.Table, err)
			}
		}
	}
	return nil
}

// refused returns the condition that a row c of r, which names the row p of a unit, cannot have another value; "" =
// never.
func (w *Ownership) refused(r *source.Relation, c source.Cell) string {
	switch {
	case c.Column == "":
		return "true"
	case c.Value == "":
		return ""
	}
	var reasons, checks, columns []string
	if c.Value != "NULL" {
		reasons = append(reasons, fmt.Sprintf("%s = c.%s", c.Value, ident.Quote(c.Column))) // the unit is the default
		if c.Keyed {
			reasons = append(reasons, fmt.Sprintf("NOT EXISTS (SELECT FROM %s d WHERE d.%s = %s)", w.in(c.Parent), ident.Quote(c.On[0]), c.Value))
		}
	}
	for _, check := range r.Checked(c.Column) {
		checks = append(checks, "("+check+")")
	}
	if len(checks) > 0 {
		for _, name := range r.Names() {
			value := "c." + ident.Quote(name)
			if name == c.Column {
				value = c.Value + "::" + r.Column(name).Type
			}
			columns = append(columns, value+" AS "+ident.Quote(name))
		}
		reasons = append(reasons, fmt.Sprintf("EXISTS (SELECT FROM (SELECT %s) k WHERE (%s) IS FALSE)", strings.Join(columns, ", "), strings.Join(checks, " AND ")))
	}
	return strings.Join(reasons, " OR ")
}
