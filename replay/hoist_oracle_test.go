package replay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// The oracle for draws: draw(x) is volatile, as noise is, but its result is a function of x, and it counts its calls
// and adds up their arguments. A query must give the same rows, with as many draws for the same values, whole and
// split: a draw for each row of a join instead of one for each person is another number of calls. Everything in it is
// deterministic: all numbers are multiples of 1/1024, so that sums do not depend on the order of rows.
const oracleSchema = `
	CREATE FUNCTION draw(x float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
		BEGIN
			PERFORM set_config('oracle.calls', (coalesce(current_setting('oracle.calls', true)::bigint, 0) + 1)::text, false),
				set_config('oracle.sum', (coalesce(current_setting('oracle.sum', true)::bigint, 0) + coalesce(hashfloat8(x), 7))::text, false);
			RETURN abs(hashfloat8(x) % 1024) / 1024.0;
		END $$;
	CREATE FUNCTION fi(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x + random() * 0.46; END';
	CREATE FUNCTION fs(x float8) RETURNS float8 LANGUAGE plpgsql STABLE AS 'BEGIN RETURN x + random() * 0.46; END'`

func oracleDatabase(t *testing.T) string {
	t.Helper()
	script := []string{oracleSchema}
	for i, schema := range []string{"d0", "d1"} {
		script = append(script, strings.NewReplacer("%s", schema, "%n", fmt.Sprint(60-10*i)).Replace(`CREATE SCHEMA %s;
			CREATE TABLE %s.u (id int PRIMARY KEY, g int, rate float8);
			INSERT INTO %s.u SELECT i, i % 3, (i * 37 % 64) / 64.0 FROM generate_series(1, 12) i;
			CREATE TABLE %s.t (id int PRIMARY KEY, uid int, x float8);
			INSERT INTO %s.t SELECT i, i % 11 + 1, i % 17 FROM generate_series(1, %n) i;
			CREATE VIEW %s.joined AS SELECT t.x AS a, u.rate AS r, u.id AS k FROM %s.t AS t JOIN %s.u AS u ON u.id = t.uid;
			ANALYZE`))
	}
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, script...)
	return dsn
}

// generator writes queries whose parts have the columns a, r (the argument of draws) and k (the join key).
type generator struct {
	*rand.Rand
	ctes []string
	n    int
	// falsely declared functions that parts call: "" = none, "random" or "moment" (see falseSchema).
	falsely string
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) name(prefix string) string {
	g.n++
	return prefix + strconv.Itoa(g.n)
}

// leaves are parts over tables and views.
var leaves = []string{
	"SELECT t.x AS a, u.rate AS r, u.id AS k FROM %s.t AS t JOIN %s.u AS u ON u.id = t.uid",
	"SELECT u.g AS a, u.rate AS r, t.id AS k FROM %s.u AS u LEFT JOIN %s.t AS t ON u.id = t.uid AND t.x > 4",
	"SELECT t.x AS a, u.rate AS r, u.id AS k FROM %s.t AS t, %s.u AS u WHERE u.id = t.uid AND t.x < 12",
	"SELECT x * 0.5 AS a, x / 16 AS r, uid AS k FROM %s.t WHERE x > 3",
	"SELECT g AS a, rate AS r, id AS k FROM %s.u WHERE id IN (SELECT uid FROM %s.t WHERE x > 8)",
	"SELECT g * 2 AS a, rate AS r, id AS k FROM %s.u AS u WHERE EXISTS (SELECT 1 FROM %s.t AS t WHERE t.uid = u.id AND t.x > 10)",
	"SELECT a + 1 AS a, r, k FROM %s.joined WHERE a > 2",
	"SELECT sum(t.x) AS a, u.rate AS r, max(u.id) AS k FROM %s.t AS t JOIN %s.u AS u ON u.id = t.uid GROUP BY u.rate",
	"SELECT x + draw(x) AS a, x / 8 AS r, uid AS k FROM %s.t WHERE x > 5",
	"SELECT max(x) + draw(max(x)) AS a, uid / 16.0 AS r, uid AS k FROM %s.t GROUP BY uid",
	"SELECT t.x AS a, t.x AS r, u.id AS k FROM %s.t AS t JOIN %s.u AS u ON u.id = t.uid",
	"SELECT x AS a, (x)::float8 AS r, uid AS k FROM %s.t WHERE x > 6",
}

// leaf returns one of the leaves; with false functions mostly one without a draw, which can be hoisted.
func (g *generator) leaf() string {
	leaf := g.one(leaves...)
	for g.falsely != "" && strings.Contains(leaf, "draw(") && g.IntN(4) > 0 {
		leaf = g.one(leaves...)
	}
	return leaf
}

// part returns a query, mostly without a draw.
func (g *generator) part(depth int) string {
	if g.falsely != "" && g.IntN(3) == 0 {
		return g.falsePart(depth)
	}
	if depth <= 0 {
		return g.leaf()
	}
	from, p := g.from(depth-1), g.name("p")
	form := g.IntN(12)
	if g.falsely == "random" && slices.Contains([]int{2, 4, 6, 7}, form) {
		form = 0 // the other forms depend on which of two values with random parts is the larger one, or whether they are equal
	}
	if g.falsely != "" && form == 10 && g.IntN(4) > 0 {
		form = 11
	}
	switch form {
	case 0:
		return fmt.Sprintf("SELECT a, r, k FROM %s AS %s WHERE a > 1", from, p)
	case 1:
		return fmt.Sprintf("SELECT sum(a) AS a, r, min(k) AS k FROM %s AS %s GROUP BY r", from, p)
	case 2:
		return fmt.Sprintf("SELECT DISTINCT a, r, k FROM %s AS %s", from, p)
	case 3:
		return fmt.Sprintf("SELECT a, r, k FROM %s AS %s ORDER BY a, r, k", from, p)
	case 4:
		return fmt.Sprintf("SELECT a, r, k FROM %s AS %s ORDER BY a, r, k LIMIT 20", from, p)
	case 5:
		return fmt.Sprintf("SELECT a, r, k FROM %s AS %s OFFSET 0", from, p)
	case 6:
		return fmt.Sprintf("SELECT a, r, k FROM %s AS %s %s SELECT a, r, k FROM %s AS %s", from, p, g.one("UNION ALL", "UNION", "INTERSECT", "EXCEPT"), g.from(depth-1), g.name("p"))
	case 7:
		return fmt.Sprintf("SELECT a + row_number() OVER (PARTITION BY r ORDER BY a, k) AS a, r, k FROM %s AS %s", from, p)
	case 8:
		q := g.name("p")
		return fmt.Sprintf("SELECT %s.a, %s.r, %s.k FROM %s AS %s %s %s AS %s ON %s.k = %s.k", p, g.one(p, q), g.one(p, q), from, p, g.one("JOIN", "LEFT JOIN"), g.from(depth-1), q, p, q)
	case 9:
		c := g.name("i")
		return fmt.Sprintf("WITH %s AS (%s) SELECT a, r, k FROM %s", c, g.part(depth-1), c)
	case 10:
		return fmt.Sprintf("SELECT a, r, k FROM %s AS %s WHERE draw(r) < 0.8", from, p)
	}
	return fmt.Sprintf("SELECT a, r, k FROM (SELECT * FROM %s AS %s) AS %s", from, p, g.name("p"))
}

// from returns an item of FROM.
func (g *generator) from(depth int) string {
	if g.IntN(3) > 0 || depth < 0 {
		return "(" + g.part(depth) + ")"
	}
	if len(g.ctes) > 0 && g.IntN(3) == 0 { // an existing one, so that it is read twice
		name, _, _ := strings.Cut(g.ctes[g.IntN(len(g.ctes))], " ")
		return name
	}
	query := g.part(depth)
	name := g.name("c")
	g.ctes = append(g.ctes, name+" AS "+g.one("", "", "MATERIALIZED ", "NOT MATERIALIZED ")+"("+query+")")
	return name
}

// draw returns a random value, which may depend on a column: a call, a scalar sub-query, or a call in some rows.
func (g *generator) draw(column string) string {
	return g.one("draw("+column+")", "(SELECT draw("+column+"))", "(SELECT draw(1))", "draw(1.0)", "draw(1)",
		"CASE WHEN q.a > 3 THEN draw("+column+") ELSE 0 END", "(SELECT draw(c.c) FROM (SELECT 2 AS c) AS c)",
		"(SELECT max(draw(c.x)) FROM %s.t AS c WHERE c.x > 14)")
}

// constants returns an item of FROM with columns s1 and s2 that may be constants, s1 also equal to s2, and m.
func (g *generator) constants(depth int) string {
	s1, s2 := g.one("1", "1.0", "2.0::float8", "(SELECT 1.0)", "k % 2"), g.one("1", "1.0", "4", "(SELECT max(x) FROM %s.t)", "1 + 1")
	m := g.one("3", "(SELECT count(*) FROM %s.u)", "k + 1")
	p, where := g.name("p"), g.one("", " WHERE k <= 2", " WHERE k = 1", " WHERE a > 2")
	if g.IntN(2) == 0 {
		return fmt.Sprintf("(SELECT a, r, k, %s AS s1, %s AS s2, %s AS m FROM %s AS %s%s)", s1, s2, m, g.from(depth), p, where)
	}
	having := g.one("", " HAVING count(*) > 0", " HAVING count(*) + draw(1) > 1", " HAVING (SELECT draw(1)) < 2")
	return fmt.Sprintf("(SELECT sum(a) AS a, r, min(k) AS k, %s AS s1, %s AS s2, 3 AS m FROM %s AS %s%s GROUP BY r%s)",
		strings.ReplaceAll(s1, "k % 2", "min(k)"), s2, g.from(depth), p, where, having)
}

// subqueries returns a query with random scalar sub-queries, over columns some of which are constants.
func (g *generator) subqueries() string {
	from := g.constants(g.IntN(2)) + " AS q"
	body := ""
	switch g.IntN(8) {
	case 0:
		body = "SELECT q.r, q.a + " + g.draw("q.s1") + " AS n FROM " + from
	case 1:
		body = "SELECT q.a + draw(q.s1) AS n, q.a + draw(q.s2) AS m FROM " + from + g.one(" ORDER BY n", " ORDER BY 2, 1", "")
	case 2:
		body = "SELECT q.s1, count(*) + " + g.one("draw(1)", "(SELECT draw(1))", "draw(count(*))", "(SELECT draw(count(*)))") + " AS n FROM " + from +
			" GROUP BY q.s1 HAVING count(*) + " + g.one("draw(1)", "draw(q.s1)", "(SELECT draw(1))", "(SELECT draw(count(*)))") + " > 1 ORDER BY 1"
	case 3:
		body = "SELECT q.k, q.a FROM " + from + " ORDER BY q.a + " + g.draw("q.r") + ", 1, 2"
	case 4:
		c := g.name("params")
		g.ctes = append(g.ctes, c+" AS "+g.one("", "MATERIALIZED ", "NOT MATERIALIZED ")+"(SELECT q.r, count(*) AS n, 1.0 AS s, 4.0 AS e FROM "+from+" GROUP BY q.r)")
		body = "SELECT r, n + " + g.one("(SELECT draw(s / e))", "draw(s / e)", "(SELECT draw(n))", "CASE WHEN n > 1 THEN (SELECT draw(e)) END") + " FROM " + c
	case 5:
		body = "SELECT z.a, z.d FROM (SELECT q.a, " + g.draw("q.s2") + " AS d, q.k FROM " + from + ") AS z" + g.one("", " WHERE z.d < 0.9", " WHERE z.k > 1", " ORDER BY z.d, 1")
	case 6:
		body = "SELECT CASE WHEN q.a > 2 THEN " + g.draw("q.s1") + " WHEN q.m = 3 THEN " + g.draw("q.s2") + " END AS n, q.k FROM " + from
	case 7:
		body = "SELECT count(*) + " + g.draw("2") + ", sum(q.s1) FROM " + from + " WHERE " + g.one("q.a > 1", "draw(q.s2) < 0.8", "(SELECT draw(1)) < 2", "(SELECT draw(q.r)) < 0.8")
		body = strings.ReplaceAll(body, "q.a > 3", "count(*) > 3")
	}
	if len(g.ctes) > 0 {
		body = "WITH " + strings.Join(g.ctes, ", ") + " " + body
	}
	return body
}

func (g *generator) query() string {
	g.ctes, g.n = nil, 0
	if g.falsely == "" && g.IntN(3) == 0 {
		return g.subqueries()
	}
	depth := g.IntN(3)
	from := g.from(depth) + " AS q"
	volatile := []string{"draw(q.r) < 0.6", "draw(q.r + q.a) < 0.9", "q.a + draw(q.r) > 1"} // with two conditions, the order determines how often the second is evaluated
	switch g.IntN(6) {
	case 0:
		from += g.one(" JOIN ", " LEFT JOIN ") + g.from(depth-1) + " AS s ON s.k = q.k"
	case 1:
		from += " LEFT JOIN " + g.from(depth-1) + " AS s ON s.k = q.k AND " + g.one("draw(s.r) < 0.7", "draw(q.r + s.a) < 0.5")
	case 2:
		from += ", %s.u AS s"
	}
	where := ""
	switch g.IntN(4) {
	case 0, 1:
		where = " WHERE " + g.one(volatile...)
		if g.IntN(2) == 0 {
			where += " AND q.a > 2"
		}
	case 2:
		where = " WHERE q.a > 2"
	}
	body := ""
	switch g.IntN(11) {
	case 9:
		body = "SELECT " + g.one("", "DISTINCT ") + "q.a + draw(q.a) AS n, q.r + draw(q.r) AS m, 2 * (q.a + draw(q.a)) FROM " + from + where + g.one("", " ORDER BY 1, 2, 3", " ORDER BY n, 2, 3")
	case 10:
		body = "SELECT q.k, sum(q.a) + draw(sum(q.a)) AS n, sum(q.r) + draw(sum(q.r)) FROM " + from + where + " GROUP BY q.k ORDER BY " + g.one("n, 1", "1", "sum(q.a) + draw(sum(q.a)), 1", "sum(q.r), 1")
	case 0, 1:
		body = "SELECT count(*) + draw(10) AS n, sum(q.a) FROM " + from + where
	case 2:
		body = "SELECT q.r, count(*) + draw(count(*)) AS n FROM " + from + where + " GROUP BY q.r ORDER BY " + g.one("1", "n, 1", "q.r", "q.r + 1")
	case 3:
		body = "SELECT q.k + draw(q.k) AS n, q.k AS h FROM " + from + where + " GROUP BY h ORDER BY " + g.one("q.k + draw(q.k) DESC, 2", "k + draw(k), 2", "q.k + draw(q.k::float8), 2", "1, 2", "2")
	case 4:
		body = "SELECT " + g.one("", "DISTINCT ") + "q.a + draw(q.a) AS n, q.r FROM " + from + where + " ORDER BY " + g.one("1, 2", "q.a + draw(q.a), 2", "2, 1")
	case 5:
		body = "SELECT q.r, sum(q.a) FROM " + from + where + " GROUP BY q.r HAVING draw(q.r) < 0.7 AND count(*) + draw(count(*)) > 1"
	case 6:
		body = "SELECT DISTINCT ON (q.r + draw(q.r)) q.r + draw(q.r), max(q.a) FROM " + from + where + " GROUP BY q.r ORDER BY q.r + draw(q.r)"
	case 7:
		body = "SELECT q.r + draw(q.r), rank() OVER (ORDER BY q.r + draw(q.r)) FROM " + from + where + " GROUP BY q.r"
	case 8:
		body = "SELECT q.k, q.a, draw(q.r) AS d, (SELECT max(x) FROM %s.t) FROM " + from + where
	}
	if g.falsely != "" {
		body = g.falseBody(body)
	}
	if len(g.ctes) > 0 {
		body = "WITH " + strings.Join(g.ctes, ", ") + " " + body
	}
	return body
}

// observed holds the rows of a query, and its draws.
type observed struct {
	Rows       []string
	Calls, Sum string
	Error      string
}

func observe(t *testing.T, conn *pgx.Conn, sql string) observed {
	t.Helper()
	ctx := t.Context()
	if _, err := conn.Exec(ctx, "SELECT set_config('oracle.calls', '0', false), set_config('oracle.sum', '0', false)"); err != nil {
		t.Fatal(err)
	}
	var o observed
	rows, err := conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err == nil {
		for rows.Next() {
			o.Rows = append(o.Rows, fmt.Sprintf("%q", rows.RawValues()))
		}
		err = rows.Err()
	}
	if err != nil {
		o.Error = err.Error()
	}
	slices.Sort(o.Rows)
	if err := conn.QueryRow(ctx, "SELECT current_setting('oracle.calls'), current_setting('oracle.sum')").Scan(&o.Calls, &o.Sum); err != nil {
		t.Fatal(err)
	}
	return o
}

// oracleSize returns the number of queries that the environment asks for, or otherwise, and the seed to generate them
// with.
func oracleSize(t *testing.T, otherwise uint64) (count int, seed uint64) {
	t.Helper()
	return int(longtest.Number(t, "DPWATCH_ORACLE_QUERIES", otherwise)), longtest.Number(t, "DPWATCH_ORACLE_SEED", 20261122)
}

// TestOracleOfDraws compares generated queries, whole and split. DPWATCH_ORACLE_QUERIES is their number,
// DPWATCH_ORACLE_SEED the seed.
func TestOracleOfDraws(t *testing.T) {
	t.Parallel()
	count, seed := oracleSize(t, longtest.Count(30, 150))
	dsn := oracleDatabase(t)
	p := player(t, options(dsn))
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	conn := pgtest.Connect(t, dsn)
	hoisted, failed, reasons := 0, 0, map[string]int{}
	for i := range count {
		sql := g.query()
		worlds := worldsOf(sql)
		whole := observe(t, conn, worlds[0])
		if whole.Error != "" {
			failed++
			if failed > count/10 {
				t.Fatalf("too many queries fail, this one with %s\n%s", whole.Error, worlds[0])
			}
			continue
		}
		tables, rests, reason := replay.Parts(t.Context(), p, worlds)
		if reason != "" {
			reasons[reason]++
			continue
		}
		hoisted++
		for _, table := range tables {
			if _, err := conn.Exec(t.Context(), table); err != nil {
				t.Fatalf("query %d: %v\n%s", i, err, table)
			}
		}
		if diff := cmp.Diff(whole, observe(t, conn, rests[0])); diff != "" {
			t.Errorf("query %d (-whole +parts):\n%s\n%s\n%s\n%s", i, diff, worlds[0], strings.Join(tables, "\n"), rests[0])
		}
		if _, err := conn.Exec(t.Context(), "DISCARD TEMP"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d queries: %d hoisted, %d failed, the others: %v", count, hoisted, failed, reasons)
	if hoisted < count/20 {
		t.Errorf("%d of %d queries hoisted, want more for a test", hoisted, count)
	}
}
