package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// namesCommon creates objects for both databases: functions, operators and types whose names refer to different objects
// depending on the path, overloads on user-defined types, and functions that must not be called.
const namesCommon = `
CREATE SCHEMA a1; CREATE SCHEMA a2; CREATE SCHEMA a3; CREATE SCHEMA dp;
CREATE TYPE public.shape; -- a base type of its own
CREATE FUNCTION public.shape_in(cstring) RETURNS public.shape LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION public.shape_out(public.shape) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE public.shape (INPUT = public.shape_in, OUTPUT = public.shape_out, LIKE = text);
CREATE TYPE public.kind AS ENUM ('low', 'high');
CREATE TYPE a1.level AS ENUM ('low', 'high'); CREATE TYPE a2.level AS ENUM ('high', 'low'); CREATE TYPE a2.kind AS ENUM ('other');
CREATE FUNCTION a1.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''a1''';
CREATE FUNCTION a2.lower(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''a2'' || $1';
CREATE FUNCTION a2.upper(public.shape) RETURNS text LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN random()::text; END';
CREATE FUNCTION a1.length(public.kind) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN random() * 1000000; END';
CREATE FUNCTION a2.replace(public.shape, public.shape, public.shape) RETURNS public.shape LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN random()::text; END';
CREATE FUNCTION a1.reverse(public.kind[]) RETURNS text LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN random()::text; END';
CREATE FUNCTION public.pick(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 10';
CREATE FUNCTION a1.pick(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1000';
CREATE FUNCTION a2.pick(bigint) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1::int + 2000';
CREATE FUNCTION a2.pick(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT pg_catalog.length($1) + 3000';
CREATE FUNCTION a3.pick(VARIADIC int[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 4000';
CREATE FUNCTION a1.plus(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 OPERATOR(pg_catalog.+) $2 OPERATOR(pg_catalog.+) 5000';
CREATE OPERATOR a1.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = a1.plus);
CREATE FUNCTION a2.loud(public.shape, text) RETURNS bool LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN random() < 0.5; END';
CREATE OPERATOR a2.= (LEFTARG = public.shape, RIGHTARG = text, FUNCTION = a2.loud);
CREATE FUNCTION a2.joined(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT concat($1, ''/'', $2)';
CREATE OPERATOR a2.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = a2.joined);
`

// Objects that only one of the databases has: the engine's noise in a1, the shadow database's in dp, and there also
// further objects that the engine does not have.
const (
	namesOfEngine = `CREATE FUNCTION a1.noise(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';`
	namesOfShadow = `CREATE FUNCTION dp.noise(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
		CREATE FUNCTION dp.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''wrong''';
		CREATE FUNCTION dp.pick(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';
		CREATE FUNCTION dp.wrong(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -2';
		CREATE OPERATOR dp.- (LEFTARG = int, RIGHTARG = int, FUNCTION = dp.wrong);
		CREATE TYPE dp.kind AS ENUM ('high', 'low');
		CREATE FUNCTION a3.pick(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -3';
		CREATE FUNCTION a3.initcap(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''wrong''';
		CREATE OPERATOR a3.* (LEFTARG = int, RIGHTARG = int, FUNCTION = dp.wrong);`
)

// namesTables are the protected tables in schema {s}, with a column of a type of users in one of them.
const namesTables = `
CREATE TABLE {s}.users (id int, name text, code varchar, kind public.kind); INSERT INTO {s}.users SELECT i, 'User' || i, 'C' || i, 'low' FROM generate_series(1, {n}) i;
CREATE TABLE {s}.visits (id int, user_id int, place varchar); INSERT INTO {s}.visits SELECT i, 1 + i % {n}, 'Place' || i FROM generate_series(1, 3 * {n}) i;
CREATE TABLE {s}.shapes (id int, form public.shape); INSERT INTO {s}.shapes SELECT i, ('f' || i)::public.shape FROM generate_series(1, {n}) i;`

// namesGenerator writes queries whose functions, operators and types depend on the path and on the types of their
// arguments.
type namesGenerator struct{ rng *rand.Rand }

func (g *namesGenerator) pick(options ...string) string { return options[g.rng.IntN(len(options))] }

func (g *namesGenerator) text(depth int) string {
	if depth == 0 {
		return g.pick("u.name", "u.name", "u.code", "v.place", "'Lit'", "'Lit'::varchar", "u.kind::text", "u.id::text")
	}
	t, i := g.text(depth-1), g.number(depth-1)
	return g.pick("lower("+t+")", "lower("+t+")", "upper("+t+")", "replace("+t+", 'e', 'E')", "replace("+t+", "+g.text(0)+", 'x')", "("+t+" || "+g.text(0)+")", "initcap("+t+")", "max("+t+") OVER ()",
		"reverse("+t+")", "pg_catalog.lower("+t+")", "a1.lower("+t+")", "('low'::level)::text", "('high'::kind)::text", "('low'::a1.level)::text", "coalesce("+t+", 'z')", "repeat("+t+", 1 + ("+i+") % 2)",
		"upper(("+t+")::shape)", "pg_typeof("+t+")::text", "concat("+t+", "+i+")", "substr("+t+", 1, 3)")
}

func (g *namesGenerator) number(depth int) string {
	if depth == 0 {
		return g.pick("u.id", "u.id", "v.user_id", "3", "id(u)", "v.id")
	}
	i, t := g.number(depth-1), g.text(depth-1)
	return g.pick("pick("+i+")", "pick("+i+")", "("+i+" + "+g.number(0)+")", "("+i+" - 1)", "("+i+" * 2)", "length("+t+")", "noise("+i+")", "noise("+i+")", "abs("+i+")", "pick("+t+")", "a2.pick("+i+")",
		"public.pick("+i+")", "pick("+i+", 1)", "greatest("+i+", 2)", "a3.pick("+i+")", "length(u.kind)", "(SELECT max(w.id) FROM {v} w WHERE w.place = "+g.text(0)+")", "strpos("+t+", 'e')")
}

func (g *namesGenerator) condition(depth int) string {
	return g.pick("true", g.text(depth)+" = "+g.text(0), g.number(depth)+" > "+g.number(0), g.text(depth)+" IN ('a', 'user1')", "u.kind = 'low'", g.number(depth)+" BETWEEN 1 AND 9000", "EXISTS (SELECT FROM {u} x WHERE x.id = u.id)")
}

// queries returns n distinct ones; temp says that the session has temporary tables that are called users and scratch.
// One in four is the query of a cursor.
func (g *namesGenerator) queries(n int, database string, temp bool) []capture.Query {
	seen := map[string]bool{}
	var all []capture.Query
	for len(all) < n {
		sql := "SELECT " + g.number(1+g.rng.IntN(2)) + " AS a, " + g.text(1+g.rng.IntN(2)) + " AS b FROM {u} u JOIN {v} v ON v.user_id = u.id WHERE " + g.condition(1)
		if g.rng.IntN(8) == 0 {
			sql = "SELECT " + g.pick("s.id", "upper(s.form)", "replace(s.form, 'f', 'g')", "s.form = 'f1'", "upper(s.form::text)", "lower(s.form::text)") + " AS a, " + g.number(1) + " AS b FROM shapes s, {u} u, {v} v WHERE u.id = s.id AND v.user_id = u.id"
		}
		sql = strings.NewReplacer("{u}", g.pick("users", "users", "public.users"), "{v}", g.pick("visits", "public.visits")).Replace(sql)
		if g.rng.IntN(4) == 0 {
			sql = "DECLARE " + g.pick("c", `"C 1"`) + g.pick(" ", " SCROLL ", " NO SCROLL ") + "CURSOR " + g.pick("", "WITH HOLD ", "WITHOUT HOLD ") + "FOR " + sql
		}
		path := g.pick("public", "public", "a1, public", "public, a1", "a2, public", "a1, a2, public", "a2, a1, public", "a3, public", "public, a3", "a2, pg_catalog, public", "pg_catalog, a1, public", `"$user", public, a2`)
		if seen[path+sql] {
			continue
		}
		seen[path+sql] = true
		q := capture.Query{SQL: sql, User: "alice", Database: database, Settings: map[string]string{"search_path": path}}
		if temp && strings.Contains(sql, "users") { // as the proxy says, which knows the temporary relations
			q.Temporary = []string{"users"}
		}
		all = append(all, q)
	}
	return all
}

// TestOracleNames runs queries whose names depend on the path and on types in both worlds, in sessions with and without
// temporary tables with a protected table's name; the shadow database has further overloads. A rewritten query must
// give the same answer. DPWATCH_ORACLE_NAMES is the number of queries, DPWATCH_ORACLE_SEED the seed.
func TestOracleNames(t *testing.T) {
	t.Parallel()
	count, seed := int(longtest.Number(t, "DPWATCH_ORACLE_NAMES", longtest.Count(200, 1000))), longtest.Number(t, "DPWATCH_ORACLE_SEED", 20260403)
	t.Logf("DPWATCH_ORACLE_NAMES=%d DPWATCH_ORACLE_SEED=%d", count, seed)
	shopDSN, shadowDSN := pgtest.Database(t), pgtest.Database(t)
	w := &worlds{shop: connect(t, shopDSN), shadow: connect(t, shadowDSN)}
	superuser(t, w.shop, "alice")
	neighbours := map[string]int{"d0": usersD0, "d1": usersD1}
	tables := func(schema string, n int) string {
		return strings.NewReplacer("{s}", schema, "{n}", fmt.Sprint(n)).Replace(namesTables)
	}
	run(t, w.shop, namesCommon+namesOfEngine+tables("public", usersD0))
	run(t, w.shadow, namesCommon+namesOfShadow)
	o := rewrite.Options{
		Protected:  []rewrite.Table{table("public", "users"), table("public", "visits"), table("public", "shapes")},
		Neighbours: []string{"d0", "d1"}, ShadowPath: []string{"dp"},
		AllowFunctions: []string{"pick", "noise", "a1.lower", "a2.lower", "reverse", "initcap"},
	}
	for schema, n := range neighbours {
		run(t, w.shadow, "CREATE SCHEMA "+schema+";"+tables(schema, n))
	}
	var err error
	if o.Source, err = read.Catalog(t.Context(), shopDSN, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o.Shadow, err = read.Catalog(t.Context(), shadowDSN, time.Minute); err != nil {
		t.Fatal(err)
	}
	r := newRewriter(t, o)
	g := &namesGenerator{rng: rand.New(rand.NewPCG(seed, 6))}
	refill := func(in *worlds) func(string) {
		return func(schema string) {
			run(t, in.shop, "RESET SESSION AUTHORIZATION; RESET ALL; DROP TABLE public.users, public.visits, public.shapes;"+tables("public", neighbours[schema]))
			in.inShopNow = ""
		}
	}
	c := w.compare(t, r, g.queries(count, o.Source.Database, false), refill(w))
	if 100*c.rewritten < 50*c.queries || 100*c.answered < 2*35*c.queries || 100*c.apart < 20*c.queries {
		t.Error("want 50 of 100 queries rewritten, 35 answered and 20 that tell the neighbours apart: the oracle sees too little")
	}
	hidden := &worlds{shop: connect(t, shopDSN), shadow: connect(t, shadowDSN)}
	run(t, hidden.shop, "CREATE TEMP TABLE users (id int, name text, code varchar, kind public.kind); INSERT INTO users VALUES (1, 'hidden', 'hidden', 'high'); CREATE TEMP TABLE scratch (id int); GRANT ALL ON users TO alice")
	c = hidden.compare(t, r, g.queries(count/2, o.Source.Database, true), refill(hidden))
	if 100*c.rewritten < 15*c.queries || 100*c.answered < 2*10*c.queries {
		t.Error("want 15 of 100 queries beside temporary tables rewritten and 10 answered: the oracle sees too little")
	}
}
