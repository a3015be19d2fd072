package read_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// functionsOf are functions over people in schema {s}, as in the engine and in correct neighbours.
const functionsOf = `
	CREATE FUNCTION {s}.headcount() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.older(than int DEFAULT 23) RETURNS bigint LANGUAGE sql STABLE
		BEGIN ATOMIC SELECT count(*) FROM {s}.people WHERE age > than; END;
	CREATE FUNCTION {s}.older(than float8) RETURNS bigint LANGUAGE sql STABLE RETURN (SELECT 100 + count(*) FROM {s}.people WHERE age > than);
	CREATE FUNCTION {s}.twice() RETURNS bigint LANGUAGE sql STABLE AS 'WITH people AS (SELECT {s}.headcount() AS n) SELECT public.double(n) FROM people';
	CREATE FUNCTION {s}.of_age(a int) RETURNS SETOF {s}.people LANGUAGE sql STABLE SET search_path = {s}, pg_temp
		AS 'SELECT * FROM people WHERE age >= a ORDER BY id';
	CREATE FUNCTION {s}.listed() RETURNS TABLE (id int, age int) LANGUAGE sql SECURITY DEFINER AS 'SELECT id, age FROM {s}.adults';
	CREATE FUNCTION {s}.next_of(p {s}.people) RETURNS int LANGUAGE sql STABLE AS 'SELECT min(q.age) FROM {s}.people q WHERE q.age > ($1).age';
	CREATE FUNCTION {s}."Odd Name"(VARIADIC a int[]) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people WHERE age = ANY (a)';
	CREATE FUNCTION {s}.step(n bigint, v int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT n + v * (SELECT count(*) FROM {s}.people)';
	CREATE AGGREGATE {s}.weighted(int) (SFUNC = {s}.step, STYPE = bigint, INITCOND = '0');
	CREATE FUNCTION {s}.looped(n int) RETURNS int LANGUAGE plpgsql STABLE AS $$
		DECLARE total int := 0; r {s}.people%ROWTYPE; a {s}.people.age%TYPE;
		BEGIN -- over all rows
			FOR r IN SELECT * FROM {s}.people p WHERE p.age > n ORDER BY p.id LOOP
				total := total + r.age; a := r.age;
				IF a IN (SELECT age FROM {s}.adults) THEN total := total + {s}.headcount()::int; END IF;
			END LOOP;
			RETURN total / (SELECT count(*) - count(*) FROM {s}.people);
			EXCEPTION WHEN division_by_zero THEN RETURN total + (SELECT public.double(count(*))::int FROM {s}.people);
		END $$;
	CREATE FUNCTION {s}.by_own_path() RETURNS SETOF int LANGUAGE plpgsql SET search_path = {s}, pg_temp
		AS 'BEGIN RETURN QUERY SELECT max(p.age) FROM people p JOIN adults USING (id); END';
	CREATE VIEW {s}.counted AS SELECT {s}.headcount() AS n, p.age FROM {s}.people p;
	CREATE FUNCTION {s}.again(n int) RETURNS bigint LANGUAGE sql STABLE
		AS 'SELECT CASE WHEN n = 0 THEN (SELECT sum(age) FROM {s}.people) ELSE {s}.again(n - 1) END';
`

// faultyFunctions are correct in the engine and wrong in the neighbours.
const faultyFunctions = `
	CREATE FUNCTION public.lonely() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.by_path() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.astray() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.far() RETURNS bigint LANGUAGE sql AS 'SELECT lonely()';
	CREATE FUNCTION public.retyped(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.renamed(a int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.defaulted(a int DEFAULT 1) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) + a FROM people';
	CREATE FUNCTION public.overloaded(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.writes() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.by_string() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.settings() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.path_of_user() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.undeclared() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.upper(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.here(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.broken() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_path() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_dynamic() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_writes() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_built() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_command() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_locks() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_who() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_name() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_xml() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_catalog() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_ctid() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_escape() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_astray() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_far() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_callee() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.pl_attribute() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION public.in_c() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE SCHEMA app;
	CREATE FUNCTION app.here(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
`

const faultyCopies = `
	CREATE FUNCTION {s}.by_path() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM people';
	CREATE FUNCTION {s}.astray() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM d0.people';
	CREATE FUNCTION {s}.far() RETURNS bigint LANGUAGE sql AS 'SELECT d1.headcount()';
	CREATE FUNCTION {s}.retyped(float8) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.renamed(b int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.defaulted(a int DEFAULT 2) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) + a FROM {s}.people';
	CREATE FUNCTION {s}.overloaded(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.overloaded(float8) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.writes() RETURNS bigint LANGUAGE sql AS 'WITH d AS (DELETE FROM {s}.people RETURNING 1) SELECT count(*) FROM d';
	CREATE FUNCTION {s}.by_string() RETURNS bigint LANGUAGE sql AS $$ SELECT length(query_to_xml('SELECT * FROM d0.people', true, true, '')::text)::bigint $$;
	CREATE FUNCTION {s}.settings() RETURNS bigint LANGUAGE sql SET enable_seqscan = off AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.path_of_user() RETURNS bigint LANGUAGE sql SET search_path = "$user", {s} AS 'SELECT count(*) FROM people';
	CREATE FUNCTION {s}.undeclared() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.upper(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.here(int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {s}.people';
	CREATE FUNCTION {s}.broken() RETURNS bigint LANGUAGE sql AS 'SELECT count(* FROM {s}.people';
	CREATE FUNCTION {s}.pl_path() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM people); END';
	CREATE FUNCTION {s}.pl_dynamic() RETURNS bigint LANGUAGE plpgsql AS 'DECLARE n bigint; BEGIN EXECUTE ''SELECT count(*) FROM d0.people'' INTO n; RETURN n; END';
	CREATE FUNCTION {s}.pl_built() RETURNS bigint LANGUAGE plpgsql AS 'DECLARE n bigint; BEGIN EXECUTE ''SELECT count(*) FROM '' || quote_ident(''d0'') || ''.people'' INTO n; RETURN n; END';
	CREATE FUNCTION {s}.pl_writes() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN DELETE FROM {s}.people; RETURN 1; END';
	CREATE FUNCTION {s}.pl_command() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN SET work_mem = 100; RETURN (SELECT count(*) FROM {s}.people); END';
	CREATE FUNCTION {s}.pl_locks() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM 1 FROM {s}.people FOR SHARE; RETURN 1; END';
	CREATE FUNCTION {s}.pl_who() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM {s}.people WHERE current_user = CURRENT_USER); END';
	CREATE FUNCTION {s}.pl_name() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM {s}.people) + length((''d0.people''::regclass)::text); END';
	CREATE FUNCTION {s}.pl_xml() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN length(table_to_xml(1, true, true, '''')::text); /* people */ END';
	CREATE FUNCTION {s}.pl_catalog() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM {s}.people, pg_catalog.pg_class); END';
	CREATE FUNCTION {s}.pl_ctid() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(DISTINCT ctid) FROM {s}.people); END';
	CREATE FUNCTION {s}.pl_escape() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM {s}.U&"p\0065ople"); END';
	CREATE FUNCTION {s}.pl_astray() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM "d0" /* x */ . "people"); END';
	CREATE FUNCTION {s}.pl_far() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN d1.headcount(); END';
	CREATE FUNCTION {s}.pl_callee() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN headcount(); END';
	CREATE FUNCTION {s}.pl_attribute() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT min((p).next_of) FROM {s}.people p); END';
	CREATE FUNCTION {s}.in_c() RETURNS bigint LANGUAGE internal AS 'pg_backend_pid';
`

// TestOracleFunctions: calls of functions over protected tables go to the neighbours' own copies, which answer on d0
// like the engine; copies that could not answer for their own world are refused, with the fault.
func TestOracleFunctions(t *testing.T) {
	t.Parallel()
	const shared = "SET check_function_bodies = off; CREATE FUNCTION public.double(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';"
	in := func(schema, script string) string { return strings.ReplaceAll(script, "{s}", schema) }
	shop := database(t, shared+relationsOf("public", 7)+in("public", functionsOf)+faultyFunctions)
	shadow := database(t, shared+relationsOf("d0", 7)+relationsOf("d1", 6)+in("d0", functionsOf)+in("d1", functionsOf)+
		in("d0", faultyCopies)+in("d1", faultyCopies))
	source, copies := contents(t, shop), contents(t, shadow)
	o := rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}},
		Source:    source, Shadow: copies, Neighbours: []string{"d0", "d1"},
		AllowFunctions: []string{"headcount", "public.older", "twice", "of_age", "listed", "next_of", "Odd Name", "weighted", "double", "again", "looped", "by_own_path"},
	}
	for _, f := range source.Functions {
		if strings.Contains(faultyFunctions, "public."+f.Name+"(") && f.Name != "undeclared" {
			o.AllowFunctions = append(o.AllowFunctions, f.Name)
		}
	}
	r, err := rewrite.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for sql, refused := range map[string]string{ // "" = answered, otherwise text of the refusal
		"SELECT headcount()": "",
		"SELECT public.headcount() AS n, older() FROM people":                                                 "",
		"SELECT older(22), older(24.5), older(than => 22)":                                                    "",
		"SELECT twice() FROM generate_series(1, 2)":                                                           "",
		"SELECT of_age.age FROM of_age(22)":                                                                   "",
		"SELECT x.id, x.n FROM of_age(22) WITH ORDINALITY AS x(id, age, n) ORDER BY 1":                        "",
		"SELECT * FROM ROWS FROM (of_age(22), listed()) AS x":                                                 "",
		"SELECT p.id, next_of(p), public . /* here */ next_of ( p ) FROM people p ORDER BY 1":                 "",
		`SELECT "Odd Name"(21, 22, 27), public."Odd Name"(VARIADIC ARRAY[21, 27])`:                            "",
		"SELECT weighted(age), weighted(age) FILTER (WHERE id > 2), sum(weighted(1)) OVER () FROM people":     "",
		"SELECT n, age FROM counted ORDER BY 2":                                                               "",
		"SELECT again(3)":                                                                                     "",
		"WITH people AS (SELECT headcount() AS n) SELECT n, (SELECT max(age) FROM public.people) FROM people": "",
		"SELECT (SELECT headcount() WHERE older() > 0) ORDER BY headcount()":                                  "",
		"SELECT pl_path()":                   `relation people has no schema, and the function sets no search_path`,
		"SELECT pl_dynamic()":                `the copy in schema d1 contains a part that cannot be replayed: relation d0.people`,
		"SELECT pl_built()":                  `executes a text that is built at run time (EXECUTE)`,
		"SELECT pl_writes()":                 `contains a part that cannot be replayed: a statement that changes data`,
		"SELECT pl_command()":                `contains a part that cannot be replayed: VariableSetStmt`,
		"SELECT pl_locks()":                  `contains a part that cannot be replayed: a clause that locks rows`,
		"SELECT pl_who()":                    `contains a part that cannot be replayed: current_user`,
		"SELECT pl_name()":                   `contains a part that cannot be replayed: type regclass`,
		"SELECT pl_xml()":                    `contains a part that cannot be replayed: function table_to_xml`,
		"SELECT pl_catalog()":                `contains a part that cannot be replayed: relation pg_catalog.pg_class`,
		"SELECT pl_ctid()":                   `contains a part that cannot be replayed: system column ctid`,
		"SELECT pl_escape()":                 "",
		"SELECT pl_astray()":                 `the copy in schema d1 contains a part that cannot be replayed: relation d0.people`,
		"SELECT pl_far()":                    `d1.headcount, which is in the schema of another neighbour`,
		"SELECT pl_callee()":                 `function headcount has no schema, and the function sets no search_path`,
		"SELECT pl_attribute()":              `function next_of in attribute notation reads a protected table`,
		"SELECT in_c()":                      `is written in internal`,
		"SELECT looped(22), looped(n => 25)": "",
		"SELECT by_own_path() + 1 AS n":      "",
		"SELECT lonely()":                    "schema d0 has no copy of it",
		"SELECT by_path()":                   "the copy in schema d0 contains a part that cannot be replayed: relation people has no schema, and the function sets no search_path",
		"SELECT astray()":                    "the copy in schema d1 ",
		"SELECT far()":                       "the copy in schema d0 calls the function d1.headcount, which is in the schema of another neighbour",
		"SELECT retyped(1)":                  "schema d0 has no copy with the arguments (integer)",
		"SELECT renamed(1)":                  "schema d0 has no copy with the arguments (a integer)",
		"SELECT defaulted()":                 "schema d0 has no copy with the arguments (a integer DEFAULT 1)",
		"SELECT overloaded(1)":               "schema d0 has another overload of it",
		"SELECT writes()":                    "the copy in schema d0 contains a part that cannot be replayed: a statement that changes data",
		"SELECT by_string()":                 "the copy in schema d0 contains a part that cannot be replayed: function query_to_xml",
		"SELECT settings()":                  "the copy in schema d0 sets enable_seqscan",
		"SELECT path_of_user()":              "sets a search_path that depends on the session",
		"SELECT undeclared()":                "function undeclared (volatile, sql)",
		"SELECT upper(1)":                    "and shares its name with a built-in one",
		"SELECT here(1)":                     "and has overloads in several schemas of the search path",
		"SELECT broken()":                    "has a body that cannot be parsed",
		"SELECT p.next_of FROM people p":     "function next_of in attribute notation",
		"SELECT (p).next_of FROM people p":   "function next_of in attribute notation",
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			q := capture.Query{SQL: sql, User: "nobody", Database: source.Database, Settings: map[string]string{"search_path": "public, app"}}
			plan, err := r.Analyze(q)
			if refused != "" {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, refused) || refusal.Offset < 7 || refusal.Hint == "" {
					t.Errorf("%v; want a refusal that says %q, where, and what to do", err, refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareAnswers(t, plan, sql, shop, shadow)
		})
	}
}
