package build

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// measure returns the declared bounds of a column of r, or of a table above it.
func (n *neighbour) measure(r *source.Relation, name string) *spec.Measure {
	return n.objects.model.Measure(n.objects.options.Measures, r, name)
}

// moved returns the expression for a column of t in a neighbour whose unit is replaced: if units is true for the row, a
// measure moves to the farther of its bounds.
func (n *neighbour) moved(r *source.Relation, name, units string) string {
	m := n.measure(r, name)
	if m == nil || n.objects.options.Relation != spec.Replace || n.unit == nil {
		return "t." + ident.Quote(name)
	}
	typ := r.Column(name).Type
	return fmt.Sprintf("CASE WHEN t.%[1]s IS NULL OR NOT %[5]s THEN t.%[1]s WHEN t.%[1]s - %[2]s::%[4]s > %[3]s::%[4]s - t.%[1]s THEN %[2]s::%[4]s ELSE %[3]s::%[4]s END",
		ident.Quote(name), ident.Literal(m.Low), ident.Literal(m.High), typ, units)
}

// addUnit adds a unit to a neighbour: the chosen unit's rows again, under new keys, with every declared measure at its
// upper bound. References to rows of others stay.
func (n *neighbour) addUnit(ctx context.Context, tx pgx.Tx) error {
	f, err := n.g.Fresh()
	if err != nil {
		return err
	}
	offsets := map[source.Place]string{}
	for _, root := range f.From {
		if _, ok := offsets[root]; ok {
			continue
		}
		offsets[root] = "0"
		if sql := source.NewValueOffset(root.Top.Column(root.Name)); sql != "" {
			if offsets[root], err = connect.Value[string](ctx, tx, fmt.Sprintf(sql, ident.Quote(root.Name))+" FROM "+n.objects.staging.in(0, root.Top)); err != nil {
				return err
			}
		}
	}
	for _, r := range n.objects.model.Tables() {
		if !r.Stores() {
			continue
		}
		var values []string
		for _, name := range r.Stored() {
			value, err := n.added(r, r.Column(name), f, offsets)
			if err != nil {
				return err
			}
			values = append(values, value)
		}
		into := r
		if n.objects.model.Top(r).Kind == catalog.KindPartitioned { // a new key may belong to another partition
			into = n.objects.model.Top(r)
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM ONLY %s t JOIN %s g ON g.unit = %d AND g.rel = %s::regclass AND g.tid = t.ctid WHERE %s",
			n.objects.staging.in(n.world, into), ident.List(r.Stored()), strings.Join(values, ", "), n.objects.staging.in(0, r), n.objects.staging.gone(), n.unit.Number, ident.Literal(n.objects.staging.in(0, r)), n.parted(r)))
		if err != nil {
			return noRoom(fmt.Errorf("rows of %s: %w", r.Table, err))
		}
	}
	return nil
}

// noRoom adds a remedy to the error for an added unit that the tables reject.
func noRoom(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	why := ""
	switch e.Code {
	case "23514":
		if why = "the added unit breaks the check constraint " + e.ConstraintName; e.ConstraintName == "" {
			why = "no partition accepts the added unit"
		}
		why += ": declare bounds in neighbours.measures that it allows"
	case "23P01":
		why = "the added unit breaks the exclusion constraint " + e.ConstraintName + ", which has no column of equal values for which a new value can be generated"
	case "23505":
		why = "the added unit breaks the unique key " + e.ConstraintName + ", which is on an expression, or on a type with few values"
	case "22003", "22001", "22008":
		why = "the type of a key has no further value"
	default:
		return err
	}
	return fmt.Errorf("%w; %s; or use another relation", err, why)
}

// checkBounds rejects declared bounds that are not values of their columns' types, or are in the wrong order.
func (b *Builder) checkBounds(ctx context.Context, tx pgx.Tx) error {
	for i, x := range b.Options.Measures {
		typ := b.Model.Named(x.Column.Table).Column(x.Column.Name).Type
		ordered, err := connect.Value[bool](ctx, tx, fmt.Sprintf("SELECT %s::%[3]s <= %[2]s::%[3]s", ident.Literal(x.Low), ident.Literal(x.High), typ))
		if err != nil {
			return fmt.Errorf("neighbours.measures[%d]: the bounds are not values of %s, type %s: %w", i, x.Column, typ, err)
		}
		if !ordered {
			return fmt.Errorf("neighbours.measures[%d]: low %s is above high %s", i, x.Low, x.High)
		}
	}
	return nil
}

// added returns the expression for the value of a column in an added row.
func (n *neighbour) added(r *source.Relation, c *source.Column, f *source.Fresh, offsets map[source.Place]string) (string, error) {
	old := "t." + ident.Quote(c.Name)
	if m := n.measure(r, c.Name); m != nil {
		return ident.Literal(m.High) + "::" + c.Type, nil
	}
	p := source.Place{Top: n.objects.model.Top(r), Name: c.Name}
	root, ok := f.From[p]
	if !ok {
		return old, nil
	}
	value, err := source.NewValue(old, c, offsets[root])
	if err != nil {
		return "", err
	}
	e, follows := f.Via[p]
	if !follows {
		return value, nil
	}
	return fmt.Sprintf("CASE WHEN EXISTS (SELECT FROM %s p JOIN %s q ON q.rel = p.tableoid AND q.tid = p.ctid AND q.unit = %d WHERE %s) THEN %s ELSE %s END",
		n.objects.staging.in(0, e.Parent), n.objects.staging.gone(), n.unit.Number, e.Match("t", "p"), value, old), nil
}
