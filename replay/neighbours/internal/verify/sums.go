package verify

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// checksum is a number of rows and the sums, modulo 2^63, of two hashes of their text: the same for the same rows in
// any order, and different for other rows except with a probability of about 2^-126.
type checksum struct{ Rows, First, Second int64 }

// worldSums holds the checksums of one world's tables: of all rows, and of the rows of the given units.
type worldSums struct {
	all   map[string]checksum
	units map[unitTable]unitSums
	// losses are what each neighbour without a unit lacks and has of it, by the unit's number; of D0 alone.
	losses map[int][]units.Loss
}

// unitTable is a unit, by its number, and a table.
type unitTable struct {
	unit  int
	table string
}

// unitSums describes the rows of one unit in one table.
type unitSums struct {
	rows checksum
	same checksum // of the rows without measures, generated columns, and the keys of an added unit
	off  int64    // the rows with a measure that is not at its upper bound
	// others are the rows of D0 that do not belong to the unit, with nobody instead of the unit where they name it as the
	// one of an act; nil = no row of the table can.
	others *checksum
}

// sums computes the checksums of a world; keys are the units, by number. In a neighbour made of views the keys are
// those of D0: rows have no ctid there, so the unit's rows are found by their references.
func (v *verifier) sums(ctx context.Context, schema string, keys map[int][]string) (*worldSums, error) {
	out := &worldSums{all: map[string]checksum{}, units: map[unitTable]unitSums{}, losses: map[int][]units.Loss{}}
	views := schema != v.set.D0 && v.set.Method == spec.View
	own, owned := "", units.Owned{}
	if views { // read as in replays: rows that the server does not find then are missing
		if _, err := v.Conn.Exec(ctx, "RESET enable_partition_pruning"); err != nil {
			return nil, err
		}
		defer func() { _, _ = v.Conn.Exec(context.WithoutCancel(ctx), "SET enable_partition_pruning TO off") }()
	} else {
		w := &units.Ownership{Graph: v.g, Conn: v.Conn, World: schema, Work: "pg_temp", Acts: v.set.Relation == spec.Remove}
		owned = w.Owned()
		defer func() { _, _ = v.Conn.Exec(context.WithoutCancel(ctx), "DISCARD TEMP") }()
		if err := w.Create(ctx, "TEMP"); err != nil {
			return nil, err
		}
		for number, key := range keys {
			if err := w.OneUnit(ctx, number, key); err != nil {
				return nil, err
			}
		}
		if err := w.Fill(ctx, "true"); err != nil {
			return nil, err
		}
		if own = w.Table("own"); schema == v.set.D0 {
			if err := connect.Run(ctx, v.Conn, "CREATE INDEX ON "+own+" (unit, rel, tid)", "ANALYZE "+own); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range v.m.Tables() {
		if !r.Stores() && !views {
			continue
		}
		name := ident.Quote(schema, r.Name)
		row := "ROW(" + ident.Each(r.Stored(), "t.%[1]s", ", ") + ")::text"
		var err error
		if views {
			out.all[r.Name], err = v.ownInViews(ctx, schema, r, row)
		} else {
			out.all[r.Name], err = v.checksum(ctx, row, "ONLY "+name+" t")
		}
		for number := range keys {
			if err != nil || views {
				break
			}
			rows := fmt.Sprintf("ONLY %s t JOIN %s o ON o.unit = %d AND o.rel = %s::regclass AND o.tid = t.ctid", name, own, number, ident.Literal(name))
			var u unitSums
			if u.rows, err = v.checksum(ctx, row, rows); err == nil {
				u.same, err = v.checksum(ctx, v.unmeasured(r), rows)
			}
			if err == nil {
				u.off, err = connect.Value[int64](ctx, v.Conn, "SELECT count(*) FROM "+rows+" WHERE "+v.offBounds(r))
			}
			if err == nil && schema == v.set.D0 && v.set.Relation == spec.Remove && len(v.g.Cells(r)) > 0 {
				u.others, err = v.othersOf(ctx, r, number, owned)
			}
			out.units[unitTable{number, r.Name}] = u
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", r.Name, err)
		}
	}
	if v.mentions == nil || schema != v.set.D0 {
		return out, nil
	}
	for number := range keys {
		var err error
		if out.losses[number], err = owned.Losses(ctx, v.Conn, number, v.set.D1[number-1], v.mentions); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// othersOf computes the checksum of the rows of D0 that do not belong to a unit as a neighbour must have them.
func (v *verifier) othersOf(ctx context.Context, r *source.Relation, number int, owned units.Owned) (*checksum, error) {
	var values []string
	for _, name := range r.Stored() {
		values = append(values, owned.Cleared(r, name, number))
	}
	name := ident.Quote(v.set.D0, r.Name)
	others, err := v.checksum(ctx, "ROW("+strings.Join(values, ", ")+")::text", fmt.Sprintf("ONLY %s t WHERE NOT EXISTS (SELECT FROM %s g WHERE g.unit = %d AND g.rel = t.tableoid AND g.tid = t.ctid)",
		name, owned.Table, number))
	return &others, err
}

// checksum computes the checksum of an expression of text over the rows of an item of FROM.
func (v *verifier) checksum(ctx context.Context, row, from string) (c checksum, err error) {
	err = v.Conn.QueryRow(ctx, `SELECT count(*), coalesce(mod(sum(hashtextextended(row, 0)), 9223372036854775808), 0)::int8,
		coalesce(mod(sum(hashtextextended(row, 7)), 9223372036854775808), 0)::int8 FROM (SELECT `+row+" AS row FROM "+from+") x").
		Scan(&c.Rows, &c.First, &c.Second)
	return checksum{}.plus(c), err
}

// ownInViews computes the checksum of a table's own rows in a neighbour of views, by an expression over t: of all rows
// of its view without those of the tables below it, each of which has a view of its own. A partitioned table has no
// rows of its own.
func (v *verifier) ownInViews(ctx context.Context, schema string, r *source.Relation, row string) (checksum, error) {
	own, err := v.checksum(ctx, row, ident.Quote(schema, r.Name)+" t")
	for _, below := range v.m.Tables() {
		if err == nil && below != r && below.Stores() && v.m.Within(below, r) {
			var part checksum
			part, err = v.ownInViews(ctx, schema, below, row)
			own = own.minus(part)
		}
	}
	return own, err
}

// minus removes the rows of a part from a whole.
func (c checksum) minus(part checksum) checksum {
	return checksum{c.Rows - part.Rows, (c.First - part.First) & math.MaxInt64, (c.Second - part.Second) & math.MaxInt64}
}

// plus combines the rows of two parts.
func (c checksum) plus(other checksum) checksum {
	return checksum{c.Rows + other.Rows, (c.First + other.First) & math.MaxInt64, (c.Second + other.Second) & math.MaxInt64}
}
