// Package units finds the rows that belong to each privacy unit, and chooses the units by which neighbours differ.
package units

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// Ownership stores, in tables of a work schema, which rows of one world belong to which units:
//
//	units (unit int, k1, k2, ...): the keys, numbered from 1 in their order
//	own (unit int, rel oid, tid tid, round int): the rows, by their ctid; a row may belong to several units. A negative
//	round: the row does not belong to the unit, but names it, and goes with it
//
// A row's ctid is valid as long as the world is not modified, and nothing modifies it.
type Ownership struct {
	Graph *source.Graph
	Conn  *pgx.Conn
	World string // schema of the rows
	Work  string // schema of the tables; pg_temp for a session's own
	Acts  bool   // also find the rows that go because they name a unit by an act
}

// Table returns the quoted name of one of the tables.
func (w *Ownership) Table(name string) string { return ident.Quote(w.Work, name) }

func (w *Ownership) in(r *source.Relation) string { return ident.Quote(w.World, r.Copy) }

func (w *Ownership) exec(ctx context.Context, sql string) (int64, error) {
	tag, err := w.Conn.Exec(ctx, sql)
	return tag.RowsAffected(), err
}

// Create creates the two tables, empty. unlogged is "UNLOGGED" or, for pg_temp, "".
func (w *Ownership) Create(ctx context.Context, unlogged string) error {
	return connect.Run(ctx, w.Conn,
		"CREATE "+unlogged+" TABLE "+w.Table("own")+" (unit int NOT NULL, rel oid NOT NULL, tid tid NOT NULL, round int NOT NULL)",
		fmt.Sprintf("CREATE %s TABLE %s AS SELECT 0 AS unit, %s FROM %s LIMIT 0", unlogged, w.Table("units"), ident.Each(w.Graph.Key, "%[1]s AS k%[2]d", ", "), w.in(w.Graph.Unit)))
}

// allUnits fills units with every unit of the world and returns their number.
func (w *Ownership) allUnits(ctx context.Context) (int64, error) {
	n, err := w.exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT row_number() OVER (ORDER BY %[2]s), %[2]s FROM (SELECT DISTINCT %[2]s FROM %[3]s WHERE %[4]s) u",
		w.Table("units"), ident.List(w.Graph.Key), w.in(w.Graph.Unit), ident.Each(w.Graph.Key, "%[1]s IS NOT NULL", " AND ")))
	if err != nil {
		return 0, err
	}
	return n, connect.Run(ctx, w.Conn, "ANALYZE "+w.Table("units"))
}

// OneUnit adds a unit by the text form of its key, under a number.
func (w *Ownership) OneUnit(ctx context.Context, number int, key []string) error {
	values := make([]string, len(key))
	for i, v := range key {
		values[i] = ident.Literal(v) + "::" + w.Graph.Unit.Column(w.Graph.Key[i]).Type
	}
	_, err := w.exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, %s)", w.Table("units"), number, strings.Join(values, ", ")))
	return err
}

// Fill finds the rows of the units in table units that meet a condition on u.unit, the number ("true" = all): the
// smallest set that holds the rows of the unit's table with their key and every row that references one of the set by
// an edge. Each round adds the rows that reference rows of the previous round, so that self references and cycles end
// when nothing is added.
func (w *Ownership) Fill(ctx context.Context, condition string) error {
	_, err := w.exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT u.unit, t.tableoid, t.ctid, 0 FROM %s t JOIN %s u ON %s WHERE %s",
		w.Table("own"), w.in(w.Graph.Unit), w.Table("units"), ident.Each(w.Graph.Key, "t.%[1]s = u.k%[2]d", " AND "), condition))
	if err != nil {
		return err
	}
	last := map[*source.Relation]bool{w.Graph.Unit: true} // tables to which the previous round added rows
	for round := 1; len(last) > 0; round++ {
		if _, err := w.exec(ctx, "ANALYZE "+w.Table("own")); err != nil {
			return err
		}
		added := map[*source.Relation]bool{}
		for _, e := range w.Graph.Edges {
			if !w.related(last, e.Parent) {
				continue
			}
			n, err := w.exec(ctx, w.step(e, round))
			if err != nil {
				return fmt.Errorf("rows of %s: %w", e.Child.Table, err)
			}
			if n > 0 {
				added[e.Child] = true
			}
		}
		last = added
	}
	if w.Acts {
		return w.acts(ctx, condition)
	}
	return nil
}

// Owned returns the rows of own.
func (w *Ownership) Owned() Owned { return Owned{w.Graph, w.World, w.Table("own")} }

// related reports whether one of the tables, or one below or above it in partitioning or inheritance, is r.
func (w *Ownership) related(tables map[*source.Relation]bool, r *source.Relation) bool {
	for t := range tables {
		if w.Graph.Model.Within(t, r) || w.Graph.Model.Within(r, t) {
			return true
		}
	}
	return false
}

// step returns the statement for one edge in one round.
func (w *Ownership) step(e source.Edge, round int) string {
	distinct := ""
	if e.Declared || e.Period || !e.Element.Plain() { // a foreign key references one row, a declared path may match several
		distinct = "DISTINCT "
	}
	own := w.Table("own")
	from, match := e.Join(w.in(e.Child), "c", "p")
	var others []string // tables below child whose rows have another declared path
	for _, r := range w.Graph.Model.Tables() {
		if r.Stores() && w.Graph.Model.Within(r, e.Child) && !e.Covers[r] {
			others = append(others, ident.Literal(w.in(r))+"::regclass::oid")
		}
	}
	if len(others) > 0 {
		match += " AND c.tableoid <> ALL (ARRAY[" + strings.Join(others, ", ") + "])"
	}
	return fmt.Sprintf(`INSERT INTO %[1]s SELECT %[2]s o.unit, c.tableoid, c.ctid, %[3]d
		FROM %[1]s o JOIN %[4]s p ON p.tableoid = o.rel AND p.ctid = o.tid JOIN %[5]s ON %[6]s
		WHERE o.round = %[7]d AND NOT EXISTS (SELECT FROM %[1]s x WHERE x.unit = o.unit AND x.rel = c.tableoid AND x.tid = c.ctid)`,
		own, distinct, round, w.in(e.Parent), from, match, round-1)
}
