package neighbours_test

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

//go:embed testdata/shop.sql
var shopSQL string

func table(name string) neighbours.Table {
	schema, bare, _ := strings.Cut(name, ".")
	return neighbours.Table{Schema: schema, Name: bare}
}

func run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%.200s: %v", sql, err)
		}
	}
}

// lines runs a query of one text column.
func lines(t testing.TB, dsn, sql string, args ...any) []string {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	rows, err := conn.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// shop returns the database of testdata, with a shadow database that has its public table.
func shop(t testing.TB) neighbours.Options {
	t.Helper()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	run(t, source, shopSQL)
	run(t, shadow, "CREATE TABLE public.products (id int PRIMARY KEY, name text)")
	o := options(source, shadow)
	o.Note = func(s string) { t.Log(s) }
	return o
}

// options returns options for the database of testdata.
func options(source, shadow string) neighbours.Options {
	o := neighbours.Options{
		RenameBody: rewrite.RenameBody, Source: source, Target: shadow, Control: "dpwatch", D0: "d0", D1: []string{"d1_1", "d1_2"},
		Public:     []neighbours.Table{table("public.products")},
		Unit:       neighbours.Unit{Table: table("public.users"), Key: []string{"id"}},
		SearchPath: []string{"public"}, FunctionPath: []string{"public"},
		Relation: neighbours.Remove, Method: neighbours.Copy, CopyLimit: 1 << 30, Workers: 2,
		Choose: []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}, {Rule: neighbours.Random, K: 1, Seed: 3}},
	}
	for _, name := range []string{
		"public.users", "public.accounts", "app.orders", "app.Order Items", "public.comments", "public.events",
		"public.threads", "public.posts", "public.documents", "public.visits", "public.we\"ird.Table",
	} {
		o.Protected = append(o.Protected, table(name))
	}
	return withPaths(o)
}

// state lists everything that a command of this package may create in a database.
func state(t testing.TB, dsn string) []string {
	return lines(t, dsn, `SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'
		UNION ALL SELECT 'relation ' || oid::regclass FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_|^information_schema$'
		UNION ALL SELECT 'type ' || oid::regtype FROM pg_type WHERE typtype IN ('e', 'd', 'c') AND typnamespace::regnamespace::text !~ '^pg_|^information_schema$'
		ORDER BY 1`)
}

func create(t testing.TB, o neighbours.Options) neighbours.Set {
	t.Helper()
	set, err := neighbours.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// verified fails the test unless verify confirms that every pair differs by one unit.
func verified(t testing.TB, o neighbours.Options) []neighbours.Difference {
	t.Helper()
	report, err := neighbours.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Pairs) != len(o.D1) {
		t.Errorf("%d pairs, want %d", len(report.Pairs), len(o.D1))
	}
	for _, f := range report.Faults {
		t.Errorf("%s: %s", report.Set.D0, f)
	}
	for _, d := range report.Pairs {
		for _, f := range d.Faults {
			t.Errorf("%s: %s", d.Schema, f)
		}
	}
	return report.Pairs
}

func TestCreateVerifyDrop(t *testing.T) {
	t.Parallel()
	for _, method := range []neighbours.Method{neighbours.Copy, neighbours.View} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			o := shop(t)
			o.Method = method // a view can follow the path of contracts, which is also that of documents
			before := state(t, o.Target)
			set := create(t, o)
			if set.Method != method || set.Epoch == 0 || !slices.Equal(set.D1, o.D1) {
				t.Errorf("set %+v", set)
			}
			for _, d := range verified(t, o) {
				if d.Removed["users"] != 1 || len(d.Removed) < 10 {
					t.Errorf("%s: removed %v", d.Schema, d.Removed)
				}
			}
			if got, err := neighbours.Current(t.Context(), o.Target, o.Control); err != nil || got.Epoch != set.Epoch {
				t.Errorf("current: %+v, %v", got, err)
			}
			if err := neighbours.Drop(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if after := state(t, o.Target); !slices.Equal(before, after) {
				t.Errorf("drop left %v of %v", after, before)
			}
		})
	}
}
