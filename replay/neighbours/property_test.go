package neighbours_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

// world is a random database: table 0 is the unit's, every table has a key (a, b) and some references to others.
type world struct {
	references [][]int // of each table: the tables that it references
	rows       [][]row
}

// row has its index as its key; refs are rows of the referenced tables, -1 = NULL.
type row struct{ refs []int }

// randomWorld generates tables that all lead to the unit's: references go to any table, including itself.
func randomWorld(r *rand.Rand) world {
	n := 3 + r.IntN(4)
	w := world{references: make([][]int, n), rows: make([][]row, n)}
	for t := range n {
		if t > 0 {
			w.references[t] = append(w.references[t], r.IntN(t)) // leads to table 0
		}
		for range r.IntN(3) {
			w.references[t] = append(w.references[t], r.IntN(n))
		}
		w.rows[t] = make([]row, 8+r.IntN(20))
	}
	for t := range n {
		for i := range w.rows[t] {
			for _, to := range w.references[t] {
				ref := r.IntN(len(w.rows[to]))
				if r.IntN(3) == 0 {
					ref = -1
				}
				w.rows[t][i].refs = append(w.rows[t][i].refs, ref)
			}
		}
	}
	return w
}

// sql creates the world. Keys are composite: (i, i * 10). Half of the tables are partitioned by hash.
func (w world) sql() []string {
	var tables, keys, rows []string
	for t, refs := range w.references {
		columns := "a int, b int"
		values := make([]string, len(w.rows[t]))
		for i, x := range w.rows[t] {
			values[i] = fmt.Sprintf("(%d, %d", i, i*10)
			for _, ref := range x.refs {
				if ref < 0 {
					values[i] += ", NULL, 1" // with MATCH SIMPLE a single NULL references nothing
				} else {
					values[i] += fmt.Sprintf(", %d, %d", ref, ref*10)
				}
			}
			values[i] += ")"
		}
		for i, to := range refs {
			columns += fmt.Sprintf(", a%[1]d int, b%[1]d int", i)
			keys = append(keys, fmt.Sprintf("ALTER TABLE t%d ADD FOREIGN KEY (a%d, b%d) REFERENCES t%d (a, b)", t, i, i, to))
		}
		partition := ""
		if t%2 == 1 {
			partition = " PARTITION BY HASH (a)"
		}
		tables = append(tables, fmt.Sprintf("CREATE TABLE t%d (%s, PRIMARY KEY (a, b))%s", t, columns, partition))
		if t%2 == 1 {
			for m := range 2 {
				tables = append(tables, fmt.Sprintf("CREATE TABLE t%d_%d PARTITION OF t%d FOR VALUES WITH (MODULUS 2, REMAINDER %d)", t, m, t, m))
			}
		}
		rows = append(rows, fmt.Sprintf("INSERT INTO t%d VALUES %s", t, strings.Join(values, ", ")))
	}
	return slices.Concat(tables, rows, keys)
}

// without returns the keys of the rows of each table that do not belong to a unit, found by following references
// backwards from the unit's row until nothing is added.
func (w world) without(unit int) [][]int {
	gone := make([]map[int]bool, len(w.rows))
	for t := range gone {
		gone[t] = map[int]bool{}
	}
	gone[0][unit] = true
	for changed := true; changed; {
		changed = false
		for t := 1; t < len(w.rows); t++ {
			for i, x := range w.rows[t] {
				for k, ref := range x.refs {
					if w.references[t][k] != 0 && slices.Contains(w.references[t], 0) {
						continue // a table with references to units belongs to these alone
					}
					if ref >= 0 && gone[w.references[t][k]][ref] && !gone[t][i] {
						gone[t][i], changed = true, true
					}
				}
			}
		}
	}
	left := make([][]int, len(w.rows))
	for t := range left {
		for i := range w.rows[t] {
			if !gone[t][i] {
				left[t] = append(left[t], i)
			}
		}
	}
	return left
}

// TestRandomGraphs: for random graphs of foreign keys, D1 is D0 without exactly one unit's closure, as computed in Go.
func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	for seed := range int(longtest.Count(2, 6)) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			w := randomWorld(rand.New(rand.NewPCG(uint64(seed), 1)))
			o := neighbours.Options{
				RenameBody: rewrite.RenameBody, Source: pgtest.Database(t), Target: pgtest.Database(t), Control: "dpwatch", D0: "d0", D1: []string{"d1_1", "d1_2", "d1_3"},
				Unit: neighbours.Unit{Table: table("public.t0"), Key: []string{"b", "a"}}, Relation: neighbours.Remove, Workers: 2,
				Method: []neighbours.Method{neighbours.Copy, neighbours.View}[seed%2],
				Choose: []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}, {Rule: neighbours.Random, K: 2, Seed: int64(seed)}},
			}
			for i := range w.rows {
				o.Protected = append(o.Protected, table(fmt.Sprintf("public.t%d", i)))
			}
			run(t, o.Source, w.sql()...)
			create(t, o)
			verified(t, o)
			_, members, err := neighbours.List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			whole := make([][]int, len(w.rows))
			for i := range whole {
				for k := range w.rows[i] {
					whole[i] = append(whole[i], k)
				}
			}
			w.compare(t, o.Target, "d0", whole, -1)
			for _, m := range members {
				unit, err := strconv.Atoi(m.Key[1])
				if err != nil {
					t.Fatal(err)
				}
				w.compare(t, o.Target, m.Schema, w.without(unit), unit)
			}
		})
	}
}

// compare checks that the tables of a schema hold exactly the rows with the keys want, with all of their columns. In the
// unit's table nobody is referenced instead of the removed unit.
func (w world) compare(t *testing.T, dsn, schema string, want [][]int, unit int) {
	t.Helper()
	for i := range w.rows {
		var lines0 []string
		for _, k := range want[i] {
			text := fmt.Sprintf("(%d,%d", k, k*10)
			for j, ref := range w.rows[i][k].refs {
				switch {
				case ref < 0:
					text += ",,1"
				case i == 0 && ref == unit && w.references[0][j] == 0:
					text += fmt.Sprintf(",%d,", ref)
				default:
					text += fmt.Sprintf(",%d,%d", ref, ref*10)
				}
			}
			lines0 = append(lines0, text+")")
		}
		got := lines(t, dsn, fmt.Sprintf("SELECT t::text FROM %s.t%d t ORDER BY a", schema, i))
		if !slices.Equal(lines0, got) {
			t.Errorf("%s.t%d: got %v, want %v", schema, i, got, lines0)
		}
	}
}
