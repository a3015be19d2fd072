package build

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
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
	own := "false"
	if n.unit != nil {
		own = fmt.Sprintf("EXISTS (SELECT FROM %s g WHERE g.unit = %d AND g.rel = %s::regclass AND g.tid = t.ctid)",
			n.objects.staging.gone(), n.unit.Number, ident.Literal(n.objects.staging.in(0, r)))
	}
	values := make([]string, 0, len(r.Columns))
	for _, name := range r.Stored() {
		values = append(values, n.value(r, name, own))
	}
	from := n.objects.staging.in(0, r) + " t WHERE " + n.parted(r)
	if n.objects.options.Relation == spec.Remove && n.unit != nil {
		from += " AND CASE WHEN " + own + " THEN false ELSE true END" // an EXISTS without CASE would become a join
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

// value returns the expression for a column of t; own is the condition that the row belongs to the unit.
func (n *neighbour) value(r *source.Relation, name, own string) string {
	if n.objects.options.Relation == spec.Remove && n.unit != nil {
		return n.owned().Cleared(r, name, n.unit.Number)
	}
	return n.moved(r, name, own)
}

// owned returns the rows of the chosen units in D0.
func (n *neighbour) owned() units.Owned {
	return units.Owned{Graph: n.g, World: n.objects.staging.stage(0), Table: n.objects.staging.gone()}
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
