package replay_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// readers is an operator, a domain, a cast and a function of a schema, each of which reads its table t.
func readers(schema string) string {
	return strings.ReplaceAll(`
		CREATE FUNCTION %s.plus(float8, int) RETURNS float8 LANGUAGE sql STABLE AS 'SELECT $1 + $2 + count(*) FROM %s.t';
		CREATE OPERATOR %s.<+> (FUNCTION = %s.plus, LEFTARG = float8, RIGHTARG = int);
		CREATE FUNCTION %s.many(float8) RETURNS bool LANGUAGE sql STABLE AS 'SELECT count(*) > 3 FROM %s.t';
		CREATE DOMAIN %s.checked AS float8 CHECK (%s.many(VALUE));
		CREATE FUNCTION %s.takes_checked(x %s.checked) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT x::float8';
		CREATE TYPE %s.label AS (name text);
		CREATE FUNCTION %s.labelled(int) RETURNS %s.label LANGUAGE sql STABLE AS 'SELECT ROW($1 + count(*))::%s.label FROM %s.t';
		CREATE CAST (int AS %s.label) WITH FUNCTION %s.labelled(int)`, "%s", schema)
}

// TestLeftOut: where all that the random part of a query reads is the same on D0 and on a neighbour, that is said before
// any trial, with what leaves the person out. The person whom d1 lacks is t 500, whose uid others have; the noise is drawn by functions, aggregates, views and conditions.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t,
		`CREATE TABLE public.other AS SELECT 1 AS n`,
		`CREATE FUNCTION peeks() RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN noise() + (SELECT n FROM public.other); END'`,
		`CREATE FUNCTION frozen(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x + round(random()); END'`,
		`CREATE FUNCTION seen(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x; END'`,
		`CREATE VIEW d0.late AS SELECT * FROM d0.t WHERE id < 400`, `CREATE VIEW d1.late AS SELECT * FROM d1.t WHERE id < 400`,
		`CREATE VIEW d0.wild_late AS SELECT sum(x) + noise() AS s FROM d0.t WHERE id < 400`,
		`CREATE VIEW d1.wild_late AS SELECT sum(x) + noise() AS s FROM d1.t WHERE id < 400`,
		`CREATE FUNCTION size_of(name text) RETURNS float8 LANGUAGE plpgsql STABLE AS 'DECLARE n float8; BEGIN EXECUTE format($$SELECT count(*) FROM %s$$, name) INTO n; RETURN n; END'`,
		`CREATE FUNCTION size_of(d0.t) RETURNS float8 LANGUAGE sql STABLE AS 'SELECT count(*) FROM d0.t'`,
		`CREATE FUNCTION size_of(d1.t) RETURNS float8 LANGUAGE sql STABLE AS 'SELECT count(*) FROM d1.t'`,
		readers("d0"), readers("d1"))
	opt := options(dsn)
	opt.Copies = []string{"d0", "d1"}
	p := player(t, opt)
	none, rows, condition := "", "the rows of the person", "the condition (id < ?)"
	for _, c := range []struct{ sql, why, reader string }{
		{"SELECT count(*) + noise() FROM %s.t WHERE id < 400", condition, none},
		{"SELECT uid, count(*) + noise() FROM %s.t WHERE id < 400 AND x > 3 GROUP BY uid", condition, none},
		{"SELECT count(*) + noise() FROM %s.t WHERE id < 400 AND at < '2026-01-02'", "the condition (id < ?) and the condition (at < ?), together,", none},
		{"SELECT id FROM %s.t WHERE id < 400 AND x + noise() > 3", condition, none},
		{"SELECT sum(a.x) + noise() FROM %s.t a JOIN %s.u b ON b.id = a.id", "the join ON (b.id = a.id)", none},
		{"SELECT sum(a.x) + noise() FROM %s.t a, %s.u b WHERE b.id = a.id", "the condition (b.id = a.id)", none},
		{"SELECT noisy_sum(a.x) FROM %s.t a JOIN %s.u b USING (id)", "the join", none},
		{"SELECT count(*) + noise() FROM %s.t WHERE id IN (SELECT id FROM %s.u)", "the condition (id IN (SELECT id FROM u))", none},
		{"SELECT count(*) + noise() FROM %s.t a WHERE EXISTS (SELECT FROM %s.u b WHERE b.id = a.id)", "the condition (EXISTS (SELECT FROM u b WHERE b.id = a.id))", none},
		{"SELECT id, count(*) + noise() FROM %s.t GROUP BY id HAVING id < 400", "HAVING (id < ?)", none},
		{"SELECT count(*) FILTER (WHERE id < 400) + noise() FROM %s.t", "FILTER (WHERE (id < ?))", none},
		{"SELECT sum(x) + noise() FROM (SELECT x FROM %s.t ORDER BY id LIMIT 9) AS q", "LIMIT", none},
		{"SELECT count(DISTINCT uid) + noise() FROM %s.t", rows, none},
		{"SELECT count(nullif(id, 500)) + noise() FROM %s.t", rows, none},
		{"SELECT CASE WHEN count(*) > 3 THEN noise() END FROM %s.t", rows, none},
		{"SELECT 5 + 0 * count(*) FROM %s.t", rows, none},
		{"WITH a AS (SELECT * FROM %s.t WHERE id < 400) SELECT noisy_sum(x) FROM a", condition, none},
		{"WITH a AS (SELECT uid, sum(x) + noise() AS s FROM %s.t WHERE id < 400 GROUP BY uid) SELECT max(s) FROM a", condition, none},
		{"SELECT avg(x) OVER (PARTITION BY uid) + noise() FROM %s.t WHERE id < 400", condition, none},
		{"SELECT DISTINCT ON (uid) x + noise() FROM %s.t WHERE id < 400 ORDER BY uid", condition, none},
		{"SELECT noisy_sum(x) FROM %s.t WHERE id < 400 UNION ALL SELECT count(*) + noise() FROM %s.t WHERE id < 300", condition, none},
		{"SELECT noise() + (SELECT count(*) FROM %s.t WHERE id < 400)", condition, none},
		{"SELECT count(*) + noise() FROM %s.late", "the condition (t.id < ?)", none},
		{"SELECT s FROM %s.wild_late", "the condition (t.id < ?)", none},
		{"SELECT count(*) + noise() FROM %s.u", "no relation that it reads has other rows", none},
		{"SELECT seen(count(*)) + noise() FROM %s.t WHERE id < 400", condition, none},
		{"SELECT frozen(count(*)) FROM %s.t WHERE id < 400", condition, none},
		{"SELECT count(*) + peeks() FROM %s.t WHERE id < 400", condition, "the function peeks"},
		// Subqueries of the random part refer to its rows, or FROM has a random part.
		{"SELECT id, (SELECT count(*) + noise() FROM %s.u b WHERE b.id = a.uid) FROM %s.t a WHERE a.id < 400", "the condition (a.id < ?)", none},
		{"SELECT id FROM %s.t a WHERE id < 400 AND EXISTS (SELECT FROM %s.u b WHERE b.id = a.uid AND noise() > 0)", condition, none},
		{"SELECT id, (SELECT sum(b.x) + noise() FROM %s.t b WHERE b.uid = a.id) FROM %s.u a WHERE a.id > 0", rows, none},
		{"SELECT a.id, s.n FROM %s.t a, LATERAL (SELECT count(*) + noise() AS n FROM %s.u b WHERE b.id = a.uid) s WHERE a.id < 400", "the condition (a.id < ?)", none},
		{"SELECT a.id, s.n FROM %s.t a LEFT JOIN LATERAL (SELECT count(*) + noise() AS n FROM %s.u b WHERE b.id = a.uid) s ON true WHERE a.id < 400 AND s.n > 0", "the condition (a.id < ?)", none},
		{"SELECT a.id, s.n FROM %s.t a JOIN (SELECT id, cap + noise() AS n FROM %s.u) s ON s.id = a.uid WHERE a.id < 400", "the condition (a.id < ?)", none},
		{"SELECT count(*) + z FROM %s.t, noise() AS z WHERE id < 400 GROUP BY z", condition, none},
		{"SELECT count(*) + max(z.n) FROM %s.t a, (SELECT noise() AS n) z WHERE a.id < 400", "the condition (a.id < ?)", none},
		{"WITH z AS (SELECT noise() AS n) SELECT count(*) + max(z.n) FROM %s.t CROSS JOIN z WHERE id < 400", condition, none},
		{"WITH z AS (SELECT uid, sum(x) + noise() AS n FROM %s.t WHERE id < 400 GROUP BY uid) SELECT max(z.n) FROM z JOIN %s.u b ON b.id = z.uid", condition, none},
		{"SELECT sum(a.x) + max(z.n) FROM (SELECT noise() AS n) z, %s.t a JOIN %s.u b ON b.id = a.id", "the join ON (b.id = a.id)", none},
		// Grouping sets, set operations, windows and outer joins.
		{"SELECT uid, count(*) + noise() FROM %s.t WHERE id < 400 GROUP BY GROUPING SETS ((uid), ())", condition, none},
		{"SELECT uid, note, count(*) + noise() FROM %s.t WHERE id < 400 GROUP BY ROLLUP (uid, note) HAVING count(*) > 1", condition, none},
		{"SELECT count(*) + noise() FROM (SELECT id FROM %s.u INTERSECT SELECT id FROM %s.t) q", rows, none},
		{"SELECT count(*) + noise() FROM (SELECT uid FROM %s.t UNION SELECT id FROM %s.u) q", rows, none},
		{"SELECT sum(x) + noise() FROM (SELECT x, row_number() OVER (ORDER BY id) AS r FROM %s.t) q WHERE r < 400", "the condition (r < ?)", none},
		{"SELECT sum(x) OVER w + noise() FROM %s.t WHERE id < 400 WINDOW w AS (PARTITION BY uid ORDER BY id)", condition, none},
		{"SELECT count(b.id) + noise() FROM %s.u a LEFT JOIN %s.t b ON b.uid = a.id AND b.id < 400", rows, none},
		{"SELECT count(*) + noise() FROM %s.u a WHERE NOT EXISTS (SELECT FROM %s.t b WHERE b.id = a.id)", rows, none},
		{"SELECT avg(x) + noise() FROM (SELECT x FROM %s.t ORDER BY id OFFSET 3 LIMIT 90) q", "LIMIT", none},
		{"WITH RECURSIVE r AS (SELECT id, uid FROM %s.t WHERE id = 7 UNION SELECT a.id, a.uid FROM r JOIN %s.t a ON a.id = r.uid) SELECT count(*) + noise() FROM r", "the condition (id = ?)", none},
		{"SELECT least(max(x), 5) + noise() FROM %s.t HAVING count(*) > 3", rows, none},
		{"VALUES (noise() + (SELECT count(*) FROM %s.t WHERE id < 400))", condition, none},

		// What the random part reads beside rows that are the same.
		{"SELECT noise() + (SELECT count(*) FROM %s.t WHERE id < 400) + (SELECT size_of('%s.t'))", none, none},
		{"SELECT noise() + (SELECT count(*) FROM %s.t WHERE id < 400) + size_of('%s.t')", condition, "the function size_of"},
		{"WITH c AS (SELECT size_of('%s.t') AS n) SELECT c.n + noise() + (SELECT count(*) FROM %s.t WHERE id < 400) FROM c", none, none},
		{"SELECT sum(z) + noise() FROM size_of('%s.t') AS z UNION ALL SELECT count(*) + noise() FROM %s.t WHERE id < 400", none, none},
		{"SELECT DISTINCT ON (uid) x + noise() + a.size_of FROM %s.t a WHERE id < 400 ORDER BY uid", condition, "the function size_of"},
		{"SELECT noisy_sum(x) + (SELECT count(*) FROM %s.t) FROM %s.t WHERE id < 0", none, none},
		{"SELECT noisy_sum(x) + (SELECT count(*) + noise() FROM %s.t) FROM %s.t WHERE id < 0", none, none},
		{"SELECT noisy_sum(x) FROM %s.t WHERE id < 0 HAVING (SELECT count(*) FROM %s.t) > 3", none, none},
		{"SELECT noisy_sum(x) FROM %s.t WHERE id < 0 GROUP BY GROUPING SETS ((uid), ()) HAVING (SELECT count(*) FROM %s.t) > 3", none, none},
		{"SELECT count(*) + (noise() OPERATOR(%s.<+>) 1) FROM %s.t WHERE id < 400", condition, "the operator <+>"},
		{"SELECT (count(*) + noise())::%s.checked FROM %s.t WHERE id < 400", condition, "the type checked"},
		{"SELECT (count(*) + noise())::int::%s.label FROM %s.t WHERE id < 400", condition, "the type label"},
		{"SELECT count(*) + %s.takes_checked(noise()) FROM %s.t WHERE id < 400", condition, "the function takes_checked"},
		{"SELECT count(*) + max(s.n) FROM (SELECT 500 AS id, noise() AS n) s LEFT JOIN %s.t a ON a.id = s.id WHERE a.id < 400 OR a.id IS NULL", none, none},
		{"SELECT id, (SELECT count(*) + noise() FROM %s.t b WHERE b.uid = a.uid) FROM %s.t a WHERE a.id < 400", none, none},
		{"SELECT a.id FROM %s.u a, LATERAL (SELECT count(*) + noise() AS n FROM %s.t b WHERE b.uid = a.id) s WHERE s.n > 3", none, none},
		{"SELECT DISTINCT ON (uid) ctid, x + noise() FROM %s.t WHERE id < 400 ORDER BY uid", none, none},
		{"SELECT s.n FROM (SELECT noise() AS n, 500 AS id) s, %s.t a WHERE a.id = s.id", none, none},
		{"SELECT max(z.n) FROM (SELECT noise() AS n, 1 AS id) z RIGHT JOIN %s.t a USING (id)", none, none},
		{"SELECT count(*) + noise() FROM %s.t", none, none},
		{"SELECT count(*) + noise() FROM %s.t WHERE id > 400", none, none},
		{"SELECT frozen(count(*)) FROM %s.t", none, none},
		{"SELECT noisy_sum(x) FROM %s.t WHERE id > 400", none, none},
		{"SELECT count(*) + noise() FROM %s.t WHERE id NOT IN (SELECT id FROM %s.u)", none, none},
		{"SELECT s FROM %s.wild", none, none},
		{"SELECT (SELECT count(*) + noise() FROM %s.u b WHERE b.id = a.uid) FROM %s.t a", none, none},
		{"SELECT count(*) + noise() FROM %s.t TABLESAMPLE bernoulli (50) WHERE id < 400", none, none},
	} {
		t.Run(c.sql, func(t *testing.T) {
			t.Parallel()
			run, err := p.Start(replay.Statement{Worlds: worldsOf(c.sql)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			reads, err := run.Reads(t.Context())
			switch {
			case err != nil:
				t.Error(err)
			case c.why == none && reads.LeftOut != nil:
				t.Errorf("%+v, want that the person takes part", reads.LeftOut)
			case c.why != none && (len(reads.LeftOut) != 1 || !strings.HasPrefix(reads.LeftOut[0].Why, c.why) || reads.LeftOut[0].Reader != c.reader):
				t.Errorf("%+v, want %q, %q", reads.LeftOut, c.why, c.reader)
			}
		})
	}
	param := replay.Statement{Worlds: worldsOf("SELECT sum(x + noise()) FROM %s.t WHERE id < $1"), Params: []capture.Param{{Value: []byte("400")}}}
	for value, want := range map[string]int{"400": 1, "600": 0} {
		param.Params[0].Value = []byte(value)
		run, err := p.Start(param, 1)
		if err != nil {
			t.Fatal(err)
		}
		if reads, err := run.Reads(t.Context()); err != nil || len(reads.LeftOut) != want {
			t.Errorf("below %s: %+v, %v; want %d", value, reads.LeftOut, err, want)
		}
		run.Close()
	}
}

// nested returns a query with a random subquery that refers to other rows, or with a random part in FROM.
func (g *generator) nested() string {
	from, other := g.from(g.IntN(2))+" AS q", g.from(g.IntN(2))
	draw := g.one("draw(q.r)", "draw(1)", "draw(count(*))")
	below := g.one("t.uid = q.k", "t.uid = k AND x > 2", "t.id = q.k", "t.x > q.a", "draw(t.x) < 0.9 AND t.uid = q.k")
	inner := "(SELECT " + g.one("count(*)", "sum(t.x)", "max(t.x)") + " + " + draw + " AS n FROM %s.t AS t WHERE " + below + ")"
	where := g.one("", " WHERE q.a > 2", " WHERE a > 2", " WHERE q.a > 4 AND q.k > 1", " WHERE q.k IN (SELECT uid FROM %s.t WHERE x > 5)")
	random := g.one("(SELECT z.k, draw(z.r) AS d FROM "+other+" AS z)", "(SELECT 1 AS k, draw(2) AS d)", "(SELECT uid AS k, sum(x) + draw(1) AS d FROM %s.t WHERE x > 3 GROUP BY uid)")
	join := g.one(" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ")
	body := ""
	switch g.IntN(9) {
	case 0:
		body = "SELECT q.k, " + inner + " FROM " + from + where
	case 1:
		body = "SELECT q.k, s.n FROM " + from + ", LATERAL " + inner + " AS s" + where
	case 2:
		body = "SELECT q.k, s.n FROM " + from + g.one(" JOIN", " LEFT JOIN") + " LATERAL " + inner + " AS s ON " + g.one("true", "s.n > q.a") + where
	case 3:
		body = "SELECT q.k, s.d FROM " + random + " AS s" + join + from + " ON q.k = s.k" + where
	case 4:
		body = "SELECT q.k, s.d FROM " + from + join + random + " AS s" + g.one(" USING (k)", " ON q.k = s.k AND s.d > 0.1") + where
	case 5:
		body = "SELECT count(*) + max(s.d) FROM " + random + " AS s, " + from + ", %s.u AS v" + g.one("", " WHERE q.k = v.id", " WHERE v.id = s.k AND q.a > 2 AND s.d < 0.9")
	case 6:
		body = "SELECT max(q.a) + draw(1) + " + g.one("(SELECT count(*) FROM %s.t)", "(SELECT count(*) + draw(2) FROM %s.t)") + " FROM " + from + g.one(" WHERE q.a < 0", " WHERE draw(q.r) < 2", where)
	case 7:
		body = "SELECT q.k, q.a FROM " + from + " WHERE q.a > 1 AND EXISTS " + inner
	case 8:
		body = "SELECT q.k, count(*) FROM " + from + where + " GROUP BY q.k HAVING count(*) + " + g.one("(SELECT draw(q.k))", "(SELECT count(*) + draw(1) FROM %s.t AS t WHERE t.uid = q.k)", "(SELECT count(*) FROM %s.t)") + " > 2"
	}
	if len(g.ctes) > 0 {
		body = "WITH " + strings.Join(g.ctes, ", ") + " " + body
	}
	return body
}

// TestOracleOfLeftOut: where a person counts as left out of a generated query, it gives the same rows on D0 and D1. Its
// draws are functions of their arguments; see oracleSchema. DPWATCH_ORACLE_QUERIES is the number of queries.
func TestOracleOfLeftOut(t *testing.T) {
	t.Parallel()
	count, seed := oracleSize(t, longtest.Count(25, 400))
	dsn := oracleDatabase(t)
	pgtest.Exec(t, dsn, `TRUNCATE d1.t; INSERT INTO d1.t SELECT * FROM d0.t WHERE id <> 17; ANALYZE`) // x = 0, as of two others
	opt := options(dsn)
	opt.Copies = []string{"d0", "d1"}
	p := player(t, opt)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
	conn := pgtest.Connect(t, dsn)
	out, differ := 0, 0
	for i := range count {
		g.ctes, g.n = nil, 0
		sql := g.nested()
		if i%3 == 0 {
			sql = g.query()
		}
		worlds := worldsOf(sql)
		d0, d1 := observe(t, conn, worlds[0]), observe(t, conn, worlds[1])
		if d0.Error != "" {
			continue
		}
		diff := cmp.Diff(d0.Rows, d1.Rows)
		if diff != "" {
			differ++
		}
		all, err := replay.LeftOutOf(t.Context(), p, worlds)
		switch {
		case err != nil:
			t.Errorf("query %d: %v\n%s", i, err, worlds[0])
		case all != nil:
			if out++; diff != "" {
				t.Errorf("query %d: %+v, but (-D0 +D1):\n%s\n%s", i, all, diff, worlds[0])
			}
		}
	}
	t.Logf("%d queries: of %d someone is left out, %d differ", count, out, differ)
	if out < count/20 || differ < count/20 {
		t.Errorf("of %d of %d queries someone is left out, and %d differ: want more for a test", out, count, differ)
	}
}
