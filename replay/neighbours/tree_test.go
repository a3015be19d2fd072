package neighbours_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestRandomForests: for partitions, sub-partitions and children with keys of their own, and paths declared for tables
// and for parts of them, D1 is D0 without exactly the rows that the declarations assign to the unit, as computed in Go;
// verify counts them, and reports a row too few or too many. DPWATCH_ORACLE_SCHEMAS is the number of databases,
// DPWATCH_ORACLE_SEED the seed.
func TestRandomForests(t *testing.T) {
	t.Parallel()
	count, first := longtest.Number(t, "DPWATCH_ORACLE_SCHEMAS", longtest.Count(2, 8)), longtest.Number(t, "DPWATCH_ORACLE_SEED", 0)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			method := []neighbours.Method{neighbours.Copy, neighbours.View}[seed%4/3]
			f := randomForest(r, method == neighbours.Copy) // the server does not find all rows of some DEFAULT partitions, which a view cannot avoid
			o := f.options(pgtest.Database(t), pgtest.Database(t))
			o.Choose[1].Seed, o.Method = int64(seed>>1), method
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("method %s, unit %s (%v), paths %+v\n%s;", o.Method, o.Unit.Table, o.Unit.Key, o.Paths, strings.Join(f.sql(), ";\n"))
				}
			})
			run(t, o.Source, f.sql()...)
			_, err := neighbours.Create(t.Context(), o)
			if err != nil && o.Method == neighbours.View && strings.Contains(err.Error(), "use neighbours.method copy") {
				o.Method = neighbours.Copy
				_, err = neighbours.Create(t.Context(), o)
			}
			if err != nil {
				t.Fatal(err)
			}
			f.check(t, r, o)
		})
	}
}

// options requests two neighbours of a forest.
func (f *forest) options(source, shadow string) neighbours.Options {
	o := bare(source, shadow, f.unit.sql())
	o.Unit.Key, o.D1 = f.unitKey, []string{"d1_1", "d1_2"}
	o.Choose = []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}, {Rule: neighbours.Random, K: 1}}
	for _, w := range f.trees {
		if w.nodes[0] != f.unit {
			o.Protected = append(o.Protected, table(w.nodes[0].sql()))
		}
		for _, n := range w.nodes {
			for _, e := range n.path {
				p := neighbours.Path{Table: table(n.sql()), Columns: []string{fmt.Sprintf("r%d", e.ref)}, To: table(e.to.sql()), On: []string{"a"}}
				if e.wide {
					p.Columns, p.On = append(p.Columns, fmt.Sprintf("s%d", e.ref)), []string{"a", "d"}
				}
				if e.to == f.unit && slices.Equal(p.On, f.unitKey) {
					p.On = nil // the unit's key is the default
				}
				o.Paths = append(o.Paths, p)
			}
			o.Paths = append(o.Paths, f.ignored(n)...)
		}
	}
	return o
}

// ignored returns lines for the foreign keys to the unit that a declared path replaces in a table: they name it still.
func (f *forest) ignored(leaf *node) (out []neighbours.Path) {
	if _, foreign := f.edges(leaf); foreign || leaf.within(f.unit) {
		return nil
	}
	for n := leaf; n != nil; n = n.parent {
		for _, j := range n.foreign {
			to := n.tree.refs[j].to
			p := neighbours.Path{Table: table(leaf.sql()), Columns: []string{fmt.Sprintf("r%d", j)}, Ignore: "tested"}
			if to.tree.wide {
				p.Columns = append(p.Columns, fmt.Sprintf("s%d", j))
			}
			if f.direct(route{j, to, to.tree.wide}) {
				out = append(out, p)
			}
		}
	}
	return out
}

// check compares D0 and its neighbours with the rows that they must have, and the results of verify before and after a
// change.
func (f *forest) check(t *testing.T, r *rand.Rand, o neighbours.Options) {
	t.Helper()
	pairs := verified(t, o)
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f.compare(t, o.Target, "d0", make([]map[int]bool, len(f.trees)))
	var gone [][]map[int]bool
	for i, m := range members {
		key, err := strconv.Atoi(m.Key[len(m.Key)-1])
		if err != nil {
			t.Fatal(err)
		}
		gone = append(gone, f.gone(f.unitKey[len(f.unitKey)-1], key))
		f.compare(t, o.Target, m.Schema, gone[i])
		removed := map[string]int64{}
		for k, w := range f.trees {
			for a := range gone[i][k] {
				removed[w.leaf(a).name]++
			}
		}
		if !maps.Equal(removed, pairs[i].Removed) {
			t.Errorf("%s: verify says %v are removed, want %v", m.Schema, pairs[i].Removed, removed)
		}
	}
	if t.Failed() {
		return
	}
	less := f.change(t, r, o, members[0].Schema, gone[0], false)
	more := f.change(t, r, o, members[1].Schema, gone[1], true)
	report, err := neighbours.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{less, more} {
		if !slices.ContainsFunc(report.Pairs[i].Faults, func(s string) bool { return strings.Contains(s, "table "+strings.Fields(what)[0]+":") }) {
			t.Errorf("%s: %s: faults %q", report.Pairs[i].Schema, what, report.Pairs[i].Faults)
		}
	}
}

// change deletes a row of another unit from a neighbour, or inserts one of the unit's, and describes the change,
// beginning with the table.
func (f *forest) change(t *testing.T, r *rand.Rand, o neighbours.Options, schema string, gone []map[int]bool, more bool) string {
	t.Helper()
	type place struct {
		n *node
		a int
	}
	var places []place
	for i, w := range f.trees {
		for a := range w.rows {
			if gone[i][a] == more {
				places = append(places, place{w.leaf(a), a})
			}
		}
	}
	if len(places) == 0 {
		t.Fatalf("%s: no rows to change", schema)
	}
	at := places[r.IntN(len(places))]
	n, list := at.n, strings.Join(at.n.tree.columns(), ", ")
	if o.Method == neighbours.View {
		for n.parent != nil && r.IntN(2) == 0 { // each table has a view of its own
			n = n.parent
		}
		def := strings.TrimSuffix(lines(t, o.Target, "SELECT pg_get_viewdef($1::text::regclass)", schema+"."+n.name)[0], ";")
		change := fmt.Sprintf("CREATE OR REPLACE VIEW %s.%s AS SELECT * FROM (%s) AS q WHERE q.a <> %d", schema, n.name, def, at.a)
		if more {
			change = fmt.Sprintf("CREATE OR REPLACE VIEW %s.%s AS %s UNION ALL SELECT * FROM d0.%[2]s WHERE a = %[4]d", schema, n.name, def, at.a)
		}
		run(t, o.Target, change)
		return fmt.Sprintf("%s view, row %d, more: %v", n.name, at.a, more)
	}
	conn := pgtest.Connect(t, o.Target)
	change := fmt.Sprintf("DELETE FROM %s.%s WHERE a = %d", schema, n.name, at.a)
	switch {
	case more:
		change = fmt.Sprintf("INSERT INTO %s.%s (%s) SELECT %[3]s FROM d0.%[2]s WHERE a = %[4]d", schema, n.name, list, at.a)
	case r.IntN(3) == 0:
		change = fmt.Sprintf("UPDATE %s.%s SET v = v || '.' WHERE a = %d", schema, n.name, at.a)
	}
	if tag, err := conn.Exec(context.Background(), "SET session_replication_role = replica"); err != nil {
		t.Fatal(tag, err)
	}
	if tag, err := conn.Exec(context.Background(), change); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s: %v, %v", change, tag, err)
	}
	return n.name + " " + change
}

// compare checks that the tables of a schema hold all rows except those in gone, with all of their columns.
func (f *forest) compare(t *testing.T, dsn, schema string, gone []map[int]bool) {
	t.Helper()
	var want, parts []string
	for i, w := range f.trees {
		for _, n := range w.nodes {
			for a := range w.rows {
				if !gone[i][a] && n.holds(a) { // a view has no ONLY
					want = append(want, n.name+" ("+strings.Join(f.left(w, a, gone[0]), ",")+")")
				}
			}
			parts = append(parts, fmt.Sprintf("SELECT '%s ' || ROW(%s)::text FROM %s.%[1]s", n.name, strings.Join(w.columns(), ", "), schema))
		}
	}
	got := lines(t, dsn, strings.Join(parts, " UNION ALL "))
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", schema, diff)
	}
}
