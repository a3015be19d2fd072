package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// generated returns n distinct random queries for one seed. Names of tables are used as CTEs at random depths, in every
// clause, qualified, quoted and aliased at random; database is the name of the client's database.
func generated(n int, seed uint64, database string) []capture.Query {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 4)), database: `"` + database + `"`}
	seen := map[string]bool{}
	var queries []capture.Query
	for len(queries) < n {
		g.declared = false
		sql := g.query(1 + g.rng.IntN(3))
		if seen[sql] || len(sql) > 6000 {
			continue
		}
		seen[sql] = true
		path := g.pick("public, app", "public, app", "public, app", "app, public", `"$user", public, app`, "util, public, ref, app", "ref, public, app", "public")
		queries = append(queries, capture.Query{SQL: sql, User: "alice", Database: database, Settings: map[string]string{"search_path": path}})
	}
	return queries
}

// generator writes queries with one int column, id, so that any query fits into any place of another. None depends on
// the order of rows, and none is random.
type generator struct {
	rng      *rand.Rand
	database string
	declared bool // a CTE is called like a function
}

func (g *generator) pick(options ...string) string { return options[g.rng.IntN(len(options))] }

// fill replaces, in a template, Q by queries and S by scalars one level deeper, R by a relation that may be a CTE, T by
// a stored table, N by a small number and D by the database; each is a word of its own between braces.
func (g *generator) fill(depth int, template string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		what, after, _ := strings.Cut(rest, "}")
		switch what {
		case "Q":
			b.WriteString(g.query(depth - 1))
		case "S":
			b.WriteString(g.scalar(depth - 1))
		case "R":
			b.WriteString(g.relation())
		case "T":
			b.WriteString(g.table())
		case "N":
			fmt.Fprint(&b, 1+g.rng.IntN(6))
		case "D":
			b.WriteString(g.database)
		default:
			panic("unknown part {" + what + "}")
		}
		template = after
	}
}

// query returns a query with one column, id.
func (g *generator) query(depth int) string {
	if depth <= 0 || g.rng.IntN(2) == 0 {
		return g.body(depth)
	}
	recursive := g.rng.IntN(6) == 0
	names := []string{"users", "transactions", "stores", "user_list", "events", `"Order Lines"`, "headcount"}
	g.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var ctes []string
	for _, name := range names[:1+g.rng.IntN(3)] {
		inner := g.query(depth - 1)
		if recursive && g.rng.IntN(2) == 0 {
			inner = fmt.Sprintf("SELECT id FROM (%s) s UNION SELECT id + 1 FROM %s WHERE id < 5", inner, name)
		}
		g.declared = g.declared || name == "headcount"
		ctes = append(ctes, name+g.pick("", "(id)")+" AS "+g.pick("", "MATERIALIZED ", "NOT MATERIALIZED ")+"("+inner+")")
	}
	with := "WITH "
	if recursive {
		with += "RECURSIVE "
	}
	body := g.body(depth)
	if strings.HasPrefix(body, "WITH ") {
		body = "SELECT w.id FROM (" + body + ") AS w"
	}
	return with + strings.Join(ctes, ", ") + " " + body
}

// body returns a query without WITH at the top.
func (g *generator) body(depth int) string {
	if depth <= 0 {
		return g.fill(0, g.pick("SELECT id FROM {R} AS x WHERE id < {N}", "SELECT x.id FROM {R} x", "SELECT max(x.id) AS id FROM {T} AS x",
			"SELECT id FROM ONLY {T} x WHERE x.id <> {N}", "SELECT o.id FROM of_age({N}) AS o", "SELECT headcount() AS id", "SELECT public.older({N}) AS id",
			"SELECT id FROM (VALUES ({N}), ({N})) AS users(id)"))
	}
	return g.fill(depth, bodies[g.rng.IntN(len(bodies))])
}

// bodies are templates of queries, by the clause that they are about.
var bodies = []string{
	// joins and LATERAL
	"SELECT x.id FROM {R} AS x JOIN {R} AS y ON x.id = y.id",
	"SELECT id FROM {R} AS x FULL JOIN {R} AS y USING (id) WHERE id < {N}",
	"SELECT j.id FROM ({R} AS x LEFT JOIN {T} AS y USING (id)) AS j WHERE j.id < {S}",
	"SELECT x.id FROM {T} x NATURAL JOIN (SELECT id FROM ({Q}) q) AS y",
	"SELECT x.id FROM {R} AS x JOIN {T} AS y ON x.id = y.id AND y.id IN ({Q})",
	"SELECT q.id FROM ({Q}) q, LATERAL (SELECT max(id) AS m FROM ({Q}) l WHERE l.id <= q.id) z",
	"SELECT l.id FROM {R} x LEFT JOIN LATERAL (SELECT y.id + x.id AS id FROM {R} y WHERE y.id = x.id) l ON true",
	"SELECT l.id FROM {R} users CROSS JOIN LATERAL (SELECT users.id) l",
	"SELECT l.id FROM {R} x, LATERAL of_age(x.id) AS l WHERE x.id < {N}",
	// sub-selects
	"SELECT x.id FROM {R} x WHERE x.id IN ({Q})",
	"SELECT x.id FROM {R} x WHERE x.id = ANY ({Q}) AND NOT EXISTS (SELECT 1 FROM ({Q}) q WHERE q.id > x.id + 2)",
	"SELECT x.id FROM {R} x WHERE (x.id, {N}) IN (SELECT y.id, {N} FROM {R} y)",
	"SELECT {S} AS id FROM {R} AS x",
	"SELECT cardinality(ARRAY({Q})) AS id",
	"SELECT CASE WHEN EXISTS ({Q}) THEN {S} ELSE {S} END AS id",
	"SELECT coalesce(x.id, (SELECT min(id) FROM ({Q}) q)) AS id FROM {R} x",
	"SELECT (SELECT x.id FROM (SELECT 1) AS one WHERE x.id < {S}) AS id FROM {R} AS x",
	// set operations, VALUES, TABLE
	"({Q}) UNION ({Q})", "({Q}) EXCEPT ({Q})", "({Q}) INTERSECT ALL ({Q})", "({Q}) UNION ALL ({Q})",
	"(({Q}) EXCEPT ALL ({Q})) UNION SELECT x.id FROM {R} x",
	"SELECT id FROM ((SELECT id FROM {R} x) UNION (SELECT id FROM {R} y) ORDER BY id LIMIT {N}) AS z",
	"SELECT column1 AS id FROM (VALUES ((SELECT min(id) FROM ({Q}) q)), ({N})) v",
	"SELECT v.id FROM (VALUES ({S}, {N}), ({N}, {S})) AS v(id, n) WHERE n < {N}",
	"SELECT id FROM (TABLE {R}) AS x ORDER BY (SELECT count(*) FROM ({Q}) q), id",
	// grouping
	"SELECT x.id FROM {R} x GROUP BY x.id HAVING count(*) >= ALL (SELECT id % 2 FROM ({Q}) q)",
	"SELECT coalesce(x.id, 0) + grouping(x.id) * 100 AS id FROM {R} x GROUP BY GROUPING SETS ((x.id), ()) HAVING count(*) > {N} % 2",
	"SELECT count(*)::int AS id FROM {R} x GROUP BY ROLLUP (x.id % 2, x.id % 3)",
	"SELECT sum(x.id)::int AS id FROM {R} x GROUP BY CUBE (x.id % 2, (x.id + {S}) % 2), x.id % 3",
	"SELECT DISTINCT ON (x.id % 2) x.id FROM {R} x ORDER BY x.id % 2, x.id",
	"SELECT DISTINCT x.id % {N} AS id FROM {R} x",
	"SELECT (count(*) FILTER (WHERE x.id IN ({Q})))::int AS id FROM {R} x",
	"SELECT (array_agg(x.id ORDER BY x.id DESC, {S}))[{N}] AS id FROM {R} x",
	"SELECT (percentile_disc(0.5) WITHIN GROUP (ORDER BY x.id))::int AS id FROM {R} x",
	// windows
	"SELECT (count(*) OVER (ORDER BY x.id RANGE BETWEEN {N} PRECEDING AND CURRENT ROW))::int AS id FROM {R} x",
	"SELECT (sum(x.id) OVER w)::int AS id FROM {R} x WINDOW w AS (PARTITION BY x.id % 2 ORDER BY x.id GROUPS BETWEEN 1 PRECEDING AND {N} FOLLOWING EXCLUDE TIES)",
	"SELECT (rank() OVER (PARTITION BY {S} ORDER BY x.id + (SELECT count(*) FROM ({Q}) q)))::int AS id FROM {R} x",
	"SELECT (sum(x.id) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING))::int AS id FROM {R} x WINDOW w AS (ORDER BY x.id)",
	// LIMIT, OFFSET, FETCH
	"SELECT x.id FROM {R} x ORDER BY x.id LIMIT (SELECT 3 + count(*) FROM ({Q}) q) OFFSET {N}",
	"SELECT x.id FROM {R} x ORDER BY {S}, x.id FETCH FIRST ({S} + 1) ROWS WITH TIES",
	// recursion
	"WITH RECURSIVE stores(id) AS (SELECT min(q.id) FROM ({Q}) q UNION ALL SELECT id + 1 FROM stores WHERE id < {N}) SELECT id FROM stores",
	"WITH RECURSIVE users AS (SELECT id FROM public.users WHERE id = {N} UNION SELECT t.id FROM {T} t JOIN users u ON t.id = u.id + 1) SELECT users.id FROM users",
	"WITH RECURSIVE t(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM t WHERE id < {N}) SEARCH DEPTH FIRST BY id SET o CYCLE id SET c USING p SELECT id FROM t, {R} AS x(id2)",
	// whole rows and row types
	"SELECT count(x)::int AS id FROM {R} x", "SELECT (x).id FROM {R} AS x", "SELECT (x.*).id FROM {R} AS x WHERE x IS NOT NULL",
	"SELECT count(DISTINCT x::text)::int AS id FROM {R} AS x", "SELECT (row_to_json(x) ->> 'id')::int AS id FROM {R} AS x",
	"SELECT x.id FROM {R} x WHERE ROW(x.id, {N}) >= ROW({N}, {S})", "SELECT length(ROW(x.*)::text) AS id FROM {R} x",
	"SELECT first_of(x) AS id FROM public.users AS x", "SELECT users.id FROM users WHERE users IS DISTINCT FROM NULL",
	// names of three and more parts
	"SELECT public.users.id FROM public.users", "SELECT public.users.id FROM users", "SELECT {D}.public.transactions.id FROM transactions",
	"SELECT q.id FROM (SELECT public.users.* FROM public.users, {R} AS x) AS q", "SELECT public.user_list.id FROM {D}.public.user_list",
	"SELECT ref.users.id FROM ref.users, transactions t WHERE t.id = {N}", "SELECT public.stores.id + public.users.id AS id FROM public.stores, public.users",
	`SELECT app."Order Lines".id FROM app."Order Lines" WHERE EXISTS (SELECT 1 FROM {R} x WHERE app."Order Lines".id < x.id)`,
	`SELECT "users".id FROM "users"`, `SELECT (public.users).id FROM public.users`, "SELECT users.id FROM {R} AS users", "SELECT count(public.users)::int AS id FROM public.users",
	`SELECT U&"\0075sers".id FROM U&"\0075sers"`, "SELECT x.id FROM transactions AS x(id, users, stores) WHERE x.users < {N}",
	// functions, sampling, ordinality
	"SELECT o.id::int FROM unnest(ARRAY({Q})) WITH ORDINALITY AS o(v, id)", "SELECT f.id FROM ROWS FROM (generate_series(1, {N}), of_age({N})) AS f(id, id2)",
	"SELECT biggest(VARIADIC ARRAY({Q})) AS id", "SELECT util.bucket({S}) AS id", "SELECT num_nulls(VARIADIC ARRAY({Q})) AS id",
	"SELECT x.id FROM {T} AS x TABLESAMPLE BERNOULLI (60) REPEATABLE ({N})", "SELECT count(*)::int AS id FROM {T} x TABLESAMPLE SYSTEM (70) REPEATABLE ({N})",
	"SELECT o.id::int FROM public.of_age({S}) WITH ORDINALITY AS o(a, b, id)", "SELECT headcount() + older({S}) + public.older(1.5) AS id",
	"SELECT f.id FROM {R} AS headcount, of_age(headcount.id) AS f", "SELECT tallied(x.id) AS id FROM {R} x GROUP BY x.id % 2",
	"SELECT (tallied(x.id) OVER (ORDER BY x.id))::int AS id FROM {R} x",
	"SELECT xt.id FROM XMLTABLE('/r/i' PASSING (SELECT xmlelement(NAME r, xmlelement(NAME i, min(id))) FROM ({Q}) q) COLUMNS id int PATH '.') AS xt",
	"SELECT j.id FROM jsonb_to_recordset((SELECT jsonb_agg(q) FROM ({Q}) q)) AS j(id int)",
}

// scalar is an expression of type int that needs nothing in scope.
func (g *generator) scalar(depth int) string {
	if depth <= 0 {
		return g.fill(0, g.pick("{N}", "{N}", "headcount()", "(SELECT max(id) FROM {R} s)"))
	}
	return g.fill(depth, g.pick("(SELECT max(id) FROM ({Q}) s)", "(SELECT count(*)::int FROM {R} s)", "{N}", "coalesce((SELECT s.id FROM {T} s WHERE s.id = {N} LIMIT 1), {N})",
		"older({N})", "CASE {N} WHEN {S} THEN {S} ELSE {N} END", "greatest({S}, {N})", "(ARRAY[{S}, {N}])[1]", "({N} + public.headcount())"))
}

// relation returns the name of a table or view, or of a CTE if one with that name is in scope.
func (g *generator) relation() string {
	if g.rng.IntN(3) == 0 {
		return g.table()
	}
	if g.declared && g.rng.IntN(6) == 0 {
		return "headcount"
	}
	return g.pick("users", "users", "transactions", "stores", "user_list", "events", "USERS", `"transactions"`, `"Order Lines"`)
}

// table returns a table's name with its schema, so that it cannot refer to a CTE.
func (g *generator) table() string {
	return g.pick("public.users", "public.transactions", g.database+".public.users", "ref.users", "public.stores", "public . transactions",
		"public.events", "public.events_1", `app."Order Lines"`, `public /* "d0" */ . "users"`, `U&"p\0075blic".users`)
}
