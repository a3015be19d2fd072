package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// maxKeys bounds the list of keys in the condition of a view.
const maxKeys = 100_000

// viewsOver creates a view for every table: D0's rows without those of the unit, or all for the twin. The conditions
// are on values, so the views stay correct when rows move.
func (n *neighbour) viewsOver(ctx context.Context, tx pgx.Tx) error {
	for _, r := range n.objects.model.Tables() {
		conditions, err := n.without(ctx, tx, r)
		if err != nil {
			return fmt.Errorf("view of %s: %w", r.Table, err)
		}
		values, gone, err := n.clearedInView(ctx, tx, r)
		if err != nil {
			return fmt.Errorf("view of %s: %w", r.Table, err)
		}
		conditions = append(conditions, gone...)
		sql := fmt.Sprintf("CREATE VIEW %s (%s) AS SELECT %s FROM %s t", n.objects.staging.in(n.world, r), ident.List(r.Names()), strings.Join(values, ", "), n.objects.staging.in(0, r))
		if len(conditions) > 0 {
			sql += " WHERE " + strings.Join(conditions, " AND ")
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	for _, s := range n.objects.d.Filled {
		// A view has no identity columns, and so no sequences of them.
		if slices.ContainsFunc(n.objects.model.Sequences, func(q source.Sequence) bool { return q.Identity && s.About == "sequence "+q.Name }) {
			continue
		}
		if err := n.objects.run(ctx, tx, n.world, []ddl.Statement{s}); err != nil {
			return err
		}
	}
	return n.objects.makeViews(ctx, tx, n.world)
}

// without returns the conditions of the rows of r that do not belong to the unit. A row belongs to it if it references
// one of its rows; NULL references nothing.
func (n *neighbour) without(ctx context.Context, tx pgx.Tx, r *source.Relation) ([]string, error) {
	if n.unit == nil {
		return nil, nil
	}
	if n.g.Model.Within(r, n.g.Unit) {
		return []string{notEqual(n.g.Key, n.unit.Key, n.g.Unit, n.g.Key)}, nil
	}
	edges, err := n.g.Viewable(r)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range edges {
		keys, err := n.keysOf(ctx, tx, e)
		if err != nil {
			return nil, err
		}
		var values []string
		if e.Where != "" || e.AsText || !e.Element.Plain() {
			if len(keys) > 0 {
				out = append(out, n.among(e, keys)+" IS NOT TRUE")
			}
			continue
		}
		for _, key := range keys {
			if len(e.On) == 1 {
				values = append(values, ident.Literal(key[0]))
			} else {
				out = append(out, notEqual(e.Columns, key, e.Parent, e.On))
			}
		}
		if len(values) > 0 {
			out = append(out, fmt.Sprintf("(t.%s = ANY (ARRAY[%s]::%s[])) IS NOT TRUE", ident.Quote(e.Columns[0]), strings.Join(values, ", "), e.Parent.Column(e.On[0]).Type))
		}
	}
	return out, nil
}

// notEqual returns the condition that columns of t do not have the values of a key, whose types are those of the
// columns on of r.
func notEqual(columns, key []string, r *source.Relation, on []string) string {
	var match []string
	for i, name := range columns {
		match = append(match, fmt.Sprintf("t.%s = %s::%s", ident.Quote(name), ident.Literal(key[i]), r.Column(on[i]).Type))
	}
	return "(" + strings.Join(match, " AND ") + ") IS NOT TRUE"
}

// keysOf returns the values by which rows reference, along an edge, the rows of a unit: for each, the columns in text
// form.
func (n *neighbour) keysOf(ctx context.Context, tx pgx.Tx, e source.Edge) ([][]string, error) {
	keys, err := connect.Values[[]string](ctx, tx, fmt.Sprintf("SELECT DISTINCT ARRAY[%s] FROM %s g JOIN %s p ON p.tableoid = g.rel AND p.ctid = g.tid WHERE g.unit = %d AND g.round >= 0 AND %s ORDER BY 1",
		ident.Each(e.On, "p.%[1]s::text", ", "), n.objects.staging.gone(), n.objects.staging.in(0, e.Parent), n.unit.Number, ident.Each(e.On, "p.%[1]s IS NOT NULL", " AND ")))
	if len(keys) > maxKeys || len(e.On) > 1 && len(keys) > maxKeys/100 {
		return nil, fmt.Errorf("the unit has %d keys, which is too many for the condition of a view: use neighbours.method copy", len(keys))
	}
	return keys, err
}

// among returns the condition that a row t matches one of some keys by an edge.
func (n *neighbour) among(e source.Edge, keys [][]string) string {
	var rows []string
	for _, key := range keys {
		var values []string
		for i, v := range key {
			values = append(values, ident.Literal(v)+"::"+e.Parent.Column(e.On[i]).Type)
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	return fmt.Sprintf("EXISTS (SELECT FROM (VALUES %s) p(%s) WHERE %s)", strings.Join(rows, ", "), ident.List(e.On), e.Match("t", "p"))
}

// clearedInView returns the expressions for the columns of t, in which nobody is named instead of the unit by an act,
// and the conditions of the rows that do not go.
func (n *neighbour) clearedInView(ctx context.Context, tx pgx.Tx, r *source.Relation) (values, conditions []string, err error) {
	for _, name := range r.Names() {
		values = append(values, "t."+ident.Quote(name))
	}
	if n.unit == nil {
		return values, nil, nil
	}
	for _, c := range n.g.CellsBelow(r) {
		keys, err := n.keysOf(ctx, tx, c.Edge)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case len(keys) == 0 || c.Stays:
		case c.Column == "":
			conditions = append(conditions, n.among(c.Edge, keys)+" IS NOT TRUE")
		default:
			i := slices.Index(r.Names(), c.Column)
			values[i] = fmt.Sprintf("CASE WHEN %s THEN %s::%s ELSE %s END", n.among(c.Edge, keys), c.Value, r.Column(c.Column).Type, values[i])
		}
	}
	return values, conditions, nil
}
