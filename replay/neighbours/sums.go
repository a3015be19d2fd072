package neighbours

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// checksum is a number of rows and the sums of two 64-bit hashes of their text: the same for the same rows in any
// order, and different for others but with a probability of about 2^-128.
type checksum struct {
	Rows          int64
	First, Second string
}

// worldSums are the checksums of one world's tables: of all rows, and of the rows of the units that are looked at.
type worldSums struct {
	all   map[string]checksum
	units map[int]map[string]checksum
	same  map[int]map[string]checksum // of the units' rows without measures, what is generated, and the keys of an added unit
	off   map[int]map[string]int64    // the units' rows with a measure that is not at its upper bound
}

// sums computes the checksums of a world; keys are the units to look at, by number. In a neighbour that is made of
// views the keys are D0's: rows have no place there, so that the unit's rows are looked for by their references.
func (v *verifier) sums(ctx context.Context, schema string, keys map[int][]string) (*worldSums, error) {
	out := &worldSums{all: map[string]checksum{}, units: map[int]map[string]checksum{}, same: map[int]map[string]checksum{}, off: map[int]map[string]int64{}}
	views := schema != v.set.D0 && v.set.Method == View
	own := ""
	if !views {
		w := &ownership{g: v.g, conn: v.conn, world: schema, work: "pg_temp"}
		defer func() { _, _ = v.conn.Exec(context.WithoutCancel(ctx), "DISCARD TEMP") }()
		if err := w.create(ctx, "TEMP"); err != nil {
			return nil, err
		}
		for number, key := range keys {
			if err := w.oneUnit(ctx, number, key); err != nil {
				return nil, err
			}
		}
		if err := w.fill(ctx, "true"); err != nil {
			return nil, err
		}
		own = w.table("own")
	}
	for _, r := range v.m.tables() {
		if !r.stores() {
			continue
		}
		name := pgx.Identifier{schema, r.Name}.Sanitize()
		only := "ONLY "
		columns := make([]string, 0, len(r.columns))
		for _, c := range r.live() {
			columns = append(columns, "t."+quote(c.name))
		}
		row := "ROW(" + strings.Join(columns, ", ") + ")::text"
		total := `SELECT count(*), coalesce(sum(hashtextextended(row, 0)), 0)::text, coalesce(sum(hashtextextended(row, 7)), 0)::text FROM `
		source := only + name
		if views {
			source = v.viewRows(name, r)
		}
		var c checksum
		if err := v.conn.QueryRow(ctx, total+"(SELECT "+row+" AS row FROM "+source+" t) x").Scan(&c.Rows, &c.First, &c.Second); err != nil {
			return nil, fmt.Errorf("table %s: %w", r.Name, err)
		}
		out.all[r.Name] = c
		for number := range keys {
			if out.units[number] == nil {
				out.units[number], out.same[number], out.off[number] = map[string]checksum{}, map[string]checksum{}, map[string]int64{}
			}
			c := checksum{0, "0", "0"}
			if !views {
				rows := fmt.Sprintf("FROM %s t JOIN %s o ON o.unit = %d AND o.rel = %s::regclass AND o.tid = t.ctid", only+name, own, number, literal(name))
				if err := v.conn.QueryRow(ctx, total+"(SELECT "+row+" AS row "+rows+") x").Scan(&c.Rows, &c.First, &c.Second); err != nil {
					return nil, fmt.Errorf("table %s: %w", r.Name, err)
				}
				same, off := checksum{}, int64(0)
				err := v.conn.QueryRow(ctx, total+"(SELECT "+v.unmeasured(r)+" AS row "+rows+") x").Scan(&same.Rows, &same.First, &same.Second)
				if err == nil {
					err = v.conn.QueryRow(ctx, "SELECT count(*) "+rows+" WHERE "+v.offBounds(r)).Scan(&off)
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

// viewRows is a table's own rows in a neighbour of views: without those of the tables below it, whose views are apart.
func (v *verifier) viewRows(name string, r *relation) string {
	columns := make([]string, 0, len(r.columns))
	for _, c := range r.live() {
		columns = append(columns, quote(c.name))
	}
	list, schema := strings.Join(columns, ", "), strings.TrimSuffix(name, quote(r.Name))
	var below []string
	for _, child := range v.m.tables() {
		if slices.Contains(child.parents, r.oid) { // with those below it
			below = append(below, fmt.Sprintf("SELECT %s FROM %s%s", list, schema, quote(child.Name)))
		}
	}
	if below == nil {
		return name
	}
	return fmt.Sprintf("(SELECT %s FROM %s EXCEPT ALL (%s))", list, name, strings.Join(below, " UNION ALL "))
}

// minus takes the rows of a part out of a whole.
func (c checksum) minus(part checksum) (checksum, error) {
	first, err := subtract(c.First, part.First)
	if err != nil {
		return c, err
	}
	second, err := subtract(c.Second, part.Second)
	return checksum{c.Rows - part.Rows, first, second}, err
}

// plus puts the rows of two parts together.
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
