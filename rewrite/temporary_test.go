package rewrite_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// temporaryViews are created in a session, each under a search_path; "" = the default.
var temporaryViews = []struct{ name, path, sql string }{
	{"plain", "", "CREATE TEMP VIEW plain AS SELECT count(*) AS n, max(age) AS a FROM users"},
	{"renamed", "", "CREATE OR REPLACE TEMPORARY VIEW renamed (x) AS SELECT age, id FROM users -- a comment\nWHERE id < 5"},
	{"over", "", "CREATE TEMP VIEW over AS SELECT sum(r.x) AS s FROM renamed r (y, x), /* two of them */ renamed LIMIT 7"},
	{"checked", "", "CREATE TEMP VIEW checked WITH (security_barrier) AS SELECT id AS i FROM users WHERE age > 21 WITH CASCADED CHECK OPTION"},
	{"counts", "", "CREATE TEMP RECURSIVE VIEW counts (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM counts WHERE n < (SELECT min(age) FROM users)"},
	{"Odd name", "", `CREATE TEMP VIEW "Odd name" ("The age") AS SELECT age FROM users WHERE id = 3`},
	{"elsewhere", "app, public", "CREATE TEMP VIEW elsewhere AS SELECT id, f(id) AS g FROM users WHERE id < 3"},
}

// TestTemporaryViews: a statement on temporary views returns the same as the statement that Inline makes of it, in a
// session without them.
func TestTemporaryViews(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	session := connect(t, dsn)
	run(t, session, `CREATE SCHEMA app; CREATE TABLE users (id int, age int); INSERT INTO users SELECT i, 20 + i % 7 FROM generate_series(1, 50) i;
		CREATE TABLE app.users (id int); INSERT INTO app.users VALUES (1), (2), (3);
		CREATE FUNCTION app.f(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 100'; CREATE TABLE sink (a int, b int);`)
	c, err := read.Catalog(t.Context(), dsn, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rewrite.New(rewrite.Options{Protected: []rewrite.Table{table("public", "users")}, Source: c})
	if err != nil {
		t.Fatal(err)
	}
	q := capture.Query{User: "postgres", Database: c.Database}
	for _, v := range temporaryViews {
		d := capture.Temp{Name: v.name, View: v.sql}
		if v.path != "" {
			d.Settings = map[string]string{"search_path": v.path}
			run(t, session, "SET search_path = "+v.path)
		}
		run(t, session, v.sql+";\nRESET search_path")
		q.Temporary, q.Temps = append(q.Temporary, v.name), append(q.Temps, d)
	}
	plain := connect(t, dsn)
	for _, sql := range []string{
		"SELECT * FROM plain",
		"TABLE plain",
		"SELECT plain.n, p.a FROM plain, pg_temp.plain AS p JOIN plain AS q (x, y) ON p.a = q.y",
		"SELECT * FROM renamed ORDER BY x",
		"SELECT r FROM renamed AS r (y, z) WHERE y > 21 ORDER BY z",
		"SELECT * FROM over",
		"SELECT i FROM checked WHERE i < 9 ORDER BY i",
		"SELECT * FROM counts",
		`SELECT "The age" FROM "Odd name"`,
		"SELECT * FROM elsewhere ORDER BY id",
		"SELECT (SELECT n FROM plain), EXISTS (TABLE checked), ARRAY(SELECT x FROM renamed ORDER BY x)",
		"SELECT n FROM plain UNION ALL SELECT a FROM plain ORDER BY 1",
		"WITH plain AS (SELECT 7 AS seven) SELECT * FROM plain",
		"WITH w AS (SELECT * FROM plain) SELECT w.n FROM w",
		"WITH users AS (SELECT 1 AS age) SELECT plain.n, users.age FROM plain, users",
		"INSERT INTO sink SELECT n, a FROM plain RETURNING *",
		"UPDATE sink SET b = p.n FROM plain p WHERE sink.a = p.n RETURNING sink.*",
		"DELETE FROM sink USING plain WHERE a = n RETURNING *",
		"EXPLAIN (COSTS off) SELECT 1 FROM elsewhere LIMIT 0",
	} {
		q.SQL = sql
		inlined := r.Inline(q)
		if len(inlined.Temps) > 0 || len(inlined.Temporary) > 0 {
			t.Errorf("%s: %v is left in %s", sql, inlined.Temporary, inlined.SQL)
			continue
		}
		if want, got := answer(t, session, sql, capture.Query{}), answer(t, plain, inlined.SQL, capture.Query{}); sql[0] != 'E' && want != got {
			t.Errorf("%s: %s: %s", sql, inlined.SQL, cmp.Diff(want, got))
		}
	}

	q.Temps = append(q.Temps, capture.Temp{Name: "filled"})
	for _, sql := range []string{
		"INSERT INTO checked VALUES (70)",
		"SELECT * FROM ONLY plain",
		"INSERT INTO filled VALUES (1) RETURNING v",
		"SELECT n FROM plain, filled",
		"SELECT 1::filled, '2'::pg_temp.filled[]",
		"DO $$ BEGIN PERFORM n FROM plain; END $$",
		"WITH elsewhere AS (INSERT INTO filled DEFAULT VALUES RETURNING v) SELECT * FROM elsewhere",
	} {
		q.SQL = sql
		var refused *rewrite.UnsupportedError
		if _, err := r.Analyze(r.Inline(q)); !errors.As(err, &refused) || refused.Reason != reasons.TempTable {
			t.Errorf("%s: %v, want a refusal for a temporary relation", sql, err)
		}
	}
	for _, sql := range []string{"CREATE OR REPLACE TEMP VIEW plain AS SELECT 1 AS n, 2 AS a", "DROP VIEW plain", "SELECT 1 AS plain"} {
		q.SQL = sql
		if inlined := r.Inline(q); inlined.SQL != sql || len(inlined.Temps) > 0 {
			t.Errorf("%s uses %v", sql, inlined.Temps)
		}
	}
}

// TestParts: the expressions of a DO block that concern the auditor are queries of their own, unless they depend on the
// block.
func TestParts(t *testing.T) {
	t.Parallel()
	procedure := func(name, language, arguments, body string) catalog.Function {
		return catalog.Function{Schema: "public", Name: name, Kind: catalog.KindProcedure, Volatility: "volatile", Language: language, Arguments: arguments, Body: body}
	}
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{table("public", "users")},
		Source: &catalog.Catalog{
			Schemas: []string{"public"}, Relations: []catalog.Relation{relation(catalog.KindTable, "public", "users")},
			Functions: []catalog.Function{
				{Schema: "public", Name: "noisy", Volatility: "volatile", Language: "c"},
				procedure("said", "plpgsql", "e double precision, OUT n double precision", "BEGIN n := e; RAISE NOTICE '%', (SELECT noisy(count(*), 0.3) FROM users); END"),
				procedure("bound", "plpgsql", "e double precision", "BEGIN PERFORM noisy(count(*), e) FROM users; END"),
				procedure("stored", "sql", "", "SELECT 1; SELECT noisy(count(*), 0.3) FROM users"),
				procedure("numbered", "sql", "double precision", "SELECT noisy(count(*), $1) FROM users"),
			},
		},
		Claims: rewrite.ClaimRules{Signatures: []rewrite.Signature{{Function: "noisy", Epsilon: -1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string][]string{
		"BEGIN RAISE NOTICE 'v=%', (SELECT noisy(count(*), 0.3) FROM users); END":                                  {"SELECT (SELECT noisy(count(*), 0.3) FROM users)"},
		"DECLARE v float8 := (SELECT noisy(count(*), 0.3) FROM users); BEGIN v := v + 1; RAISE NOTICE '%', v; END": {"SELECT (SELECT noisy(count(*), 0.3) FROM users)"},
		"DECLARE v float8; BEGIN SELECT noisy(count(*), 0.3) INTO v FROM users; END":                               {"SELECT noisy(count(*), 0.3) FROM users"},
		"BEGIN IF (SELECT noisy(count(*), 1) FROM users) > 150 THEN PERFORM noisy(count(*), 2) FROM users; END IF; END": {
			"SELECT (SELECT noisy(count(*), 1) FROM users) > 150", "SELECT noisy(count(*), 2) FROM users",
		},
		"BEGIN CREATE TEMP TABLE t AS SELECT noisy(count(*), 0.3) AS n FROM users; END": {"CREATE TEMP TABLE t AS SELECT noisy(count(*), 0.3) AS n FROM users"},
		"BEGIN EXECUTE 'SELECT noisy(count(*), 0.3) FROM users'; END":                   {"SELECT noisy(count(*), 0.3) FROM users"},
		"DECLARE r record; BEGIN FOR r IN SELECT noisy(count(*), 1) AS n FROM users LOOP RAISE NOTICE '%', r.n; END LOOP; END": {
			"SELECT noisy(count(*), 1) AS n FROM users",
		},
		"BEGIN FOR i IN 1..9 LOOP PERFORM noisy(count(*), 0.3) FROM users; END LOOP; END":                       nil,
		"DECLARE e float8 := 0.3; BEGIN PERFORM noisy(count(*), e) FROM users; END":                             nil,
		`DECLARE "E" float8 := 0.3; BEGIN PERFORM noisy(count(*), "E") FROM users; END`:                         nil,
		"<<b>> DECLARE e float8 := 0.3; BEGIN PERFORM noisy(count(*), b.e) FROM users; END":                     nil,
		"BEGIN FOR r IN SELECT 1 AS x LOOP PERFORM noisy(count(*), 1) FROM users WHERE id = r.x; END LOOP; END": nil,
		"BEGIN WHILE (SELECT noisy(count(*), 1) FROM users) > 1 LOOP NULL; END LOOP; END":                       nil,
		"DECLARE c CURSOR FOR SELECT noisy(count(*), 1) FROM users; BEGIN OPEN c; END":                          nil,
		"BEGIN EXECUTE 'SELECT noisy(count(*), ' || 0.3 || ') FROM users'; END":                                 nil,
		"BEGIN PERFORM 1; END":  nil,
		"BEGIN this is no body": nil,
	} {
		var got []string
		for _, part := range r.Parts(capture.Query{SQL: "DO $body$ " + body + " $body$", Tag: "DO"}) {
			got = append(got, part.SQL)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	for sql, want := range map[string]int{"CALL said(1)": 1, "CALL public.stored()": 1, "CALL bound(1)": 0, "CALL numbered(1)": 0, "CALL unknown()": 0} {
		if parts := r.Parts(capture.Query{SQL: sql}); len(parts) != want {
			t.Errorf("%s runs %v", sql, parts)
		}
	}
	for _, sql := range []string{"DO LANGUAGE plperl 'noisy users'", "SELECT 1", "DO 'BEGIN END' LANGUAGE plpgsql", "SELECT"} {
		if parts := r.Parts(capture.Query{SQL: sql}); parts != nil {
			t.Errorf("%s: %v", sql, parts)
		}
	}
}
