package neighbours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// measure returns the declared bounds of a column of r, or of a table above it.
func (b *builder) measure(r *relation, name string) *Measure {
	return b.m.measure(b.o.Measures, r, name)
}

func (m *model) measure(measures []Measure, r *relation, name string) *Measure {
	for i := range measures {
		x := &measures[i]
		if top := m.named(x.Column.Table); top != nil && x.Column.Name == name && m.within(r, top) {
			return x
		}
	}
	return nil
}

// moved returns the expression for a column of t in a neighbour whose unit is replaced: if units is true for the row, a
// measure moves to the farther of its bounds.
func (b *builder) moved(r *relation, name, units string) string {
	m := b.measure(r, name)
	if m == nil || b.o.Relation != Replace {
		return "t." + ident.Quote(name)
	}
	typ := r.column(name).typ
	return fmt.Sprintf("CASE WHEN t.%[1]s IS NULL OR NOT %[5]s THEN t.%[1]s WHEN t.%[1]s - %[2]s::%[4]s > %[3]s::%[4]s - t.%[1]s THEN %[2]s::%[4]s ELSE %[3]s::%[4]s END",
		ident.Quote(name), ident.Literal(m.Low), ident.Literal(m.High), typ, units)
}

// checkMeasures rejects bounds of columns that do not exist or are not numbers.
func checkMeasures(m *model, o *Options) error {
	for i, x := range o.Measures {
		r := m.named(x.Column.Table)
		if r == nil || !r.isTable() || r.column(x.Column.Name) == nil {
			return fmt.Errorf("neighbours.measures[%d]: %s is not a column of a protected table", i, x.Column)
		}
		if _, err := measureKind(r.column(x.Column.Name)); err != nil {
			return fmt.Errorf("neighbours.measures[%d]: %w", i, err)
		}
	}
	return nil
}

// place identifies a column by the topmost table that has it: partitions and children share it.
type place struct {
	top  *relation
	name string
}

// fresh holds the columns of the added unit's rows that get new values, and the column from which each is derived: the
// unit's key, columns that reference it, and one column of each unique key that would otherwise repeat.
type fresh struct {
	from map[place]place
	via  map[place]edge // the reference, for columns that follow another
}

func (m *model) top(r *relation) *relation {
	for len(r.parents) > 0 {
		r = m.byOID(r.parents[0])
	}
	return r
}

func (g *graph) fresh() (*fresh, error) {
	f := &fresh{map[place]place{}, map[place]edge{}}
	for _, k := range g.key {
		p := place{g.m.top(g.unit), k}
		f.from[p] = p
	}
	for changed := true; changed; {
		changed = false
		for _, e := range g.edges {
			for i := range e.on {
				parent, child := place{g.m.top(e.parent), e.on[i]}, place{g.m.top(e.child), e.columns[i]}
				root, ok := f.from[parent]
				if _, has := f.from[child]; ok && !has {
					f.from[child], f.via[child], changed = root, e, true
				}
			}
		}
		if changed {
			continue
		}
		for _, r := range g.m.tables() {
			added, err := f.uniqueKeys(g.m, r)
			if err != nil {
				return nil, err
			}
			changed = changed || added
		}
	}
	return f, nil
}

// uniqueKeys assigns a column to the first unique key of r that would repeat.
func (f *fresh) uniqueKeys(m *model, r *relation) (bool, error) {
next:
	for _, i := range r.indexes {
		if len(i.unique) == 0 {
			continue
		}
		for _, name := range i.unique {
			if _, ok := f.from[place{m.top(r), name}]; ok {
				continue next
			}
		}
		for _, name := range i.unique {
			if _, err := another("x", r.column(name), "0"); err == nil {
				p := place{m.top(r), name}
				f.from[p] = p
				return true, nil
			}
		}
		return false, fmt.Errorf("the unique key %s of %s has no column of a type that new values can be made for: use another relation", i.name, r.Table)
	}
	return false, nil
}

// another returns an expression for a value that no row has, derived from the value of a row; offset, see offset, is larger
// than the range of the column's values. A hash cut to few characters may be an existing value: the unique key then rejects
// it.
func another(value string, c *column, offset string) (string, error) {
	switch c.base {
	case 20, 21, 23: // int8, int2, int4
		return "(" + value + " + " + offset + ")::" + c.typ, nil
	case 1700:
		return value + " + " + offset, nil
	case 1082: // date
		return "(" + value + " + " + offset + ")::" + c.typ, nil
	case 1114, 1184: // timestamp, timestamptz
		return "(" + value + " + " + ident.Literal(offset) + "::interval)::" + c.typ, nil
	case 25, 1043: // text, varchar
		if offset != "0" {
			return "left(md5(" + value + " || 'dpwatch'), " + offset + ")", nil
		}
		return value + " || '~dpwatch'", nil
	case 2950: // uuid
		return "md5(" + value + "::text || 'dpwatch')::uuid", nil
	}
	return "", fmt.Errorf("no new value can be made for column %s of type %s", c.name, c.typ)
}

// addUnit adds a unit to a neighbour: the chosen unit's rows again, under new keys, with every declared measure at its
// upper bound. References to rows of others stay.
func (b *builder) addUnit(ctx context.Context, tx pgx.Tx, world int) error {
	f, err := b.g.fresh()
	if err != nil {
		return err
	}
	offsets := map[place]string{}
	for _, root := range f.from {
		if _, ok := offsets[root]; ok {
			continue
		}
		sql := offset(root.top.column(root.name))
		if sql == "" {
			offsets[root] = "0"
			continue
		}
		var text string
		if err := tx.QueryRow(ctx, fmt.Sprintf(sql, ident.Quote(root.name))+" FROM "+b.in(0, root.top)).Scan(&text); err != nil {
			return err
		}
		offsets[root] = text
	}
	for _, r := range b.m.tables() {
		if !r.stores() {
			continue
		}
		var values []string
		for _, name := range r.stored() {
			value, err := b.added(r, r.column(name), f, offsets, world)
			if err != nil {
				return err
			}
			values = append(values, value)
		}
		into := r
		if b.m.top(r).kind == 'p' { // a new key may belong to another partition
			into = b.m.top(r)
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM ONLY %s t JOIN %s g ON g.unit = %d AND g.rel = %s::regclass AND g.tid = t.ctid",
			b.in(world, into), ident.List(r.stored()), strings.Join(values, ", "), b.in(0, r), b.gone(), b.units[world-1].number, ident.Literal(b.in(0, r))))
		if err != nil {
			return noRoom(fmt.Errorf("rows of %s: %w", r.Table, err))
		}
	}
	return nil
}

// offset returns a query over the column %[1]s for the offset of another; "" = none needed, used as "0". For numbers and
// times it is more than their range, for a text type without room for a suffix the length of the type.
func offset(c *column) string {
	switch c.base {
	case 20, 21, 23, 1700, 1082:
		return "SELECT (coalesce(max(%[1]s) - min(%[1]s), 0) + 1)::text"
	case 1114, 1184:
		return "SELECT (coalesce(max(%[1]s) - min(%[1]s), '0') + '1 day')::text"
	case 1043:
		var length int
		if _, err := fmt.Sscanf(c.typ, "character varying(%d)", &length); err == nil {
			return fmt.Sprintf("SELECT CASE WHEN coalesce(max(length(%%[1]s)), 0) + length('~dpwatch') <= %[1]d THEN '0' ELSE '%[1]d' END", length)
		}
	}
	return ""
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
			why = "no partition takes the added unit"
		}
		why += ": declare bounds in neighbours.measures that it allows"
	case "23P01":
		why = "the added unit breaks the exclusion constraint " + e.ConstraintName + ", which has no column of equal values that another can be made for"
	case "23505":
		why = "the added unit breaks the unique key " + e.ConstraintName + ", which is on an expression, or on a type with few values"
	case "22003", "22001", "22008":
		why = "there is no room for another value in the type of a key"
	default:
		return err
	}
	return fmt.Errorf("%w; %s; or use another relation", err, why)
}

// checkBounds rejects declared bounds that are not values of their columns' types, or are in the wrong order.
func (b *builder) checkBounds(ctx context.Context, tx pgx.Tx) error {
	for i, x := range b.o.Measures {
		var ordered bool
		typ := b.m.named(x.Column.Table).column(x.Column.Name).typ
		if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT %s::%[3]s <= %[2]s::%[3]s", ident.Literal(x.Low), ident.Literal(x.High), typ)).Scan(&ordered); err != nil {
			return fmt.Errorf("neighbours.measures[%d]: the bounds are no values of %s, type %s: %w", i, x.Column, typ, err)
		}
		if !ordered {
			return fmt.Errorf("neighbours.measures[%d]: low %s is above high %s", i, x.Low, x.High)
		}
	}
	return nil
}

// added returns the expression for the value of a column in an added row.
func (b *builder) added(r *relation, c *column, f *fresh, offsets map[place]string, world int) (string, error) {
	old := "t." + ident.Quote(c.name)
	if m := b.measure(r, c.name); m != nil {
		return ident.Literal(m.High) + "::" + c.typ, nil
	}
	p := place{top: b.m.top(r), name: c.name}
	root, ok := f.from[p]
	if !ok {
		return old, nil
	}
	value, err := another(old, c, offsets[root])
	if err != nil {
		return "", err
	}
	e, follows := f.via[p]
	if !follows {
		return value, nil
	}
	return fmt.Sprintf("CASE WHEN EXISTS (SELECT FROM %s p JOIN %s q ON q.rel = p.tableoid AND q.tid = p.ctid AND q.unit = %d WHERE %s) THEN %s ELSE %s END",
		b.in(0, e.parent), b.gone(), b.units[world-1].number, e.match("t", "p"), value, old), nil
}
