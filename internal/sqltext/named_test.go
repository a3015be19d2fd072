package sqltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// TestNameReader: relations, functions, types and operators are returned; columns, aliases, WITH queries and keywords are
// not.
func TestNameReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sql, want string }{
		{"SELECT 1", ""},
		{"SELECT a, b.c AS d, count(*) FROM s.t AS u WHERE u.e = $1 ORDER BY d", "count t ="},
		{`SELECT "F"(1), g /* x */ (2), s.h(3), pg_temp.i(4) FROM "T", only u`, "F g h pg_temp:i T u"},
		{"SELECT f(x => 1, y := 2) FROM a JOIN b USING (id) LEFT JOIN c ON a.x = c.x, d NATURAL JOIN e", "f a b c = d e"},
		{"SELECT * FROM a x, (b JOIN c y ON true), (SELECT 1 FROM d) z, LATERAL f(1) g(h), ROWS FROM (i(1), j(2)) k(l, m)", "a b c d f ROWS i j"},
		{"SELECT extract(year FROM ts), substring(a FROM 1 FOR 2), trim(both FROM n), a IS DISTINCT FROM b FROM t", "t"},
		{"SELECT extract(year FROM f(ts)), cast(a AS s.ty), b::ty2[], c::double precision, ty3 'x', date '2020-01-01', CAST(d AS numeric(10,2)) AS e", "f ty ty2 ty3 date"},
		{"SELECT a::timestamp with time zone, leak2() FROM t", "leak2 t"},
		{"WITH x AS (SELECT 1 FROM a), y (b) AS NOT MATERIALIZED (SELECT f(1) FROM x), z AS MATERIALIZED (SELECT 2) SELECT * FROM x, Y, z, s.x", "a f x"},
		{"SELECT (WITH v AS (SELECT 1) SELECT * FROM v) FROM v", "v"},
		{"WITH RECURSIVE r (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 9) INSERT INTO t (a, b) SELECT n, g(n) FROM r RETURNING h(a)", "+ < t g h"},
		{"INSERT INTO t AS u (a, b) VALUES (1, DEFAULT) ON CONFLICT (a) DO UPDATE SET a = excluded.a, b = f(u.b) WHERE u.c > 1", "t = = f >"},
		{"INSERT INTO t SELECT 1 FROM s ON CONFLICT (a) DO UPDATE SET a = 1, b = 2", "t s = ="},
		{"UPDATE only t x SET (a, b) = (1, f(2)), c = 3 FROM s, r WHERE x.a = s.a RETURNING x.*", "t = f = s r ="},
		{"SELECT 1 FROM t FOR UPDATE OF t, u SKIP LOCKED", "t"},
		{"DELETE FROM t USING s, r WHERE t.a = s.a", "t s r ="},
		{"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = f(1), c = 2 WHEN NOT MATCHED THEN INSERT (a) VALUES (g(1))", "t s = = f = g"},
		{"SELECT a @~@ b, a<-1, c*-d, e !=f, g->>'x', h ~~ i, - j FROM t", "@~@ < - * - <> ->> ~~ - t"},
		{"SELECT a OPERATOR(s.@~@) b, count(*) FILTER (WHERE x IN (1, 2)) OVER (PARTITION BY (a) ORDER BY (b))", "@~@ count"},
		{"SELECT sum(a) OVER w, CASE (x) WHEN 1 THEN (2) ELSE (3) END, DISTINCT, b LIKE 'x' ESCAPE 'y', t AT TIME ZONE 'UTC' FROM t WINDOW w AS (ORDER BY a)", "sum t"},
		{"SELECT DISTINCT ON (a) leak() FROM t", "leak t"},
		{"SELECT 1 FROM a JOIN b ON a.x OPERATOR(pg_catalog.=) leak() JOIN c ON a.y OVERLAPS leak2 (1)", "a b = leak c leak2"},
		{"SELECT a AS from, b AS set, c AS order FROM t AS set, v", "t v"},
		{"SELECT 1 FROM t set, v", "t v"},
		{"TABLE t", "t"},
		{"TRUNCATE a, b; LOCK TABLE c; SELECT d(1); BEGIN; FETCH 10 FROM e; EXECUTE p(f(1)); CALL g(1)", "a b c d f g"},
		{"COPY t (a, b) FROM STDIN WITH (FORMAT csv, DELIMITER ',') WHERE v < leak()", "t < leak"},
		{"COPY (SELECT f(a) FROM t) TO STDOUT", "f t"},
		{"EXPLAIN (ANALYZE, VERBOSE) SELECT f() FROM t", "f t"},
		{"EXPLAIN ANALYZE VERBOSE SELECT f() FROM t", "f t"},
		{"SET x = f; SHOW y; GRANT SELECT ON t TO u; REVOKE ALL ON t FROM u; COMMENT ON FUNCTION f(int) IS 'x'; DROP FUNCTION f(int)", ""},
		{"PREPARE p (int) AS SELECT f(1)", ""},
		{"SELECT 'FROM x', $$f(1)$$, E'\\'g(1)' -- h(1)\n/* FROM i */", ""},
		{"SELECT GROUPING SETS ((a), (b)), x BETWEEN (1) AND (2), NOT (a), ARRAY[1], ROW(1), COALESCE(a), x = ANY ($1) FROM t GROUP BY (a)", "= t"},
		{"SELECT interval '1 day', timestamp '2020-01-01', time with time zone '12:00', E'x', N'y' FROM t", "t"},
		{"SELECT * FROM generate_series(1, 2) AS g (i), unnest($1::int[]) u(j) WHERE i > 1", "generate_series unnest >"},
		{"(SELECT f(1)) UNION (SELECT g(1) FROM a)", "f g a"},
		{"SELECT filter(1), over(2), escape(3), by(4), key(5)", "filter over escape by key"},
	} {
		r := sqltext.NewNameReader(c.sql)
		var got []string
		for n, ok := r.Next(); ok; n, ok = r.Next() {
			text := n.Text
			if n.Temp {
				text = "pg_temp:" + text
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" || r.Unsure {
			t.Errorf("%s: unsure %t\n%s", c.sql, r.Unsure, diff)
		}
	}
}

// TestNameReaderUnsure: beyond its bounds it says so.
func TestNameReaderUnsure(t *testing.T) {
	t.Parallel()
	many := "WITH "
	for i := range 20 {
		many += "x" + strings.Repeat("y", i) + " AS (SELECT 1), "
	}
	for sql, want := range map[string]bool{
		"SELECT " + strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100): true,
		"SELECT " + strings.Repeat("(1) + ", 100) + "1":                       false,
		many + "z AS (SELECT 2) SELECT 3":                                     true,
		`SELECT * FROM U&"\0075sers"`:                                         true,
		`SELECT U&'\0075sers'`:                                                false,
	} {
		r := sqltext.NewNameReader(sql)
		for _, ok := r.Next(); ok; _, ok = r.Next() {
		}
		if r.Unsure != want {
			t.Errorf("%s: %t", sql, r.Unsure)
		}
	}
}

func TestNameReaderAllocatesNothing(t *testing.T) {
	sql := "WITH x AS (SELECT 1 FROM a) SELECT count(*), f(a)::int FROM x, b WHERE a = $1 AND c <> ALL ($2)"
	if n := testing.AllocsPerRun(100, func() {
		r := sqltext.NewNameReader(sql)
		for _, ok := r.Next(); ok; _, ok = r.Next() {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzNameReader: no text makes it panic or return what the text has not.
func FuzzNameReader(f *testing.F) {
	f.Add("SELECT f(1) FROM a, b WHERE x::y = 'z'")
	f.Add("WITH a AS (")
	f.Add("COPY t FROM")
	f.Add(`"`)
	f.Fuzz(func(t *testing.T, sql string) {
		r := sqltext.NewNameReader(sql)
		n := 0
		for name, ok := r.Next(); ok; name, ok = r.Next() {
			if n++; name.Text != "<>" && !strings.Contains(sql, name.Text) || n > len(sql) {
				t.Fatalf("%q", name.Text)
			}
		}
	})
}
