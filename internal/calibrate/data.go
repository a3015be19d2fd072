package calibrate

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// column is the column of every table: one row for each privacy unit.
const column = "v"

// data is a table with one row for each unit. The first one is the unit that D1 lacks.
type data struct {
	values []float64
	bounds [2]float64
}

// newData makes a table of some rows. The first value is the bound with the greatest magnitude, which moves a sum most,
// or ten times as far out. Within the bounds it is a little less, so that a sum has a fractional part only with it:
// noise that is rounded before it is added does not hide that. In small tables the others have the other bound, where
// one value moves the average most; in larger ones they have both bounds in turn.
func newData(rows int, outside bool, lower, upper float64) data {
	far, near := upper, lower
	if math.Abs(lower) > math.Abs(upper) {
		far, near = lower, upper
	}
	d := data{values: make([]float64, rows), bounds: [2]float64{lower, upper}}
	for i := range d.values {
		d.values[i] = near
		if rows > smallTable && i%2 == 0 {
			d.values[i] = far
		}
	}
	d.values[0] = far - (far-near)/1024
	if outside {
		d.values[0] = far + math.Copysign(10*math.Abs(far), far)
	}
	return d
}

const smallTable = 10

// truth returns the answer without noise, with the values within their bounds.
func (d data) truth(kind Kind) float64 {
	sum := 0.0
	for _, v := range d.values {
		sum += min(max(v, d.bounds[0]), d.bounds[1])
	}
	switch kind {
	case Count:
		return float64(len(d.values))
	case Sum:
		return sum
	}
	return sum / float64(len(d.values))
}

// tables are the two schemas of one calibration.
type tables struct {
	conn    *pgx.Conn
	schemas []string // D0, D1
	made    map[string]bool
}

// makeSchemas creates two schemas with random names.
func makeSchemas(ctx context.Context, conn *pgx.Conn) (*tables, error) {
	suffix := strings.ToLower(rand.Text()[:12])
	t := &tables{conn: conn, made: map[string]bool{}}
	for _, world := range []string{"d0", "d1"} {
		schema := "dpwatch_calibrate_" + suffix + "_" + world
		if _, err := conn.Exec(ctx, "create schema "+ident.Quote(schema)); err != nil {
			return t, fmt.Errorf("create a schema for the test data: %w: the role needs the privilege CREATE on the database", err)
		}
		t.schemas = append(t.schemas, schema)
	}
	return t, nil
}

// drop removes both schemas. It uses a session of its own, since an interruption ends the other one.
func (t *tables) drop(ctx context.Context) error {
	if len(t.schemas) == 0 {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, t.conn.Config())
	if err != nil {
		return fmt.Errorf("drop the schemas %s: %w: drop them by hand", strings.Join(t.schemas, ", "), err)
	}
	defer conn.Close(ctx)
	for _, schema := range t.schemas {
		if _, err := conn.Exec(ctx, "drop schema "+ident.Quote(schema)+" cascade"); err != nil {
			return fmt.Errorf("drop schema %s: %w: drop it by hand", schema, err)
		}
	}
	return nil
}

// load creates a table in both schemas unless it is there, with the values for each, and returns its name in each.
func (t *tables) load(ctx context.Context, name string, values [2][]float64) (names []string, err error) {
	for world, schema := range t.schemas {
		table := ident.Quote(schema, name)
		names = append(names, table)
		if t.made[table] {
			continue
		}
		if _, err := t.conn.Exec(ctx, "create table "+table+" ("+column+" double precision)"); err != nil {
			return nil, fmt.Errorf("create table %s: %w", table, err)
		}
		if _, err := t.conn.Exec(ctx, "insert into "+table+" select unnest($1::double precision[])", values[world]); err != nil {
			return nil, fmt.Errorf("fill table %s: %w", table, err)
		}
		if _, err := t.conn.Exec(ctx, "analyze "+table); err != nil {
			return nil, fmt.Errorf("analyze table %s: %w", table, err)
		}
		t.made[table] = true
	}
	return names, nil
}
