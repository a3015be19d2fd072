package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var limits = body.Limits{Bytes: 1 << 20, Tokens: 1 << 16}

const library = `
	CREATE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT scale * ln((1 - random()) / (1 - random()))';
	CREATE FUNCTION noise(scale float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ DECLARE x float8; BEGIN x := laplace(scale); RETURN x; END $$;
	CREATE FUNCTION p_count(n bigint, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT n + noise(1 / epsilon)';
	CREATE FUNCTION other(n bigint) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT n + random()';
	CREATE FUNCTION step(state float8, x float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT state + x';
	CREATE AGGREGATE p_sum(float8) (SFUNC = step, STYPE = float8, INITCOND = '0');
	CREATE FUNCTION dynamic(n bigint) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ DECLARE x float8; BEGIN EXECUTE 'SELECT noise(1)' INTO x; RETURN x; END $$;
	CREATE VIEW counted AS SELECT p_count(count(*), 1) AS n FROM pg_class;
	CREATE VIEW twice AS SELECT 2 * n AS n FROM counted`

// reader returns a Reader of a new database with the functions above, and its connection string.
func reader(t *testing.T) (*engine.Reader, string) {
	t.Helper()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, library)
	r := engine.NewReader(dsn, time.Minute, limits)
	t.Cleanup(r.Close)
	return r, dsn
}

func snapshot(t *testing.T, r *engine.Reader) *engine.Snapshot {
	t.Helper()
	s, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var queries = map[string]engine.Calls{
	"direct":    {Functions: []string{"noise"}, Path: []string{"public"}},
	"qualified": {Functions: []string{"public.p_count"}, Path: []string{"public"}},
	"deep":      {Functions: []string{"count", "p_count"}, Path: []string{"public"}},
	"other":     {Functions: []string{"other"}, Path: []string{"public"}},
	"aggregate": {Functions: []string{"p_sum"}, Path: []string{"public"}},
	"dynamic":   {Functions: []string{"dynamic"}, Path: []string{"public"}},
	"view":      {Relations: []ident.Table{{Schema: "public", Name: "twice"}}, Path: []string{"public"}},
	"implied":   {Implied: []ident.Table{{Schema: "public", Name: "noise"}}, Path: []string{"public"}},
	"nothing":   {Functions: []string{"count", "random"}, Path: []string{"public"}},
	"elsewhere": {Functions: []string{"noise"}, Path: []string{"nowhere"}},
}

// TestEpoch: an epoch changes with each definition on which the query depends, at any depth, and with nothing else.
func TestEpoch(t *testing.T) {
	t.Parallel()
	r, dsn := reader(t)
	all := []string{"direct", "qualified", "deep", "other", "aggregate", "dynamic", "view", "implied", "nothing", "elsewhere"}
	noise := []string{"direct", "qualified", "deep", "dynamic", "view", "implied"}
	for _, step := range []struct {
		name, sql string
		want      []string // the queries whose epochs change
	}{
		{"nothing", `SELECT 1`, nil},
		{"an unrelated function", `CREATE FUNCTION unrelated() RETURNS int LANGUAGE sql AS 'SELECT 1'`, nil},
		{"the same name in a schema that is not on the path", `CREATE SCHEMA elsewhere; CREATE FUNCTION elsewhere.noise(x float8) RETURNS float8 LANGUAGE sql AS 'SELECT x'`, nil},
		{"owner and privileges", `REVOKE EXECUTE ON FUNCTION noise(float8) FROM public`, nil},
		{"a table", `CREATE TABLE t (n int); ANALYZE t`, nil},
		{"two levels below", `CREATE OR REPLACE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT 0.0::float8'`, noise},
		{"volatility", `ALTER FUNCTION laplace(float8) STABLE`, noise},
		{"its own setting", `ALTER FUNCTION laplace(float8) SET extra_float_digits = 0`, noise},
		{"an overload", `CREATE FUNCTION laplace(scale numeric) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT 0.0::float8'`, noise},
		{"a part of an aggregate", `CREATE OR REPLACE FUNCTION step(state float8, x float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT state + least(x, 10)'`, []string{"aggregate"}},
		{"an aggregate", `CREATE OR REPLACE AGGREGATE p_sum(float8) (SFUNC = step, STYPE = float8, INITCOND = '1')`, []string{"aggregate"}},
		{"the other", `CREATE OR REPLACE FUNCTION other(n bigint) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT n'`, []string{"other"}},
		{"a setting that has no effect on results", `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = %L', current_database(), '8MB'); END $$`, nil},
		{"a setting of the engine", `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET dp.epsilon = %L', current_database(), '1'); END $$`, all},
	} {
		before := snapshot(t, r)
		pgtest.Exec(t, dsn, step.sql)
		after := snapshot(t, r)
		var changed []string
		for _, name := range all {
			if before.Epoch(queries[name]) != after.Epoch(queries[name]) {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		want := slices.Sorted(slices.Values(step.want))
		if !slices.Equal(changed, want) {
			t.Errorf("%s changes the epochs of %v; want %v", step.name, changed, want)
		}
	}
}

// TestPaths: a function that is called under two search paths depends on what it calls under both.
func TestPaths(t *testing.T) {
	t.Parallel()
	r, dsn := reader(t)
	pgtest.Exec(t, dsn, `CREATE SCHEMA x; CREATE SCHEMA y; CREATE SCHEMA z;
		CREATE FUNCTION x.leaf() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION y.leaf() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION z.leaf() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION middle() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN leaf(); END';
		CREATE FUNCTION under_x() RETURNS int LANGUAGE sql SET search_path = x AS 'SELECT public.middle()';
		CREATE FUNCTION under_y() RETURNS int LANGUAGE sql SET search_path = y AS 'SELECT public.middle()';
		CREATE FUNCTION under_z() RETURNS int LANGUAGE sql SET search_path = z BEGIN ATOMIC SELECT public.middle(); END`)
	calls := engine.Calls{Functions: []string{"under_x", "under_y", "under_z"}, Path: []string{"public"}}
	for _, schema := range []string{"x", "y", "z"} {
		before := snapshot(t, r).Epoch(calls)
		pgtest.Exec(t, dsn, `CREATE OR REPLACE FUNCTION `+schema+`.leaf() RETURNS int LANGUAGE sql AS 'SELECT 2'`)
		if snapshot(t, r).Epoch(calls) == before {
			t.Errorf("the epoch does not change with %s.leaf", schema)
		}
	}
}

// TestSameSnapshot: while nothing changes, Read returns the same Snapshot; two readers of one state agree on the
// epochs, and after a lost session a Reader goes on.
func TestSameSnapshot(t *testing.T) {
	t.Parallel()
	r, dsn := reader(t)
	s := snapshot(t, r)
	if s != snapshot(t, r) {
		t.Error("another Snapshot although nothing has changed")
	}
	other := engine.NewReader(dsn, time.Minute, limits)
	defer other.Close()
	for name, calls := range queries {
		if a, b := s.Epoch(calls), snapshot(t, other).Epoch(calls); a != b {
			t.Errorf("%s: epochs %s and %s", name, a, b)
		}
	}
	pgtest.Exec(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpwatch-engine' AND datname = current_database()`)
	if _, err := r.Read(t.Context()); err == nil {
		t.Error("no error although the session was ended")
	}
	if got := snapshot(t, r); got.Epoch(queries["deep"]) != s.Epoch(queries["deep"]) {
		t.Error("another epoch after a lost session")
	}
}

// TestDiffer: functions that differ between production and shadow are named, at any depth, and those that cannot be
// compared are left out.
func TestDiffer(t *testing.T) {
	t.Parallel()
	production, productionDSN := reader(t)
	shadow, shadowDSN := reader(t)
	copies := []string{"d0", "d1"}
	check := func(what, query string, want ...string) {
		t.Helper()
		if got := engine.Differ(snapshot(t, production), snapshot(t, shadow), queries[query], copies); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for name := range queries {
		check("the same functions", name)
	}
	pgtest.Exec(t, shadowDSN, `CREATE OR REPLACE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT 0.0::float8'`)
	check("two levels below", "deep", "public.laplace")
	check("not called", "other")
	if changed := snapshot(t, shadow).Changed(snapshot(t, production)); !slices.Equal(changed, []string{"public.laplace"}) {
		t.Errorf("changed: %v", changed)
	}
	pgtest.Exec(t, shadowDSN, `CREATE SCHEMA dp; ALTER FUNCTION other(bigint) SET SCHEMA dp`)
	check("the same function in another schema", "other")
	pgtest.Exec(t, productionDSN, `CREATE FUNCTION other(n int) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT n'`)
	check("an overload that the shadow lacks", "other", "public.other")
	pgtest.Exec(t, shadowDSN, `CREATE SCHEMA d0; CREATE FUNCTION d0.other(n bigint) RETURNS float8 LANGUAGE sql AS 'SELECT n'`)
	check("a function with copies", "other")
	if got := engine.Differ(snapshot(t, production), engine.Answered("1"), queries["deep"], copies); got != nil {
		t.Errorf("against an engine whose functions are not known: %v", got)
	}
}

// TestQuestion: the answer is the epoch of every query; an answer that is no single row is an error.
func TestQuestion(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `CREATE TABLE version AS SELECT 'one' AS text, 1 AS number`)
	for _, extended := range []bool{false, true} {
		q := &engine.Question{DSNs: []string{dsn, dsn}, SQL: "SELECT * FROM version", Timeout: time.Minute, Extended: extended}
		defer q.Close()
		first, err := q.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := q.Read(t.Context()); again != first || err != nil {
			t.Errorf("another Snapshot, %v", err)
		}
		pgtest.Exec(t, dsn, `UPDATE version SET number = number + 1`)
		second, err := q.Read(t.Context())
		if err != nil || second.Epoch(queries["deep"]) == first.Epoch(queries["deep"]) || second.Epoch(queries["deep"]) != second.Epoch(queries["other"]) {
			t.Errorf("after a deploy: %v; want another epoch, the same for every query", err)
		}
		pgtest.Exec(t, dsn, `INSERT INTO version VALUES ('two', 2)`)
		if _, err := q.Read(t.Context()); err == nil {
			t.Error("two rows: no error")
		}
		pgtest.Exec(t, dsn, `DELETE FROM version WHERE text = 'two'`)
	}
}

// TestUnlike: a difference between production and the shadow database is named, unless replays make up for it.
func TestUnlike(t *testing.T) {
	t.Parallel()
	production, there := reader(t)
	shadow, here := reader(t)
	role := "unlike_" + pgtest.Connect(t, there).Config().Database
	pgtest.Exec(t, there, "CREATE ROLE "+role)
	t.Cleanup(func() { pgtest.Exec(t, there, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	alter := func(what string) string {
		return "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I " + what + "', current_database()); END $$"
	}
	for _, step := range []struct {
		name, production, shadow string
		replayed                 map[string]string
		want                     []string // of a session of role; it begins so
	}{
		{name: "alike"},
		{name: "a setting of the shadow", shadow: alter("SET default_text_search_config = simple"), want: []string{"default_text_search_config ("}},
		{name: "which replays set", replayed: map[string]string{"default_text_search_config": "english"}},
		{name: "also in production", production: alter("SET default_text_search_config = english")},
		{name: "reset", production: alter("RESET ALL"), shadow: alter("RESET ALL")},
		{name: "a setting of the database that replays do not set", production: alter("SET backslash_quote = off"), want: []string{"backslash_quote (off in production, safe_encoding in the shadow database)"}},
		{name: "a setting of the role that replays do not set", production: "ALTER ROLE " + role + " SET backslash_quote = on", want: []string{"backslash_quote (on in production, safe_encoding"}},
		{name: "the same here", production: "ALTER ROLE " + role + " RESET ALL;" + alter("RESET ALL")},
		{name: "an extension of one", production: "CREATE EXTENSION pg_trgm"},
		{name: "another version", shadow: "CREATE EXTENSION pg_trgm VERSION '1.3'", want: []string{"extension pg_trgm ("}},
	} {
		pgtest.Exec(t, there, "SELECT 1;"+step.production)
		pgtest.Exec(t, here, "SELECT 1;"+step.shadow)
		got := engine.Unlike(snapshot(t, production), snapshot(t, shadow), role, step.replayed)
		if !slices.EqualFunc(got, step.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}
