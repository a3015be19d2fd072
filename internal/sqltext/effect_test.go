package sqltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

func TestAnalyze(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	set := func(name, value string) sqltext.Effect {
		return sqltext.Effect{Action: sqltext.Set, Name: name, Value: value}
	}
	constant := func(value string) sqltext.Operand { return sqltext.Operand{Value: value} }
	assign := func(name, value, local string) sqltext.Assignment {
		return sqltext.Assignment{Name: constant(name), Value: constant(value), Local: constant(local)}
	}
	assigns := func(list ...sqltext.Assignment) sqltext.Effect { return sqltext.Effect{Assignments: list} }
	names := func(list ...string) sqltext.Effect { return sqltext.Effect{Doubt: sqltext.Doubt{Names: list}} }
	calls := func(list ...string) sqltext.Effect { return sqltext.Effect{Doubt: sqltext.Doubt{Calls: list}} }
	anySetting := sqltext.Effect{Doubt: sqltext.Doubt{Any: true}}
	tests := []struct {
		in   string
		want sqltext.Effect
	}{
		{"", sqltext.Effect{}},
		{"SELECT 1", sqltext.Effect{}},
		{"(SELECT 1)", sqltext.Effect{}},

		{"SET dp.epsilon = 0.5", set("dp.epsilon", "0.5")},
		{"set DP.Epsilon to '0.5'", set("dp.epsilon", "0.5")},
		{`SET "Dp"."Epsilon" = $$0.5$$`, set("dp.epsilon", "0.5")},
		{"/* a */ SET -- b\n x /* c */ = /* d */ -3", set("x", "-3")},
		{"SET x = +1e-6", set("x", "1e-6")},
		{"SET x TO On", set("x", "on")},
		{`SET x TO "On"`, set("x", "On")},
		{"SET x = 'it''s'", set("x", "it's")},
		{`SET x = E'a\'b\n'`, set("x", "a'b\n")},
		{"SET x = 'a'\n'b'", set("x", "ab")},
		{"SET x = ''", set("x", "")},
		{`SET x = E'\x41'`, sqltext.Effect{Action: sqltext.Change, Name: "x"}},
		{"SET x FROM CURRENT", sqltext.Effect{Action: sqltext.Change, Name: "x"}},
		{"SET DateStyle = ISO, 'DMY'", set("datestyle", "iso, DMY")},
		{`SET search_path = "$user", public, "My Schema", 'a"b'`, set("search_path", `"$user", public, "My Schema", "a""b"`)},
		{"SET search_path TO ''", set("search_path", `""`)},
		{"SET SCHEMA 'd1'", set("search_path", "d1")},
		{"SET SESSION x = 1", set("x", "1")},
		{"SET LOCAL x = 1", sqltext.Effect{Action: sqltext.Set, Name: "x", Value: "1", Local: true}},
		{"SET LOCAL x TO DEFAULT", sqltext.Effect{Action: sqltext.Reset, Name: "x", Local: true}},
		{"SET x = DEFAULT", sqltext.Effect{Action: sqltext.Reset, Name: "x"}},
		{"SET x = 'default'", set("x", "default")},
		{"SET TIME ZONE 'UTC'", set("timezone", "UTC")},
		{"SET LOCAL TIME ZONE -3", sqltext.Effect{Action: sqltext.Set, Name: "timezone", Value: "-3", Local: true}},
		{"SET TIME ZONE LOCAL", sqltext.Effect{Action: sqltext.Reset, Name: "timezone"}},
		{"SET TIME ZONE INTERVAL '1' HOUR TO MINUTE", sqltext.Effect{Action: sqltext.Change, Name: "timezone"}},
		{"SET LOCAL TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", sqltext.Effect{Action: sqltext.Change, Name: "timezone", Local: true}},
		{"SET NAMES 'latin1'", set("client_encoding", "latin1")},
		{"SET NAMES", sqltext.Effect{Action: sqltext.Reset, Name: "client_encoding"}},
		{"SET ROLE analyst", set("role", "analyst")},
		{"SET SESSION AUTHORIZATION 'ann'", set("session_authorization", "ann")},
		{"SET LOCAL SESSION AUTHORIZATION DEFAULT", sqltext.Effect{Action: sqltext.Reset, Name: "session_authorization", Local: true}},
		{"SET XML OPTION DOCUMENT", set("xmloption", "document")},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", sqltext.Effect{}},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", sqltext.Effect{}},
		{"SET CONSTRAINTS ALL DEFERRED", sqltext.Effect{}},
		{"SET x = 1 garbage", sqltext.Effect{Action: sqltext.Change, Name: "x"}},
		{"SET", sqltext.Effect{Action: sqltext.Unclear}},

		{"RESET x.y", sqltext.Effect{Action: sqltext.Reset, Name: "x.y"}},
		{"RESET ALL", sqltext.Effect{Action: sqltext.ResetAll}},
		{"RESET TIME ZONE", sqltext.Effect{Action: sqltext.Reset, Name: "timezone"}},
		{"RESET SESSION AUTHORIZATION", sqltext.Effect{Action: sqltext.Reset, Name: "session_authorization"}},
		{"DISCARD ALL", sqltext.Effect{Action: sqltext.DiscardAll}},
		{"DISCARD PLANS", sqltext.Effect{}},
		{"DISCARD TEMP", sqltext.Effect{Action: sqltext.DiscardTemp}},
		{"DISCARD temporary", sqltext.Effect{Action: sqltext.DiscardTemp}},

		{"begin isolation level serializable", sqltext.Effect{Action: sqltext.Begin}},
		{"START TRANSACTION", sqltext.Effect{Action: sqltext.Begin}},
		{"COMMIT", sqltext.Effect{Action: sqltext.Commit}},
		{"END WORK AND CHAIN", sqltext.Effect{Action: sqltext.Commit, Chain: true}},
		{"COMMIT AND NO CHAIN", sqltext.Effect{Action: sqltext.Commit}},
		{"COMMIT PREPARED 'x'", sqltext.Effect{MayCommit: true}},
		{"PREPARE TRANSACTION 'x'", sqltext.Effect{Action: sqltext.Commit}},
		{"ABORT", sqltext.Effect{Action: sqltext.Rollback}},
		{"ROLLBACK TRANSACTION AND CHAIN", sqltext.Effect{Action: sqltext.Rollback, Chain: true}},
		{"ROLLBACK PREPARED 'x'", sqltext.Effect{MayCommit: true}},
		{"SAVEPOINT A", sqltext.Effect{Action: sqltext.Savepoint, Name: "a"}},
		{"ROLLBACK TO a", sqltext.Effect{Action: sqltext.RollbackTo, Name: "a"}},
		{`ROLLBACK WORK TO SAVEPOINT "A"`, sqltext.Effect{Action: sqltext.RollbackTo, Name: "A"}},
		{"ROLLBACK TO savepoint", sqltext.Effect{Action: sqltext.RollbackTo, Name: "savepoint"}},
		{"RELEASE SAVEPOINT a", sqltext.Effect{Action: sqltext.Release, Name: "a"}},
		{"RELEASE a", sqltext.Effect{Action: sqltext.Release, Name: "a"}},

		{"PREPARE p (int) AS SELECT $1", sqltext.Effect{Action: sqltext.Prepare, Name: "p", Types: []uint32{23}, Statement: "SELECT $1", Plain: true}},
		{"PREPARE " + long + " AS SELECT 1", sqltext.Effect{Action: sqltext.Prepare, Name: long[:63], Statement: "SELECT 1", Plain: true}},
		{"PREPARE transaction AS SELECT 1", sqltext.Effect{Action: sqltext.Prepare, Name: "transaction", Statement: "SELECT 1", Plain: true}},
		{"PREPARE p", sqltext.Effect{Action: sqltext.Unclear}},
		{"EXPLAIN EXECUTE p", sqltext.Effect{Action: sqltext.ExecuteWithin, Name: "p", Plain: true, Before: "EXPLAIN "}},
		{"EXPLAIN (ANALYZE, VERBOSE) EXECUTE p (1, 'x')", sqltext.Effect{Action: sqltext.ExecuteWithin, Name: "p", Plain: true, Before: "EXPLAIN (ANALYZE, VERBOSE) ", Args: []sqltext.Arg{{Value: "1", Type: 23}, {Value: "x"}}}},
		{"EXPLAIN ANALYZE CREATE TABLE t AS EXECUTE p (f(1))", sqltext.Effect{Action: sqltext.ExecuteWithin, Name: "p", Before: "EXPLAIN ANALYZE CREATE TABLE t AS ", Doubt: sqltext.Doubt{Calls: []string{"p", "f"}}}},
		{"EXPLAIN SELECT 1 execute", sqltext.Effect{Action: sqltext.ExecuteWithin}},
		{"CREATE TABLE executed AS SELECT x AS execute FROM t", sqltext.Effect{Action: sqltext.ExecuteWithin}},
		{"CREATE TABLE t (execute) AS SELECT 1", sqltext.Effect{Action: sqltext.ExecuteWithin}},
		{"CREATE TEMP TABLE t AS EXECUTE p", sqltext.Effect{Action: sqltext.ExecuteWithin, Name: "p", Plain: true, Before: "CREATE TEMP TABLE t AS ", Temps: []sqltext.TempChange{{Made: "t"}}}},
		{"DEALLOCATE p", sqltext.Effect{Action: sqltext.Deallocate, Name: "p"}},
		{"DEALLOCATE PREPARE p", sqltext.Effect{Action: sqltext.Deallocate, Name: "p"}},
		{"DEALLOCATE PREPARE", sqltext.Effect{Action: sqltext.Deallocate, Name: "prepare"}},
		{"DEALLOCATE ALL", sqltext.Effect{Action: sqltext.Deallocate}},
		{`DEALLOCATE "all"`, sqltext.Effect{Action: sqltext.Deallocate, Name: "all"}},
		{"DECLARE c CURSOR FOR SELECT 1", sqltext.Effect{Action: sqltext.DeclareCursor, Name: "c", Statement: "DECLARE c CURSOR FOR SELECT 1"}},
		{"CLOSE c", sqltext.Effect{Action: sqltext.CloseCursor, Name: "c"}},
		{"CLOSE ALL", sqltext.Effect{Action: sqltext.CloseCursor}},

		{"SELECT pg_catalog.Set_Config('A.b', '1', false)", assigns(assign("A.b", "1", "false"))},
		{"SELECT set_config('search_path', 'a, b', 'true')", assigns(assign("search_path", "a, b", "true"))},
		{"SELECT set_config('a.b', '1', 't') AS x", assigns(assign("a.b", "1", "t"))},
		{`SELECT "set_config"('a.b', '1', false)`, assigns(assign("a.b", "1", "false"))},
		{"SELECT set_config('a.b', $1, false)", assigns(sqltext.Assignment{Name: constant("a.b"), Value: sqltext.Operand{Param: 1}, Local: constant("false")})},
		{"SELECT set_config($1::text, CAST($2 AS varchar), $3::bool)", assigns(sqltext.Assignment{Name: sqltext.Operand{Param: 1}, Value: sqltext.Operand{Param: 2}, Local: sqltext.Operand{Param: 3}})},
		{"SELECT set_config(('a.b'), (('1'::varchar)), ('0'::bool))", assigns(assign("a.b", "1", "0"))},
		{"SELECT set_config(('a.b')::text, (CAST('1' AS text)), (false))", assigns(assign("a.b", "1", "false"))},
		{"SELECT set_config(($1), ((CAST($2 AS varchar))::text), ($3::bool))", assigns(sqltext.Assignment{Name: sqltext.Operand{Param: 1}, Value: sqltext.Operand{Param: 2}, Local: sqltext.Operand{Param: 3}})},
		{"SELECT set_config(('a.b'), ($1::int)::text, (false))", names("a.b")},
		{"SELECT set_config(('a.b'), (('1'), false)", names("a.b")},
		{"SELECT set_config('a.b', ('1' || x), false)", names("a.b")},
		{"SELECT set_config('a.b', '1', false), set_config('a.c', '2', true)", assigns(assign("a.b", "1", "false"), assign("a.c", "2", "true"))},
		{"SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new", assigns(assign("jit", "off", "false"))},
		{"SELECT set_config('a.b', NULL, false)", assigns(sqltext.Assignment{Name: constant("a.b"), Value: sqltext.Operand{Null: true}, Local: constant("false")})},
		{"SELECT set_config('a.b', '1', false) WHERE false", names("a.b")},
		{"SELECT set_config('a.b', x, false) FROM y", names("a.b")},
		{"SELECT set_config('a.b', '1', false), (SELECT set_config('a.c', x, false) FROM y)", names("a.b", "a.c")},
		{"SELECT set_config(x, '1', false) FROM y", anySetting},
		{"INSERT INTO t (a) SELECT set_config('a.b', '1', false)", names("a.b")},
		{`SELECT U&"set\005fconfig"('a.b', '1', false)`, anySetting},
		{"WITH a AS (UPDATE pg_settings SET setting = 1) SELECT 1", anySetting},
		{"SELECT query_to_xml('SELECT 1', true, false, '')", anySetting},
		{"SELECT * FROM pg_settings", sqltext.Effect{}},
		{"SELECT reset_config, set_ config, set_config FROM a_b", sqltext.Effect{}},

		{"SELECT count(*), lower(a) FROM t WHERE b IN (1) AND (c) AND d = ANY ($1)", sqltext.Effect{}},
		{`INSERT INTO app."t x" (a, b) VALUES (1, now())`, sqltext.Effect{}},
		{"CREATE TABLE IF NOT EXISTS app.t (a int CHECK (a > 0), b int REFERENCES u (b))", sqltext.Effect{}},
		{"SELECT app.F (1), g\n(2), \"H\"(3), f(4) FROM t AS u (a)", calls("f", "g", "H")},
		{"SELECT app.F (1), g(2), F(3), count(*) FROM t WHERE a = $1", calls("f", "g")},
		{`WITH RECURSIVE t(a, "b") AS (SELECT f(1), 2), u (c) AS NOT MATERIALIZED (WITH v AS (SELECT 1) SELECT g(a)) SELECT * FROM t`, calls("f", "g")},
		{"WITH t AS (SELECT 1) SELECT * FROM f(a), g(a) AS (b int)", calls("f", "g")},
		{"SELECT g(a) FROM t WHERE b = 'f(1)' AND c = $$h(1)$$", calls("g")},
		{"SELECT f/* a */(1)", calls("f")},
		{"SELECT f -- count\n(1)", calls("f")},
		{"SELECT -- into\nf(1)", calls("f")},
		{`SELECT "count"(1), "in"(2)`, calls("in")},
		{"EXECUTE p(f(1))", sqltext.Effect{Action: sqltext.Execute, Name: "p", Doubt: sqltext.Doubt{Calls: []string{"p", "f"}}}},
		{"CALL app.p(1)", sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{Calls: []string{"p"}}}},
		{"FETCH 1 FROM c", sqltext.Effect{Action: sqltext.Fetch, Name: "c"}},
		{"VACUUM t", sqltext.Effect{MayCommit: true}},
		{"CREATE DATABASE x", sqltext.Effect{MayCommit: true}},
		{"CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{Calls: []string{"t"}}, Temps: []sqltext.TempChange{{Extended: "t"}}}},
		{"ALTER SYSTEM SET x = 1", sqltext.Effect{MayCommit: true}},
		{"ALTER ROLE ann SET dp.epsilon = 1", sqltext.Effect{}},

		{"DO $$ BEGIN SET x = 1; END $$", names("x")},
		{"DO $$ BEGIN SET LOCAL ROLE ann; RESET y.z; UPDATE t SET (a, b) = (1, 2); END $$", names("role", "y.z")},
		{"DO 'BEGIN PERFORM set_config(''a.b'', x, true), f(1); END' LANGUAGE plpgsql", sqltext.Effect{Doubt: sqltext.Doubt{Names: []string{"a.b"}, Calls: []string{"f"}}}},
		{"DO $$ BEGIN SET x = 1; COMMIT; RAISE EXCEPTION 'x'; END $$", sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{Names: []string{"x"}}}},
		{"DO $$ BEGIN EXECUTE 'SE'||'T x = 1'; END $$", sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{Any: true}}},
		{"DO $$ BEGIN EXECUTE 'SET x = 1'; EXECUTE 'CREATE TYPE y AS ENUM ()'; END $$", sqltext.Effect{Doubt: sqltext.Doubt{Names: []string{"x"}}}},
		{"DO $$ BEGIN RESET ALL; END $$", sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{Any: true}}},
		{"DO LANGUAGE plpython3u $$ x $$", sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{Any: true}}},
		{"DO $$ BEGIN CREATE TEMP TABLE x (a int) ON COMMIT DROP; SELECT 1 INTO TEMP y; END $$", sqltext.Effect{Temps: []sqltext.TempChange{{Made: "x"}, {Made: "y"}}}},
		{"DO $$ BEGIN NULL; END $$", sqltext.Effect{}},
		{"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET x = 1; END $$", sqltext.Effect{Defines: true}},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", sqltext.Effect{}},
		{"UPDATE t SET a = 1", sqltext.Effect{}},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, withoutText(t, test.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// withoutText returns the effect of a statement without the text of the statement, which it checks.
func withoutText(t *testing.T, sql string) sqltext.Effect {
	t.Helper()
	e := sqltext.Analyze(sql)
	for i := range e.Temps {
		if text := e.Temps[i].SQL; text != sql && !strings.HasPrefix(sql, "DO") {
			t.Errorf("the text of the statement is %q", text)
		}
		if rest := e.Temps[i].Rest; !strings.HasSuffix(sql, rest) && !strings.HasPrefix(sql, "DO") {
			t.Errorf("the rest of the statement is %q", rest)
		}
		e.Temps[i].SQL, e.Temps[i].Rest = "", ""
	}
	return e
}

func BenchmarkAnalyze(b *testing.B) {
	sql := "SELECT store_id, anon_sum(spent, 0, 500, 0.5) FROM transactions WHERE spent > $1 GROUP BY store_id"
	b.ReportAllocs()
	for b.Loop() {
		sqltext.Analyze(sqltext.Split(sql)[0])
	}
}
