package read_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// atomicFunctions have bodies that the server parsed, with operators, types of an extension and every kind of argument.
const atomicFunctions = `CREATE SCHEMA IF NOT EXISTS {s};
	CREATE TABLE {s}.people (id int, age int, email public.citext, system_user text);
	INSERT INTO {s}.people SELECT i, 20 + i, 'a' || i, 'u' || i FROM generate_series(1, {n}) i;
	CREATE FUNCTION {s}.above(x int) RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC SELECT count(*) FROM {s}.people WHERE age > x; END;
	CREATE FUNCTION {s}.joined(x int) RETURNS bigint LANGUAGE sql STABLE
		BEGIN ATOMIC SELECT 1; SELECT count(*) FROM {s}.people p JOIN {s}.people q USING (id) WHERE p.age > x AND p.email <> 'A1'; END;
	CREATE FUNCTION {s}.among(VARIADIC x int[]) RETURNS TABLE (a int, n bigint) LANGUAGE sql STABLE
		BEGIN ATOMIC SELECT age, count(*) FROM {s}.people WHERE age <> ALL (x) GROUP BY age HAVING count(*) > 0 ORDER BY 1; END;
	CREATE FUNCTION {s}.spread(lo int, hi int DEFAULT 30) RETURNS bigint LANGUAGE sql VOLATILE RETURN
		(SELECT count(*) FILTER (WHERE age BETWEEN lo AND hi) + sum(CASE id WHEN 1 THEN 2 ELSE 1 END) FROM {s}.people);
	CREATE FUNCTION {s}.mailed(x text) RETURNS bigint LANGUAGE sql STABLE
		BEGIN ATOMIC WITH q AS (SELECT * FROM {s}.people WHERE email <> x::public.citext) SELECT count(*) FROM q, LATERAL (SELECT q.age) l; END;
`

// TestOracleHarmless: constructs that are harmless where they stand are replayed, and give the engine's answer;
// elsewhere they are refused.
func TestOracleHarmless(t *testing.T) {
	t.Parallel()
	in := func(s, n string) string { return strings.NewReplacer("{s}", s, "{n}", n).Replace(atomicFunctions) }
	const shared = "CREATE EXTENSION citext; CREATE TABLE public.codes (id int);"
	shop := database(t, shared+"CREATE EXTENSION pgcrypto;"+in("public", "7"))
	shadow := database(t, shared+in("d0", "7")+in("d1", "6"))
	source := contents(t, shop)
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, Public: []rewrite.Table{{Schema: "public", Name: "codes"}},
		Source: source, Shadow: contents(t, shadow), Neighbours: []string{"d0", "d1"},
		AllowFunctions: []string{"above", "joined", "among", "spread", "mailed"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, refused := range map[string]rewrite.Reason{
		"SELECT above(21), joined(1), mailed('A1')":                                           "",
		"SELECT * FROM among(21, 22)":                                                         "",
		"SELECT spread(21), spread(hi => 26, lo => 0)":                                        "",
		"SELECT count(*) FROM people WHERE email <> 'A1'::citext":                             "",
		"SELECT count(*), 'A'::citext::text FROM people WHERE CAST(age AS text)::citext > ''": "",
		"SELECT count(*), pg_typeof(count(*)), pg_typeof(max(email)) FROM people":             "",
		"SELECT pg_typeof(p), count(*) FROM people p GROUP BY 1":                              reasons.UnsafeFunction,
		"SELECT system_user FROM people ORDER BY 1":                                           "",
		"SELECT count(system_user) FROM people p WHERE p.system_user = system_user":           "",
		"SELECT count(p.ctid), count(xmin) FROM people p WHERE p.ctid IS NOT NULL":            "",
		"SELECT max(q.ctid) FROM (SELECT age AS ctid FROM people) q":                          "",
		"SELECT min(p.ctid) FROM people p":                                                    reasons.SystemColumn,
		"SELECT count(DISTINCT p.xmin) FROM people p":                                         reasons.SystemColumn,
		"SELECT current_user, count(*) FROM people":                                           "",
		"SELECT count(*) FROM people WHERE system_user <> current_user":                       reasons.SessionDependent,
		"SELECT max(u) FROM (SELECT current_user AS u FROM people) q":                         reasons.SessionDependent,
		"SELECT count(*), 'pg_class'::regclass FROM people":                                   "",
		"SELECT count(*), 'codes'::regclass::text FROM people":                                "",
		"SELECT count(*), 'people'::regclass FROM people":                                     reasons.NameInString,
		"SELECT count(*), 'd0.people'::regclass FROM people":                                  reasons.NameInString,
		"SELECT count(*), 'pg_toast.pg_toast_1255'::regclass FROM people":                     reasons.NameInString,
		"SELECT count(*) FROM (SELECT gen_random_uuid() AS u, id FROM people) q":              "",
		`SELECT count(*) FROM "{db}"."public"."people" p WHERE p.age > 0`:                     "",
		`SELECT "{db}"."public"."people"."age" FROM "{db}"."public"."people" ORDER BY 1`:      "",
		`SELECT count(*) FROM "other"."public"."people"`:                                      reasons.AmbiguousName,
	} {
		sql = strings.ReplaceAll(sql, "{db}", source.Database)
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(capture.Query{SQL: sql, User: "nobody", Database: source.Database})
			var refusal *rewrite.UnsupportedError
			if refused != "" {
				if !errors.As(err, &refusal) || refusal.Reason != refused {
					t.Errorf("%v; want %s", err, refused)
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

// foreignCode has functions in a language whose bodies dpwatch does not parse. It is PL/pgSQL under another name.
const foreignCode = `CREATE LANGUAGE plother HANDLER plpgsql_call_handler;
	CREATE FUNCTION noise(x int) RETURNS int LANGUAGE plother AS 'BEGIN /* of people */ RETURN x; END';
	CREATE FUNCTION noisier(x int) RETURNS int LANGUAGE sql AS 'SELECT noise(x)';
	CREATE FUNCTION headcount() RETURNS bigint LANGUAGE plother AS 'BEGIN RETURN (SELECT count(*) FROM public.people); END';
	CREATE FUNCTION owned() RETURNS bigint LANGUAGE plother SECURITY DEFINER AS 'BEGIN RETURN (SELECT count(*) FROM public.people); END';
	CREATE FUNCTION owned_call() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT headcount()';
	CREATE FUNCTION calls_owned() RETURNS bigint LANGUAGE sql AS 'SELECT owned_call()';
	CREATE FUNCTION of_d0() RETURNS bigint LANGUAGE plother AS 'BEGIN RETURN (SELECT count(*) FROM d0.people); END';`

// TestOracleForeignCode: a word in a body that is not parsed is no reason to refuse a call if the rights of the replay
// role protect the tables. Those rights are checked on a server that has the engine's own table beside the copies.
func TestOracleForeignCode(t *testing.T) {
	t.Parallel()
	const people = "CREATE SCHEMA IF NOT EXISTS {s}; CREATE TABLE {s}.people AS SELECT i AS id FROM generate_series(1, {n}) i;"
	in := func(s, n string) string { return strings.NewReplacer("{s}", s, "{n}", n).Replace(people) }
	copies := in("d0", "7") + in("d1", "6") + foreignCode
	shop, shadow, both := database(t, in("public", "7")+foreignCode), database(t, copies), database(t, in("public", "7")+copies)
	role := "replay_" + contents(t, both).Database
	pgtest.Exec(t, both, "CREATE ROLE "+role+" LOGIN PASSWORD 'replay'; GRANT USAGE ON SCHEMA d0, d1 TO "+role+"; GRANT SELECT ON d0.people, d1.people TO "+role)
	t.Cleanup(func() { pgtest.Exec(t, both, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	address, err := url.Parse(both)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(role, "replay")
	asRole := address.String()
	source := contents(t, shop)
	rewriter := func(shadow string) *rewrite.Rewriter {
		r, err := rewrite.New(rewrite.Options{
			Protected: []rewrite.Table{{Schema: "public", Name: "people"}},
			Source:    source, Shadow: contents(t, shadow), Neighbours: []string{"d0", "d1"},
			AllowFunctions: []string{"noise", "noisier", "headcount", "owned", "owned_call", "calls_owned", "of_d0"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const unread = "and its body is not analysed"
	for name, c := range map[string]struct {
		shadow string
		want   map[string]string // "" = replayed, otherwise text of the refusal
	}{
		"copies alone": {shadow, map[string]string{
			"SELECT noise(1), count(*) FROM people":       "",
			"SELECT noisier(1), count(*) FROM people":     "",
			"SELECT headcount(), count(*) FROM people":    "",
			"SELECT headcount()":                          unread,
			"SELECT owned(), count(*) FROM people":        "reads a protected table",
			"SELECT owned_call(), count(*) FROM people":   "reads a protected table",
			"SELECT calls_owned(), count(*) FROM people":  "reads a protected table",
			"SELECT of_d0(), count(*) FROM people":        "reads a protected table",
			"SELECT count(*) FROM people HAVING noise(1)": "",
		}},
		"the role may read the table": {both, map[string]string{
			"SELECT noise(1), count(*) FROM people":    "reads a protected table",
			"SELECT headcount(), count(*) FROM people": "reads a protected table",
		}},
		"the role may not read the table": {asRole, map[string]string{
			"SELECT noise(1), count(*) FROM people":    "",
			"SELECT headcount(), count(*) FROM people": "",
			"SELECT owned(), count(*) FROM people":     "reads a protected table",
		}},
	} {
		r := rewriter(c.shadow)
		for sql, want := range c.want {
			plan, err := r.Analyze(capture.Query{SQL: sql, User: "nobody", Database: source.Database})
			var refusal *rewrite.UnsupportedError
			switch {
			case want != "":
				if !errors.As(err, &refusal) || refusal.Reason != reasons.NoCopy || !strings.Contains(refusal.Detail, want) || refusal.Hint == "" {
					t.Errorf("%s: %s: %v; want a refusal that says %q", name, sql, err, want)
				}
			case err != nil:
				t.Errorf("%s: %s: %v", name, sql, err)
			case c.shadow == asRole && strings.Contains(sql, "headcount"):
				text, _ := plan.For("d0")
				if _, err := pgtest.Connect(t, asRole).Exec(t.Context(), text); err == nil || !strings.Contains(err.Error(), "42501") {
					t.Errorf("%s: %v; want insufficient_privilege", text, err)
				}
			}
		}
	}
}
