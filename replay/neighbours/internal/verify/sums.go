package verify

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// checksum is a number of rows and the sums of two 64-bit hashes of their text: the same for the same rows in any order,
// and different for other rows except with a probability of about 2^-128.
type checksum struct {
	Rows          int64
	First, Second string
}

// worldSums holds the checksums of one world's tables: of all rows, and of the rows of the given units.
type worldSums struct {
	all   map[string]checksum
	units map[int]map[string]checksum
	same  map[int]map[string]checksum // of the units' rows without measures, generated columns, and the keys of an added unit
	off   map[int]map[string]int64    // the units' rows with a measure that is not at its upper bound
}

// sums computes the checksums of a world; keys are the units, by number. In a neighbour made of views the keys are those of
// D0: rows have no ctid there, so the unit's rows are found by their references.
func (v *verifier) sums(ctx context.Context, schema string, keys map[int][]string) (*worldSums, error) {
	out := &worldSums{all: map[string]checksum{}, units: map[int]map[string]checksum{}, same: map[int]map[string]checksum{}, off: map[int]map[string]int64{}}
	views := schema != v.set.D0 && v.set.Method == spec.View
	own := ""
	if views { // read as in replays: rows that the server does not find then are missing
		if _, err := v.Conn.Exec(ctx, "RESET enable_partition_pruning"); err != nil {
			return nil, err
		}
		defer func() { _, _ = v.Conn.Exec(context.WithoutCancel(ctx), "SET enable_partition_pruning TO off") }()
	} else {
		w := &units.Ownership{Graph: v.g, Conn: v.Conn, World: schema, Work: "pg_temp"}
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
		own = w.Table("own")
	}
	for _, r := range v.m.Tables() {
		if !r.Stores() && !views {
			continue
		}
		name := ident.Quote(schema, r.Name)
		only := "ONLY "
		columns := make([]string, 0, len(r.Columns))
		for _, c := range r.Live() {
			columns = append(columns, "t."+ident.Quote(c.Name))
		}
		row := "ROW(" + strings.Join(columns, ", ") + ")::text"
		var err error
		if views {
			out.all[r.Name], err = v.ownInViews(ctx, schema, r, row)
		} else {
			out.all[r.Name], err = v.checksum(ctx, "(SELECT "+row+" AS row FROM "+only+name+" t) x")
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", r.Name, err)
		}
		for number := range keys {
			if out.units[number] == nil {
				out.units[number], out.same[number], out.off[number] = map[string]checksum{}, map[string]checksum{}, map[string]int64{}
			}
			c := checksum{0, "0", "0"}
			if !views {
				rows := fmt.Sprintf("FROM %s t JOIN %s o ON o.unit = %d AND o.rel = %s::regclass AND o.tid = t.ctid", only+name, own, number, ident.Literal(name))
				var same checksum
				var off int64
				if c, err = v.checksum(ctx, "(SELECT "+row+" AS row "+rows+") x"); err == nil {
					same, err = v.checksum(ctx, "(SELECT "+v.unmeasured(r)+" AS row "+rows+") x")
				}
				if err == nil {
					err = v.Conn.QueryRow(ctx, "SELECT count(*) "+rows+" WHERE "+v.offBounds(r)).Scan(&off)
				}
				if err != nil {
					return nil, fmt.Errorf("table %s: %w", r.Name, err)
				}
				out.same[number][r.Name], out.off[number][r.Name] = same, off
			}
			out.units[number][r.Name] = c
		}
	}
	return out, nil
}

// checksum computes the checksum of the texts in the column row of an item of FROM.
func (v *verifier) checksum(ctx context.Context, from string) (c checksum, err error) {
	err = v.Conn.QueryRow(ctx, "SELECT count(*), coalesce(sum(hashtextextended(row, 0)), 0)::text, coalesce(sum(hashtextextended(row, 7)), 0)::text FROM "+from).
		Scan(&c.Rows, &c.First, &c.Second)
	return c, err
}

// ownInViews computes the checksum of a table's own rows in a neighbour of views, by an expression over t: of all rows of
// its view without those of the tables below it, each of which has a view of its own. A partitioned table has no rows of
// its own.
func (v *verifier) ownInViews(ctx context.Context, schema string, r *source.Relation, row string) (checksum, error) {
	own, err := v.checksum(ctx, "(SELECT "+row+" AS row FROM "+ident.Quote(schema, r.Name)+" t) x")
	for _, below := range v.m.Tables() {
		if err != nil {
			break
		}
		if below == r || !below.Stores() || !v.m.Within(below, r) {
			continue
		}
		var part checksum
		if part, err = v.ownInViews(ctx, schema, below, row); err == nil {
			own, err = own.minus(part)
		}
	}
	return own, err
}

// minus removes the rows of a part from a whole.
func (c checksum) minus(part checksum) (checksum, error) {
	first, err := subtract(c.First, part.First)
	if err != nil {
		return c, err
	}
	second, err := subtract(c.Second, part.Second)
	return checksum{c.Rows - part.Rows, first, second}, err
}

// plus combines the rows of two parts.
func (c checksum) plus(other checksum) (checksum, error) {
	none := checksum{0, "0", "0"}
	negative, err := none.minus(other)
	if err != nil {
		return c, err
	}
	return c.minus(negative)
}

func subtract(a, b string) (string, error) {
	x, ok := new(big.Int).SetString(a, 10)
	y, also := new(big.Int).SetString(b, 10)
	if !ok || !also {
		return "", fmt.Errorf("the server's checksum is not a number: %q, %q", a, b)
	}
	return x.Sub(x, y).String(), nil
}
