package rewrite_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestBeside: of each function that may read what neither counters nor locks of a trial show, the plan says what it
// reads. It says nothing of the functions of an honest engine.
func TestBeside(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `CREATE SCHEMA d0; CREATE SCHEMA d1; CREATE TABLE d0.people (id int); CREATE TABLE d1.people (id int); CREATE SCHEMA dp;
		CREATE EXTENSION dblink SCHEMA dp; CREATE EXTENSION tablefunc SCHEMA dp; CREATE EXTENSION citext SCHEMA dp; CREATE EXTENSION file_fdw;
		CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE FOREIGN TABLE dp.far (x text) SERVER files OPTIONS (filename '/dev/null');
		CREATE SEQUENCE dp.numbers; CREATE VIEW dp.seen AS SELECT pg_read_file('/tmp/x') AS x; CREATE TABLE dp.cities (id int);
		CREATE LANGUAGE plother HANDLER plpgsql_call_handler; CREATE TYPE dp.span AS (a int);
		CREATE FUNCTION dp.declared() RETURNS int LANGUAGE sql AS 'SELECT length(pg_read_file(''/tmp/x''))'`)
	cases := []struct {
		name string
		body string // of the function dp.f() in PL/pgSQL, or statements that create it
		sql  string // "" = SELECT count(*) + dp.f() FROM people
		want string // "" = nothing
	}{
		{name: "noise", body: "BEGIN PERFORM setseed(0.5); RETURN ln(1 - random()) + extract(epoch FROM now()) - pg_backend_pid(); END"},
		{name: "the setting of the claim", body: "BEGIN RETURN current_setting('dp.epsilon', true)::float8; END"},
		{name: "a setting of the client", body: "BEGIN RETURN current_setting('app.scale')::float8; END"},
		{name: "a setting that it sets", body: "BEGIN PERFORM set_config('app.n', coalesce(current_setting('app.n', true), '1'), false); RETURN 1; END"},
		{name: "the settings of a session", body: "BEGIN RETURN length(current_setting('TimeZone') || current_setting('search_path') || current_setting('server_version_num')); END"},
		{name: "a table", body: "BEGIN RETURN (SELECT count(*) FROM dp.cities); END"},
		{name: "definitions", body: "BEGIN RETURN (SELECT count(*) FROM pg_attribute WHERE attrelid = 'dp.cities'::regclass); END"},
		{name: "functions of extensions", body: "BEGIN RETURN (SELECT sum(n) FROM dp.normal_rand(3, 0, 1) n) + length('a'::dp.citext::text); END"},
		{name: "one declared safe", body: "BEGIN RETURN dp.declared(); END"},
		{name: "a column of the name of a function", body: "DECLARE r record; BEGIN SELECT 1 AS lo_get, 2 AS pg_read_file INTO r; RETURN r.lo_get + r.pg_read_file; END"},
		{name: "a constant text", body: "DECLARE n float8; BEGIN EXECUTE 'SELECT count(*) FROM dp.cities' INTO n; RETURN n; END"},
		{name: "an error that is caught", body: "BEGIN RAISE division_by_zero; EXCEPTION WHEN others THEN RETURN 1; END"},
		{name: "an aggregate", body: "CREATE FUNCTION dp.step(a float8, x float8) RETURNS float8 LANGUAGE sql AS 'SELECT a + x'; CREATE AGGREGATE dp.f(float8) (SFUNC = dp.step, STYPE = float8)", sql: "SELECT dp.f(1) FROM people"},

		{name: "a text", body: "DECLARE n float8; BEGIN EXECUTE 'SELECT count(*) FROM dp.' || 'cities' INTO n; RETURN n; END", want: "function dp.f executes a text that is built at run time"},
		{name: "a block", body: "BEGIN EXECUTE format('DO %L', 'BEGIN END'); RETURN 1; END", want: "executes a text"},
		{name: "another server", body: "BEGIN RETURN (SELECT n FROM dp.dblink('', 'SELECT 1') AS t(n int)); END", want: "function dp.dblink of the extension dblink reads other servers"},
		{name: "a crosstab", body: "BEGIN RETURN (SELECT count(*) FROM dp.crosstab('SELECT 1, 2, 3')); END", want: "tablefunc reads what a text among its arguments names"},
		{name: "a foreign table", body: "BEGIN RETURN (SELECT count(*) FROM dp.far); END", want: "function dp.f reads the foreign table dp.far"},
		{name: "a foreign table, by its path", body: "CREATE FUNCTION dp.f() RETURNS float8 LANGUAGE sql SET search_path = dp AS 'SELECT count(*) FROM far'", want: "function dp.f reads the foreign table dp.far"},
		{name: "a sequence", body: "BEGIN RETURN (SELECT last_value FROM dp.numbers); END", want: "reads the sequence dp.numbers"},
		{name: "the number of a sequence", body: "BEGIN RETURN pg_sequence_last_value('dp.numbers'); END", want: "reads sequences (pg_sequence_last_value)"},
		{name: "a large object", body: "BEGIN RETURN length(lo_get(1)); END", want: "reads large objects (lo_get)"},
		{name: "row counts", body: "BEGIN RETURN (SELECT reltuples FROM pg_class LIMIT 1); END", want: "reads the system catalog pg_class"},
		{name: "statistics", body: "BEGIN RETURN (SELECT count(*) FROM pg_catalog.pg_stats); END", want: "reads the system catalog pg_stats"},
		{name: "the information schema", body: "BEGIN RETURN (SELECT count(*) FROM information_schema.tables); END", want: "reads the system catalog information_schema.tables"},
		{name: "counters", body: "BEGIN RETURN pg_stat_get_live_tuples(1); END", want: "reads statistics of the server (pg_stat_get_live_tuples)"},
		{name: "a size", body: "BEGIN RETURN pg_relation_size('dp.cities'); END", want: "reads statistics of the server (pg_relation_size)"},
		{name: "a file", body: "BEGIN RETURN length(pg_read_file('/tmp/x')); END", want: "function dp.f reads files of the server (pg_read_file)"},
		{name: "a directory", body: "BEGIN RETURN (SELECT count(*) FROM pg_ls_dir('.')); END", want: "reads files of the server (pg_ls_dir)"},
		{name: "a view of a file", body: "BEGIN RETURN (SELECT length(x) FROM dp.seen); END", want: "view dp.seen reads files of the server (pg_read_file)"},
		{name: "another setting", body: "BEGIN RETURN current_setting('app.total')::float8; END", want: "function dp.f reads the setting app.total"},
		{name: "a setting of the server", body: "BEGIN RETURN length(current_setting('cluster_name')); END", want: "function dp.f reads the setting cluster_name"},
		{name: "a setting by a text", body: "BEGIN RETURN current_setting('app.' || 'total'); END", want: "reads a setting whose name is not a constant"},
		{name: "all settings", body: "BEGIN RETURN (SELECT count(*) FROM pg_settings); END", want: "reads the system catalog pg_settings"},
		{name: "an XML", body: "BEGIN RETURN length(query_to_xml('SELECT 1', true, true, '')::text); END", want: "reads what a text among its arguments names (query_to_xml)"},
		{name: "an advisory lock", body: "BEGIN RETURN pg_try_advisory_lock(1)::int; END", want: "reads advisory locks"},
		{name: "notifications", body: "BEGIN LISTEN x; RETURN 1; END", want: "uses notifications"},
		{name: "a comment", body: "BEGIN RETURN length(obj_description(1, 'pg_class')); END", want: "reads comments (obj_description)"},
		{name: "internal", body: "CREATE FUNCTION dp.f() RETURNS int LANGUAGE internal AS 'pg_backend_pid'", want: "is written in internal, which may read anything, and belongs to no extension"},
		{name: "another language", body: "CREATE FUNCTION dp.f() RETURNS int LANGUAGE plother AS 'BEGIN RETURN 1; END'", want: "is written in plother, which may read anything"},
		{name: "an atomic body", body: "CREATE FUNCTION dp.f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT length(pg_read_file('/tmp/x')); END", want: "reads files of the server"},
		{name: "a default", body: "CREATE FUNCTION dp.f(x text DEFAULT pg_read_file('/tmp/x')) RETURNS int LANGUAGE sql AS 'SELECT 1'", want: "reads files of the server"},
		{name: "through a function", body: "CREATE FUNCTION dp.g() RETURNS int LANGUAGE sql AS 'SELECT length(pg_read_file(''/tmp/x''))'; CREATE FUNCTION dp.f() RETURNS int LANGUAGE sql AS 'SELECT dp.g()'", want: "function dp.g reads files"},
		{name: "through an aggregate", body: "CREATE FUNCTION dp.step(a float8, x float8) RETURNS float8 LANGUAGE sql AS 'SELECT length(pg_read_file(''/tmp/x''))'; CREATE AGGREGATE dp.f(float8) (SFUNC = dp.step, STYPE = float8)", sql: "SELECT dp.f(1) FROM people", want: "function dp.step reads files"},
		{name: "through an operator", body: "CREATE FUNCTION dp.f(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT length(pg_read_file(''/tmp/x''))'; CREATE OPERATOR dp.<<< (FUNCTION = dp.f, LEFTARG = int, RIGHTARG = int); CREATE FUNCTION dp.g() RETURNS int LANGUAGE sql AS 'SELECT 1 OPERATOR(dp.<<<) 2'", sql: "SELECT count(*) + dp.g() FROM people", want: "function dp.f reads files"},
		{name: "through a domain", body: "CREATE FUNCTION dp.f(a int) RETURNS bool LANGUAGE sql AS 'SELECT pg_read_file(''/tmp/x'') <> '''''; CREATE DOMAIN dp.odd AS int CHECK (dp.f(VALUE)); CREATE FUNCTION dp.g() RETURNS int LANGUAGE sql AS 'SELECT 1::dp.odd'", sql: "SELECT count(*) + dp.g() FROM people", want: "function dp.f reads files"},
		{name: "through x.f", body: "CREATE FUNCTION dp.f(a dp.span) RETURNS int LANGUAGE sql AS 'SELECT length(pg_read_file(''/tmp/x''))'; CREATE FUNCTION dp.g() RETURNS int LANGUAGE plpgsql SET search_path = dp AS 'DECLARE s dp.span; BEGIN RETURN (SELECT t.f FROM (SELECT s.*) t); END'", sql: "SELECT count(*) + dp.g() FROM people", want: "function dp.f reads files"},
		{name: "of a copy", body: "CREATE FUNCTION dp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION d0.f() RETURNS int LANGUAGE sql AS 'SELECT length(pg_read_file(''/tmp/x''))'", want: "function d0.f reads files"},
	}
	own := regexp.MustCompile(`\b(dp|d0|t)\.(f|g|step)\b`) // each case has functions of its own
	script := []string{"SET check_function_bodies = off"}
	for i := range cases {
		c := &cases[i]
		if !strings.HasPrefix(c.body, "CREATE") {
			c.body = "CREATE FUNCTION dp.f() RETURNS float8 LANGUAGE plpgsql AS $f$ " + c.body + " $f$"
		}
		if c.sql == "" {
			c.sql = "SELECT count(*) + dp.f() FROM people"
		}
		for _, text := range []*string{&c.body, &c.sql, &c.want} {
			*text = own.ReplaceAllString(*text, fmt.Sprintf("$1.${2}_%d", i))
		}
		script = append(script, c.body)
	}
	pgtest.Exec(t, dsn, strings.Join(script, ";\n"))
	shadow, err := read.Catalog(t.Context(), dsn, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r := newRewriter(t, rewrite.Options{
		Protected: []rewrite.Table{table("public", "people")}, AllowFunctions: []string{rewrite.AnyFunction, "dp.declared"},
		Shadow: shadow, Neighbours: []string{"d0", "d1"},
	})
	for _, c := range cases {
		plan, err := r.Analyze(capture.Query{SQL: c.sql, Settings: map[string]string{"app.scale": "1"}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(plan.Beside, "; "); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
