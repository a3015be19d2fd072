package neighbours

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// ownership stores, in tables of a work schema, which rows of one world belong to which units:
//
//	units (unit int, k1, k2, ...): the keys, numbered from 1 in their order
//	own (unit int, rel oid, tid tid, round int): the rows, by their ctid; a row may belong to several units
//
// A row's ctid is valid as long as the world is not modified, and nothing modifies it.
type ownership struct {
	g     *graph
	conn  *pgx.Conn
	world string // schema of the rows
	work  string // schema of the tables; pg_temp for a session's own
}

func (w *ownership) table(name string) string { return ident.Quote(w.work, name) }

func (w *ownership) in(r *relation) string { return ident.Quote(w.world, r.copy) }

func (w *ownership) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := w.conn.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// create creates the two tables, empty. unlogged is "UNLOGGED" or, for pg_temp, "".
func (w *ownership) create(ctx context.Context, unlogged string) error {
	keys := make([]string, len(w.g.key))
	for i, name := range w.g.key {
		keys[i] = fmt.Sprintf("%s AS k%d", ident.Quote(name), i+1)
	}
	for _, sql := range []string{
		"CREATE " + unlogged + " TABLE " + w.table("own") + " (unit int NOT NULL, rel oid NOT NULL, tid tid NOT NULL, round int NOT NULL)",
		"CREATE " + unlogged + " TABLE " + w.table("units") + " AS SELECT 0 AS unit, " + strings.Join(keys, ", ") + " FROM " + w.in(w.g.unit) + " LIMIT 0",
	} {
		if _, err := w.exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// allUnits fills units with every unit of the world and returns their number.
func (w *ownership) allUnits(ctx context.Context) (int64, error) {
	keys, present, order := make([]string, len(w.g.key)), make([]string, len(w.g.key)), make([]string, len(w.g.key))
	for i, name := range w.g.key {
		keys[i], present[i] = ident.Quote(name), ident.Quote(name)+" IS NOT NULL"
		order[i] = ident.Quote(name)
	}
	list := strings.Join(keys, ", ")
	n, err := w.exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT row_number() OVER (ORDER BY %s), %s FROM (SELECT DISTINCT %s FROM %s WHERE %s) u",
		w.table("units"), strings.Join(order, ", "), list, list, w.in(w.g.unit), strings.Join(present, " AND ")))
	if err != nil {
		return 0, err
	}
	_, err = w.exec(ctx, "ANALYZE "+w.table("units"))
	return n, err
}

// oneUnit adds a unit by the text form of its key, under a number.
func (w *ownership) oneUnit(ctx context.Context, number int, key []string) error {
	values := make([]string, len(key))
	for i, v := range key {
		values[i] = ident.Literal(v) + "::" + w.g.unit.column(w.g.key[i]).typ
	}
	_, err := w.exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, %s)", w.table("units"), number, strings.Join(values, ", ")))
	return err
}

// fill finds the rows of the units in table units that meet a condition on u.unit, the number ("true" = all): the smallest
// set that holds the rows of the unit's table with their key and every row that references one of the set by an edge. Each
// round adds the rows that reference rows of the previous round, so that self references and cycles end when nothing is
// added.
func (w *ownership) fill(ctx context.Context, condition string) error {
	match := make([]string, len(w.g.key))
	for i, name := range w.g.key {
		match[i] = fmt.Sprintf("t.%s = u.k%d", ident.Quote(name), i+1)
	}
	_, err := w.exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT u.unit, t.tableoid, t.ctid, 0 FROM %s t JOIN %s u ON %s WHERE %s",
		w.table("own"), w.in(w.g.unit), w.table("units"), strings.Join(match, " AND "), condition))
	if err != nil {
		return err
	}
	last := map[*relation]bool{w.g.unit: true} // tables to which the previous round added rows
	for round := 1; len(last) > 0; round++ {
		if _, err := w.exec(ctx, "ANALYZE "+w.table("own")); err != nil {
			return err
		}
		added := map[*relation]bool{}
		for _, e := range w.g.edges {
			if !w.related(last, e.parent) {
				continue
			}
			n, err := w.exec(ctx, w.step(e, round))
			if err != nil {
				return fmt.Errorf("rows of %s: %w", e.child.Table, err)
			}
			if n > 0 {
				added[e.child] = true
			}
		}
		last = added
	}
	return nil
}

// related reports whether one of the tables, or one below or above it in partitioning or inheritance, is r.
func (w *ownership) related(tables map[*relation]bool, r *relation) bool {
	for t := range tables {
		if w.g.m.within(t, r) || w.g.m.within(r, t) {
			return true
		}
	}
	return false
}

// step returns the statement for one edge in one round.
func (w *ownership) step(e edge, round int) string {
	distinct := ""
	if e.declared || e.period { // a foreign key references one row, a declared path may match several
		distinct = "DISTINCT "
	}
	own := w.table("own")
	match := e.match("c", "p")
	var others []string // tables below child whose rows have another declared path
	for _, r := range w.g.m.tables() {
		if r.stores() && w.g.m.within(r, e.child) && !e.covers[r] {
			others = append(others, ident.Literal(w.in(r))+"::regclass::oid")
		}
	}
	if len(others) > 0 {
		match += " AND c.tableoid <> ALL (ARRAY[" + strings.Join(others, ", ") + "])"
	}
	return fmt.Sprintf(`INSERT INTO %[1]s SELECT %[2]s o.unit, c.tableoid, c.ctid, %[3]d
		FROM %[1]s o JOIN %[4]s p ON p.tableoid = o.rel AND p.ctid = o.tid JOIN %[5]s c ON %[6]s
		WHERE o.round = %[7]d AND NOT EXISTS (SELECT FROM %[1]s x WHERE x.unit = o.unit AND x.rel = c.tableoid AND x.tid = c.ctid)`,
		own, distinct, round, w.in(e.parent), w.in(e.child), match, round-1)
}
