package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// neighbour fills one neighbour, the twin or the guard.
type neighbour struct {
	objects *objects
	g       *source.Graph
	unit    *units.Chosen // nil = all rows of D0: the twin, the guard, or D0 made anew
	part    string        // see Builder
	world   int
}

// makeD1 builds one neighbour, or without a unit a second copy of D0, from D0 in one transaction of its own session.
func (b *Builder) makeD1(ctx context.Context, world int, unit *units.Chosen) error {
	conn, err := b.Session(ctx)
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was left open
		n := &neighbour{objects: b.objects, g: b.g, unit: unit, part: b.part, world: world}
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := n.make(ctx, tx); err != nil || !b.Options.Recreate {
				return err
			}
			return b.Grant(ctx, tx, []string{b.staging.stage(world)})
		})
	}
	if err != nil {
		return fmt.Errorf("make copy %s: %w", b.staging.final(world), err)
	}
	return nil
}

// make creates the schema and everything in it.
func (n *neighbour) make(ctx context.Context, tx pgx.Tx) error {
	o := n.objects
	if err := o.start(ctx, tx, n.world); err != nil {
		return err
	}
	if o.method == spec.View {
		return n.viewsOver(ctx, tx)
	}
	if err := o.run(ctx, tx, n.world, o.d.Tables); err != nil {
		return err
	}
	// Rows must keep the order of D0: a parallel scan would mix them.
	if _, err := tx.Exec(ctx, "SET LOCAL max_parallel_workers_per_gather TO 0"); err != nil {
		return err
	}
	for _, r := range o.model.Tables() {
		if !r.Stores() {
			continue
		}
		if err := n.rowsOf(ctx, tx, r); err != nil {
			return fmt.Errorf("rows of %s: %w", r.Table, err)
		}
	}
	if o.options.Relation == spec.Extreme && n.unit != nil {
		if err := n.addUnit(ctx, tx); err != nil {
			return fmt.Errorf("add a unit: %w", err)
		}
		return noRoom(o.finish(ctx, tx, n.world)) // unique keys are created now
	}
	return o.finish(ctx, tx, n.world)
}

// rowsOf copies one table from D0: without the unit's rows for Remove, with its measures moved for Replace. Rows keep
// their order: membership in the unit is tested row by row (with a hash table if it fits in memory, otherwise with the
// index), because an anti join may return rows in the order of a hash table.
func (n *neighbour) rowsOf(ctx context.Context, tx pgx.Tx, r *source.Relation) error {
	units := "false"
	if n.unit != nil {
		units = fmt.Sprintf("EXISTS (SELECT FROM %s g WHERE g.unit = %d AND g.rel = %s::regclass AND g.tid = t.ctid)",
			n.objects.staging.gone(), n.unit.Number, ident.Literal(n.objects.staging.in(0, r)))
	}
	values := make([]string, 0, len(r.Columns))
	for _, name := range r.Stored() {
		values = append(values, n.moved(r, name, units))
	}
	from := n.objects.staging.in(0, r) + " t WHERE " + n.parted(r)
	if n.objects.options.Relation == spec.Remove && n.unit != nil {
		from += " AND CASE WHEN " + units + " THEN false ELSE true END" // an EXISTS without CASE would become a join
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM ONLY %s",
		n.objects.staging.in(n.world, r), ident.List(r.Stored()), strings.Join(values, ", "), from))
	if err != nil {
		return err
	}
	n.objects.progress.done.Add(tag.RowsAffected())
	n.objects.progress.report("make " + n.objects.staging.final(n.world))
	return nil
}

// parted returns the condition that a row t of D0 is in the part of which the copy is made.
func (n *neighbour) parted(r *source.Relation) string {
	if n.part == "" {
		return "true"
	}
	return fmt.Sprintf("CASE WHEN EXISTS (SELECT FROM %s x WHERE x.rel = %s::regclass AND x.tid = t.ctid) THEN true ELSE false END", n.part, ident.Literal(n.objects.staging.in(0, r)))
}

// analyze runs VACUUM ANALYZE, which gathers statistics and marks pages as all-visible, so that plans in two worlds
// differ only because of their rows.
func (b *Builder) analyze(ctx context.Context, world int) error {
	conn, err := b.Session(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was left open
	b.progress.report("analyze " + b.staging.final(world))
	for _, r := range b.Model.Relations {
		if r.Kind == catalog.KindView || r.IsTable() && b.method == spec.View && world > 0 {
			continue
		}
		if _, err := conn.Exec(ctx, "VACUUM (ANALYZE) "+b.staging.in(world, r)); err != nil {
			return fmt.Errorf("analyze %s.%s: %w", b.staging.final(world), r.Name, err)
		}
	}
	return nil
}

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
		columns := ident.List(r.Names())
		sql := fmt.Sprintf("CREATE VIEW %s (%s) AS SELECT %s FROM %s t", n.objects.staging.in(n.world, r), columns, columns, n.objects.staging.in(0, r))
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
		if len(keys) > maxKeys || len(e.On) > 1 && len(keys) > maxKeys/100 {
			return nil, fmt.Errorf("the unit has %d keys, which is too many for the condition of a view: use neighbours.method copy", len(keys))
		}
		var values []string
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
	return connect.Values[[]string](ctx, tx, fmt.Sprintf("SELECT DISTINCT ARRAY[%s] FROM %s g JOIN %s p ON p.tableoid = g.rel AND p.ctid = g.tid WHERE g.unit = %d AND %s ORDER BY 1",
		ident.Each(e.On, "p.%[1]s::text", ", "), n.objects.staging.gone(), n.objects.staging.in(0, e.Parent), n.unit.Number, ident.Each(e.On, "p.%[1]s IS NOT NULL", " AND ")))
}
