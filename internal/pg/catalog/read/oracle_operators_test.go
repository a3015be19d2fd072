package read_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// withOperators holds user-defined operators, domains and casts: quiet ones, declared ones, and others.
const withOperators = `
	CREATE SCHEMA app; CREATE SCHEMA far;
	CREATE FUNCTION app.plus(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 OPERATOR(pg_catalog.+) $2 OPERATOR(pg_catalog.+) 1000';
	CREATE OPERATOR app.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = app.plus);
	CREATE OPERATOR app.+! (LEFTARG = int, RIGHTARG = int, FUNCTION = app.plus);
	CREATE FUNCTION far.spy(int, int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN true; END';
	CREATE OPERATOR far.= (LEFTARG = int, RIGHTARG = int, FUNCTION = far.spy);
	CREATE OPERATOR far.<= (LEFTARG = int, RIGHTARG = int, FUNCTION = far.spy);
	CREATE FUNCTION app.known(int, int) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT $1 > $2';
	CREATE OPERATOR app.#># (LEFTARG = int, RIGHTARG = int, FUNCTION = app.known);
	CREATE FUNCTION app.is_person(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM public.people WHERE id = $1)';
	CREATE OPERATOR app.@! (RIGHTARG = int, FUNCTION = app.is_person);
	CREATE DOMAIN app.person AS int CHECK (app.is_person(VALUE));
	CREATE DOMAIN app.small AS int CHECK (VALUE < 1000);
	CREATE DOMAIN app.watched AS int CHECK (far.spy(VALUE, 1));
	CREATE TYPE app.sum AS (cents int);
	CREATE FUNCTION app.to_sum(int) RETURNS app.sum LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN ROW($1)::app.sum; END';
	CREATE CAST (int AS app.sum) WITH FUNCTION app.to_sum(int) AS IMPLICIT;
	CREATE DOMAIN app.more_watched AS app.watched;
	CREATE TYPE app.holder AS (a int, w app.watched);
	CREATE DOMAIN app.held AS app.holder;
	CREATE TYPE app.span AS RANGE (subtype = app.watched);
	CREATE DOMAIN app.own AS int CHECK (VALUE > 0 OR current_user = 'nobody');
	CREATE DOMAIN app.slow AS int CHECK (pg_sleep(0) IS NOT NULL);
	CREATE DOMAIN app.lately AS date CHECK (VALUE <= now() AND length(VALUE::text) > 0);
	CREATE DOMAIN app.rel AS regclass;
	CREATE TYPE app.rels AS (n int, r app.rel[]);
	CREATE OPERATOR app.@@! (RIGHTARG = float8, FUNCTION = pg_catalog.pg_sleep);
	CREATE OPERATOR app.@@? (RIGHTARG = text, FUNCTION = pg_catalog.to_regclass);
	CREATE OPERATOR app.@@+ (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4pl);
	CREATE FUNCTION app.loud(anyelement) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN 1; END';
	CREATE FUNCTION app.calm(anyelement) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END';
	CREATE FUNCTION app.odd(int, int DEFAULT 1) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 % 2; END';
	CREATE FUNCTION app.two(anyelement, anyelement) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
	CREATE FUNCTION app.json_array(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN 1; END';
	CREATE FUNCTION app.json_object(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN 1; END';
`

// TestOracleOperators: an operator, a domain and a cast are judged by the functions that they call.
func TestOracleOperators(t *testing.T) {
	t.Parallel()
	shop := database(t, relationsOf("public", 7)+withOperators)
	shadow := database(t, relationsOf("d0", 7)+relationsOf("d1", 6)+"CREATE TABLE public.people (id int);"+withOperators)
	source, copies := contents(t, shop), contents(t, shadow)
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}},
		Source:    source, Shadow: copies, Neighbours: []string{"d0", "d1"}, AllowFunctions: []string{"app.known"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const notDeclared = "calls the function far.spy (volatile, plpgsql)"
	for _, c := range []struct{ path, sql, refused string }{
		{"public", "SELECT sum(id + 1) FROM people", ""},
		{"public", "SELECT sum(id OPERATOR(app.+) 1) FROM people", ""},
		{"app, public", "SELECT sum(id +! 1) FROM people", ""},
		{"public, app", "SELECT count(*) FROM people WHERE id #># 2", ""},
		{"public", "SELECT count(*) FROM people WHERE id OPERATOR(app.#>#) ALL (SELECT 2) OR id BETWEEN 1 AND 9", ""},
		{"public", "SELECT sum(id::app.small) FROM people", ""},
		{"public", "SELECT count(*) FROM people WHERE id = 1 OR id IN (SELECT id FROM people)", ""},
		{"public", "SELECT id +! 1 FROM people", "operator +!"},
		{"public", "SELECT id OPERATOR(nowhere.+) 1 FROM people", "operator nowhere.+"},
		{"public", "SELECT id FROM people WHERE id OPERATOR(far.=) 1", notDeclared},
		{"far, public", "SELECT id FROM people WHERE id = 1", notDeclared},
		{"far, public", "SELECT id FROM people WHERE id IN (1, 2)", notDeclared},
		{"far, public", "SELECT id FROM people WHERE id IN (SELECT 1)", notDeclared},
		{"far, public", "SELECT id FROM people WHERE id > ANY (SELECT 1)", ""},
		{"far, public", "SELECT id FROM people WHERE id BETWEEN 1 AND 2", notDeclared},
		{"far, public", "SELECT id FROM people WHERE id BETWEEN SYMMETRIC 1 AND 2", notDeclared},
		{"far, public", "SELECT id FROM people WHERE id NOT BETWEEN 1 AND 2", ""},
		{"far, public", "SELECT CASE id WHEN 1 THEN 2 END FROM people", notDeclared},
		{"far, public", "SELECT NULLIF(id, 1) FROM people", notDeclared},
		{"far, public", "SELECT id IS DISTINCT FROM 1 FROM people", notDeclared},
		{"far, public", "SELECT id FROM people a JOIN people b USING (id)", notDeclared},
		{"far, public", "SELECT id FROM people a NATURAL JOIN people b", notDeclared},
		{"far, public", "SELECT id FROM people a JOIN people b ON a.id > b.id ORDER BY 1 USING OPERATOR(far.<=)", notDeclared},
		{"public", "SELECT OPERATOR(app.@!) id FROM people", "app.is_person, which reads a protected table"},
		{"app, public", "SELECT @! id FROM people", "app.is_person, which reads a protected table"},
		{"public", "SELECT id::app.person FROM people", "app.is_person, which reads a protected table"},
		{"app, public", "SELECT '1'::person FROM people", "app.is_person, which reads a protected table"},
		{"public", "SELECT CAST(id AS app.watched[]) FROM people", notDeclared},
		{"public", "SELECT f.a FROM people, jsonb_to_record('{}') AS f(a app.watched)", notDeclared},
		{"public", "SELECT id::app.sum FROM people", "calls the function app.to_sum (volatile, plpgsql)"},
		{"public", "SELECT id::app.more_watched FROM people", notDeclared},
		{"public", "SELECT '{1}'::app._watched FROM people", notDeclared},
		{"public", "SELECT ROW(1, 2)::app.holder FROM people", notDeclared},
		{"public", "SELECT '(1,2)'::app.held FROM people", notDeclared},
		{"public", "SELECT '{[1,2]}'::app.span[] FROM people", notDeclared},
		{"public", "SELECT jsonb_populate_record(NULL::app.holder, '{}') FROM people", notDeclared},
		{"public", "SELECT id::app.own FROM people", "calls the function pg_catalog.current_user"},
		{"public", "SELECT id::app.slow FROM people", "calls the function pg_catalog.pg_sleep"},
		{"public", "SELECT id, '2020-01-01'::app.lately FROM people", ""},
		{"public", "SELECT 'people'::app.rel FROM people", "converts text to the name of an object"},
		{"public", "SELECT '(1,{people})'::app.rels FROM people", "converts text to the name of an object"},
		{"app, public", "SELECT @@! 0.0 FROM people", "calls the function pg_catalog.pg_sleep"},
		{"app, public", "SELECT @@? 'people' FROM people", "calls the function pg_catalog.to_regclass"},
		{"app, public", "SELECT sum(id @@+ 1) FROM people", ""},
		{"app, public", "SELECT p.loud FROM people p", "calls the function app.loud (volatile, plpgsql)"},
		{"app, public", "SELECT (p).loud FROM people p", "calls the function app.loud (volatile, plpgsql)"},
		{"app, public", "SELECT (p.id).odd FROM people p", "calls the function app.odd (volatile, plpgsql)"},
		{"app, public", "SELECT p.odd FROM (SELECT id AS odd FROM people) p", ""},
		{"app, public", "SELECT p.two FROM (SELECT id AS two FROM people) p", ""},
		{"app, public", "SELECT sum(p.calm), sum(p.id) FROM people p", ""},
		{"public", "SELECT p.loud FROM (SELECT id AS loud FROM people) p", ""},
		{"app, public", "SELECT json_array(id, 1) FROM people", "calls the function app.json_array (volatile, plpgsql)"},
		{"app, public", "SELECT json_object(id, 1) FROM people", "calls the function app.json_object (volatile, plpgsql)"},
		{"uncertain", "SELECT id + 1 FROM public.people", "operator +"},
		{"uncertain", "SELECT id::person FROM public.people", "type person"},
		{"uncertain", "SELECT id - 1 FROM public.people", ""},
	} {
		t.Run(c.path+": "+c.sql, func(t *testing.T) {
			t.Parallel()
			q := capture.Query{SQL: c.sql, User: "nobody", Database: source.Database, Settings: map[string]string{"search_path": c.path}}
			if c.path == "uncertain" {
				q.Doubt.Names = []string{"search_path"}
			}
			plan, err := r.Analyze(q)
			if c.refused != "" {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, c.refused) || refusal.Offset < 7 {
					t.Errorf("%v; want a refusal that says %q and where", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(plan.Assumed, rewrite.AssumedCasts) {
				t.Errorf("assumed %q; want the implicit cast", plan.Assumed)
			}
			if q.Doubt.None() {
				compareAnswers(t, plan, c.sql, withPath(shop, c.path), withPath(shadow, c.path))
			}
		})
	}
}

// withPath adds a search_path to a connection string.
func withPath(dsn, path string) string {
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return dsn + separator + "search_path=" + strings.ReplaceAll(path, " ", "")
}
