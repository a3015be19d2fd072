package read_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// overloads are functions and operators with built-in names on user-defined types: some immutable, some with side
// effects.
const overloads = `
	CREATE TYPE public.money_amount AS ENUM ('1', '2');
	CREATE TYPE public.shape; -- a base type of its own
	CREATE FUNCTION public.shape_in(cstring) RETURNS public.shape LANGUAGE internal IMMUTABLE STRICT AS 'textin';
	CREATE FUNCTION public.shape_out(public.shape) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
	CREATE TYPE public.shape (INPUT = public.shape_in, OUTPUT = public.shape_out, LIKE = text);
	CREATE FUNCTION public.upper(public.shape) RETURNS text LANGUAGE plpgsql VOLATILE AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN ''loud''; END';
	CREATE FUNCTION public.replace(public.shape, public.shape, public.shape) RETURNS public.shape LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END';
	CREATE FUNCTION public.loud(public.shape, public.shape) RETURNS bool LANGUAGE plpgsql VOLATILE AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN true; END';
	CREATE OPERATOR public.= (LEFTARG = public.shape, RIGHTARG = public.shape, FUNCTION = public.loud);
	CREATE FUNCTION public.shaped(int) RETURNS public.shape LANGUAGE sql IMMUTABLE AS 'SELECT NULL::public.shape';
	CREATE FUNCTION public.length(public.money_amount) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN 1; END';
	CREATE DOMAIN public.short AS varchar;
	CREATE FUNCTION public.initcap(public.short) RETURNS text LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN ''x''; END';
`

const withExtensions = `
	CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE EXTENSION unaccent; CREATE EXTENSION hstore; CREATE EXTENSION pgcrypto;
	CREATE EXTENSION "uuid-ossp"; CREATE EXTENSION fuzzystrmatch; CREATE EXTENSION btree_gist;`

const clients = `CREATE SCHEMA IF NOT EXISTS {s}; CREATE TABLE {s}.clients AS
	SELECT i AS id, ('Name-' || i)::text AS name, ('V' || i)::varchar AS code, ('Mail' || i || '@X.org')::public.citext AS mail, public.hstore('k', i::text) AS tags FROM generate_series(1, {n}) i;
	CREATE TABLE {s}.plain AS SELECT i AS id, ('Name-' || i)::text AS name, ('V' || i)::varchar AS code, array['a' || i] AS list FROM generate_series(1, {n}) i;
	CREATE TABLE {s}.shapes AS SELECT i AS id, NULL::public.shape AS form, ARRAY[NULL::public.shape] AS forms, '1'::public.money_amount AS paid FROM generate_series(1, {n}) i;`

// TestOracleOverloads: an overload on a type that no value of the statement has is ignored; a possible one is not.
// Immutable functions of contrib's extensions need no declaration.
func TestOracleOverloads(t *testing.T) {
	t.Parallel()
	if !hasContrib(t) {
		t.Skip("the server lacks the contrib extensions")
	}
	in := func(s, n string) string { return strings.NewReplacer("{s}", s, "{n}", n).Replace(clients) }
	shop := database(t, withExtensions+overloads+in("public", "7"))
	shadow := database(t, withExtensions+overloads+in("d0", "7")+in("d1", "6"))
	source := contents(t, shop)
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "clients"}, {Schema: "public", Name: "plain"}, {Schema: "public", Name: "shapes"}},
		Source:    source, Shadow: contents(t, shadow), Neighbours: []string{"d0", "d1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, refused := range map[string]string{ // "" = answered alike, else what the refusal says
		"SELECT max(mail), min(mail), max(id) FROM clients": "",
		"SELECT max(name), min(code) FROM plain":            "",
		"SELECT id, replace(mail, 'MAIL', 'x'), split_part(mail, 'MAIL', 2), strpos(mail, 'X'), translate(mail, 'MX', 'yz') FROM clients ORDER BY 1": "",
		"SELECT id, regexp_replace(mail, 'MAIL', 'x'), regexp_match(mail, 'm(.)'), regexp_split_to_array(mail, 'A') FROM clients ORDER BY 1":         "",
		"SELECT id, replace(name, 'Name', 'x'), split_part(code, 'V', 2), strpos(name, '-'), translate(name, 'N', 'n') FROM plain ORDER BY 1":        "",
		"SELECT count(*) FROM clients WHERE mail = 'mail1@x.ORG' OR mail LIKE 'MAIL%' OR mail IN ('a', 'b')":                                         "",
		"SELECT upper(name), upper(code), upper('a' || name) FROM plain ORDER BY 1":                                                                  "",
		"SELECT upper(p.name) FROM (SELECT name FROM plain) p JOIN LATERAL (SELECT p.name AS other) q ON q.other = p.name ORDER BY 1":                "",
		"SELECT length(name), initcap(name) FROM plain ORDER BY 1":                                                                                   "function initcap",
		"SELECT length(name) FROM plain ORDER BY 1":                                                                                                  "",
		"SELECT name FROM plain WHERE code = 'V1' OR CASE name WHEN 'x' THEN true END OR id IN (SELECT 7) ORDER BY 1":                                "",

		"SELECT upper(form) FROM shapes":                                 "function upper (volatile, plpgsql)",
		"SELECT upper(forms[1]) FROM shapes":                             "function upper (volatile, plpgsql)",
		"SELECT upper('x'), count(*) FROM plain":                         "function upper (volatile, plpgsql)",
		"SELECT upper($1), count(*) FROM plain":                          "function upper (volatile, plpgsql)",
		"SELECT upper('x'::text), count(*) FROM plain":                   "",
		"SELECT upper(name::shape) FROM plain":                           "function upper (volatile, plpgsql)",
		"SELECT upper(f) FROM (SELECT s.form AS f FROM shapes s) q":      "function upper (volatile, plpgsql)",
		"SELECT count(*) FROM shapes a JOIN shapes b ON a.form = b.form": "operator = calls the function public.loud",
		"SELECT count(*) FROM shapes a JOIN shapes b USING (form)":       "operator = calls the function public.loud",
		"SELECT replace(name, 'a', 'b') FROM plain ORDER BY 1":           "",
		"SELECT replace('a', 'b', 'c'), count(*) FROM plain":             "function replace",

		"SELECT similarity(name, 'Name'), name % 'Name', word_similarity('a', name), show_trgm(name) FROM plain ORDER BY 1": "",
		"SELECT unaccent(name) FROM plain ORDER BY 1":                                                                      "",
		"SELECT encode(digest(name, 'sha256'), 'hex'), encode(hmac(name, 'k', 'md5'), 'hex') FROM plain ORDER BY 1":        "",
		"SELECT tags -> 'k', hstore_to_json(tags), akeys(tags), tags ? 'k', hstore(p.name, 'x') FROM clients p ORDER BY 1": "",
		"SELECT uuid_generate_v5(uuid_ns_dns(), name), uuid_nil() FROM plain ORDER BY 1":                                   "",
		"SELECT uuid_generate_v1(), count(*) FROM plain":                                                                   "function uuid_generate_v1 (volatile, c)",
		"SELECT gen_salt('md5'), count(*) FROM plain":                                                                      "function gen_salt (volatile, c)",
		"SELECT levenshtein(name, 'Name'), soundex(name), metaphone(name, 4) FROM plain ORDER BY 1":                        "",
		"SELECT count(*), pg_typeof(count(*)), pg_typeof(max(name))::text FROM plain":                                      "",
		"SELECT pg_typeof(p) FROM plain p":                                                                                 "function pg_typeof",
		"SELECT pg_typeof(q.r) FROM (SELECT p AS r FROM plain p) q":                                                        "function pg_typeof",
		"SELECT pg_typeof(p.*) FROM plain p":                                                                               "function pg_typeof",
		"SELECT name, pg_column_size(name), length(version()) > 0, COLLATION FOR (name) FROM plain ORDER BY 1":             "",
		"SELECT name(p), id(p), p.id, upper(code(p)) FROM plain p ORDER BY 2":                                              "",
		"SELECT (p.name).regnamespace FROM plain p":                                                                        "type regnamespace in attribute notation",
		"SELECT upper((p.name).shape) FROM plain p":                                                                        "function upper (volatile, plpgsql)",
		"SELECT upper(shape(p.name)) FROM plain p":                                                                         "function upper (volatile, plpgsql)",
		"SELECT (p.code).text, (p.name).varchar FROM plain p ORDER BY 1":                                                   "",
		"SELECT ctid(p) FROM plain p":                                                                                      "system column ctid",
		"SELECT regnamespace('public'), count(*) FROM plain":                                                               "function regnamespace",
		"SELECT array_agg(id) FROM plain GROUP BY list HAVING max(list[1]) > 'a' ORDER BY 1":                               "",
		"WITH c AS (SELECT mail::text AS m FROM clients) SELECT max(m), min(split_part(m, '@', 1)), string_agg(regexp_replace(m, '[0-9]', ''), ',') FROM c": "",
		"SELECT lower(mail), lower(mail::text), mail || 'x', length(mail), left(mail, 2), substr(mail, 2), mail::text FROM clients ORDER BY 1":              "",
		"SELECT count(DISTINCT mail), count(DISTINCT lower(mail)) FROM clients":                                                                             "",
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			q := capture.Query{SQL: sql, User: "nobody", Database: source.Database, Settings: map[string]string{"search_path": "public"}}
			if strings.Contains(sql, "$1") {
				q.Params = []capture.Param{{Value: []byte("x")}}
			}
			plan, err := r.Analyze(q)
			if refused != "" {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, refused) || refusal.Offset < 7 {
					t.Errorf("%v; want a refusal that says %q", err, refused)
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

// hasContrib reports whether the test server has contrib's extensions.
func hasContrib(t *testing.T) bool {
	t.Helper()
	var n int
	const ask = "SELECT count(*) FROM pg_available_extensions WHERE name IN ('citext', 'pg_trgm', 'unaccent', 'hstore', 'pgcrypto', 'uuid-ossp', 'fuzzystrmatch', 'btree_gist')"
	if err := pgtest.Connect(t, pgtest.Database(t)).QueryRow(t.Context(), ask).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n == 8
}
