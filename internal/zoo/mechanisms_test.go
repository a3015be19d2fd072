package zoo_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"gonum.org/v1/gonum/stat"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/zoo"
)

// world holds the results of repeated executions in one world: the last column's values, and the distinct outcomes
// without values ("NULL", the set of keys).
type world struct {
	values []float64
	shapes map[string]bool
}

func run(t *testing.T, conn *pgx.Conn, sql string, trials int) world {
	t.Helper()
	w := world{shapes: map[string]bool{}}
	for range trials {
		rows, err := conn.Query(context.Background(), sql)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for rows.Next() {
			fields, err := rows.Values()
			if err != nil {
				t.Fatal(err)
			}
			last := len(fields) - 1
			if fields[last] == nil {
				keys["NULL"] = true
				continue
			}
			keys[fmt.Sprint(fields[:last])] = true
			text := fmt.Sprint(fields[last])
			if n, ok := fields[last].(pgtype.Numeric); ok {
				json, err := n.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				text = string(json)
			}
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			w.values = append(w.values, value)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		w.shapes[fmt.Sprint(keys)] = true // fmt sorts the keys
	}
	return w
}

// shift returns the distance of the two worlds' means in units of the scale of their Laplace noise: epsilon, if both
// worlds have the same noise. Whole numbers are treated as rounded noise.
func shift(a, b world) float64 {
	meanA, meanB := stat.Mean(a.values, nil), stat.Mean(b.values, nil)
	var sum float64
	whole := true
	for _, w := range []struct {
		world
		mean float64
	}{{a, meanA}, {b, meanB}} {
		for _, v := range w.values {
			whole = whole && v == math.Trunc(v)
			sum += math.Abs(v - w.mean)
		}
	}
	scale := sum / float64(len(a.values)+len(b.values))
	if whole {
		scale = 1 / (2 * math.Asinh(1/(2*scale))) // the inverse of E|x| = 1 / (2 sinh(1 / 2b))
	}
	return math.Abs(meanA-meanB) / scale
}

// TestMechanisms measures the privacy loss of every mechanism on the showcase's neighbours. With n = 1000 trials per
// world the error of shift is below 12/sqrt(n) (its means, 6 standard errors) + 6 epsilon/sqrt(n) (its scale, at least
// 8 standard errors): 0.38 + 0.19 epsilon; total false-alarm probability below 1e-7.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := connect(t, dsn)
	d0 := showcase.Generate(showcase.Seed)
	for schema, d := range map[string]showcase.Data{"d0": d0, "d1": d0.Without(showcase.HeavyUser)} {
		if err := showcase.Load(t.Context(), conn, schema, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := zoo.Install(t.Context(), conn, "public"); err != nil {
		t.Fatal(err)
	}
	session := func(t *testing.T, schema string) *pgx.Conn {
		conn := connect(t, dsn)
		if _, err := conn.Exec(t.Context(), "set search_path to "+schema+", public"); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	for _, m := range zoo.Mechanisms() {
		t.Run(m.Name, func(t *testing.T) {
			if m.Honest != (m.Epsilon <= m.Claim) {
				t.Errorf("honest %t, claim %g, epsilon %g", m.Honest, m.Claim, m.Epsilon)
			}
			n := 1000
			if math.IsInf(m.Epsilon, 1) || m.Epsilon > 100 {
				n = 60
			}
			a, b := run(t, session(t, "d0"), m.SQL, n), run(t, session(t, "d1"), m.SQL, n)
			tolerance := (12 + 6*m.Epsilon) / math.Sqrt(float64(n))
			switch {
			case math.IsInf(m.Epsilon, 1):
				if !disjoint(a, b) {
					t.Errorf("nothing tells the worlds apart: %v and %v", a.shapes, b.shapes)
				}
			case m.Bound:
				if got := shift(a, b); got > m.Epsilon+tolerance {
					t.Errorf("epsilon %.2f, at most %.2f", got, m.Epsilon)
				}
			default:
				if got := shift(a, b); math.Abs(got-m.Epsilon) > tolerance {
					t.Errorf("epsilon %.2f, want %.2f with a tolerance of %.2f", got, m.Epsilon, tolerance)
				}
			}
		})
	}
}

// disjoint reports whether no result occurred in both worlds.
func disjoint(a, b world) bool {
	for shape := range a.shapes {
		if b.shapes[shape] {
			seen := map[float64]bool{}
			for _, v := range a.values {
				seen[v] = true
			}
			for _, v := range b.values {
				if seen[v] {
					return false
				}
			}
			return len(seen) == 1 || shift(a, b) > 100
		}
	}
	return true
}
