package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestFaithful compares the server's catalog of the source with that of the copies.
func TestFaithful(t *testing.T) {
	t.Parallel()
	o := shop(t)
	create(t, o)
	columns := `SELECT concat_ws(' ', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, a.attstattarget)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'i', 'I')
		AND c.relnamespace::regnamespace::text = ANY($1) AND c.relname !~ 'secrets|left_out|products' ORDER BY 1`
	if want, got := lines(t, o.Source, columns, []string{"public", "app"}), lines(t, o.Target, columns, []string{"d0"}); !slices.Equal(want, got) {
		t.Errorf("columns: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, world := range []string{"d0", "d1_1"} {
		got := lines(t, o.Target, `SELECT prosrc FROM pg_proc WHERE proname = 'spent' AND pronamespace = to_regnamespace($1)
			UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = to_regclass($1 || '.accounts') AND adnum = 3
			UNION ALL SELECT pg_get_viewdef(to_regclass($1 || '.rich'))`, world)
		for i, want := range []string{
			`SELECT sum(o.total) FROM "` + world + `".orders o JOIN "` + world + `".accounts a`, "nextval('" + world + ".numbers'::regclass)", world + ".spent(",
		} {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q does not hold %q", world, got[i], want)
			}
		}
		if got := lines(t, o.Target, "SELECT last_value::text FROM "+world+".numbers UNION ALL SELECT last_value::text FROM "+world+".accounts_id_seq"); !slices.Equal(got, []string{"777", "128"}) {
			t.Errorf("%s: sequences are at %v", world, got)
		}
	}
}

// TestOptionsOfTheServer: values that the server itself keeps beside the options of tables and columns, as PostgreSQL
// 15.20 does, are neither copied nor compared; the options that a statement can set are both.
func TestOptionsOfTheServer(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.people", "public.visits")
	o.D1, o.Choose = []string{"d1_1", "d1_2"}, []neighbours.Choice{{Rule: neighbours.Random, K: 2}}
	run(t, o.Source, "CREATE TABLE people (id int PRIMARY KEY, income int) WITH (parallel_workers = 3, fillfactor = 70)",
		"CREATE TABLE visits (person int REFERENCES people (id))", "CREATE VIEW recent WITH (security_barrier) AS SELECT * FROM visits",
		"ALTER TABLE people ALTER income SET (n_distinct = -0.5, n_distinct_inherited = 7)",
		"INSERT INTO people SELECT g, g FROM generate_series(1, 9) g", "INSERT INTO visits SELECT id FROM people")
	// On each table another value of an option that no statement can set.
	mark := func(dsn, schemas string) {
		run(t, dsn, "UPDATE pg_attribute SET attoptions = array_prepend('pg_kept=' || attrelid, attoptions) WHERE attnum > 0 AND attrelid IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace::regnamespace::text ~ '"+schemas+"')",
			"UPDATE pg_class SET reloptions = array_prepend('pg_kept=' || oid, reloptions) WHERE relkind IN ('r', 'v') AND relnamespace::regnamespace::text ~ '"+schemas+"'")
	}
	mark(o.Source, "^public$")
	create(t, o)
	mark(o.Target, "^d[01]")
	verified(t, o)
	got := lines(t, o.Target, `SELECT concat_ws(' ', 'people', reloptions) FROM pg_class WHERE oid = 'd0.people'::regclass
		UNION ALL SELECT concat_ws(' ', 'recent', reloptions) FROM pg_class WHERE oid = 'd1_1.recent'::regclass
		UNION ALL SELECT concat_ws(' ', 'income', attoptions) FROM pg_attribute WHERE attrelid = 'd1_2.people'::regclass AND attname = 'income'`)
	for i, want := range []string{"fillfactor=70,parallel_workers=3}", "security_barrier=true}", "n_distinct=-0.5,n_distinct_inherited=7}"} {
		if !strings.HasSuffix(got[i], want) {
			t.Errorf("copied: %s, want %s", got[i], want)
		}
	}
}
