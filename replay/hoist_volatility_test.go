package replay_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
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

// falseSchema has functions that are wrongly declared IMMUTABLE or STABLE.
//
// ti, ts and tw add a random number in [0, 2^-20): too little to change the result of a comparison with a number.
// Tables that hold such a value certainly differ between sessions, and tables that do not are certainly the same.
//
// The others depend only on the moment, which the test changes between sessions: they add -1, 0, 1, 2 or 3 in the
// second moment, depending on their argument, so that a query's tables may differ or not, and do the same each time.
// Sums are exact. Their cost is lower than that of draw(), so that among the conditions of one query theirs are
// evaluated first: otherwise draws for rows that another condition drops anyway would count.
const falseSchema = `
	CREATE FUNCTION ti(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x + random() / 1048576; END';
	CREATE FUNCTION ts(x float8) RETURNS float8 LANGUAGE plpgsql STABLE AS 'BEGIN RETURN x + random() / 1048576; END';
	CREATE FUNCTION tw(x float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT x + random() / 1048576';
	CREATE TABLE moment AS SELECT 0 AS n;
	CREATE FUNCTION gi(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE COST 1 AS 'BEGIN RETURN x + (SELECT n FROM moment) * (abs(hashfloat8(x)) % 5 - 1); END';
	CREATE FUNCTION gs(x float8) RETURNS float8 LANGUAGE plpgsql STABLE COST 1 AS 'BEGIN RETURN x + (SELECT n FROM moment) * (abs(hashfloat8(x)) % 5 - 1); END';
	CREATE FUNCTION gw(x float8) RETURNS float8 LANGUAGE sql IMMUTABLE COST 1 AS 'SELECT gs(x)';
	CREATE FUNCTION gp(x float8, y float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE STRICT COST 1 AS 'BEGIN RETURN x + gi(y); END';
	CREATE FUNCTION gset(m int) RETURNS SETOF int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN QUERY SELECT generate_series(1, m + (SELECT n FROM moment)); END';
	CREATE AGGREGATE gsum(float8) (SFUNC = gp, STYPE = float8, INITCOND = 0);
	CREATE OPERATOR @+ (FUNCTION = gp, LEFTARG = float8, RIGHTARG = float8);
	CREATE VIEW d0.v_gi AS SELECT gi(x) AS a, x / 16 AS r, uid AS k FROM d0.t;
	CREATE VIEW d1.v_gi AS SELECT gi(x) AS a, x / 16 AS r, uid AS k FROM d1.t;
	CREATE VIEW d0.v_gs AS SELECT x AS a, x / 16 AS r, uid AS k FROM d0.t WHERE gs(x) > 6;
	CREATE VIEW d1.v_gs AS SELECT x AS a, x / 16 AS r, uid AS k FROM d1.t WHERE gs(x) > 6;
	CREATE VIEW d0.v_ti AS SELECT ti(x) AS a, x / 16 AS r, uid AS k FROM d0.t;
	CREATE VIEW d1.v_ti AS SELECT ti(x) AS a, x / 16 AS r, uid AS k FROM d1.t`

// surelyFalse are parts whose values depend on a false function f, over p, an item of FROM with the columns a, r and k.
// Their set of rows does not depend on it.
var surelyFalse = []string{
	"SELECT f(a) AS a, r, k FROM p",
	"SELECT a + f(3) AS a, r, k FROM p",
	"SELECT f(a + r) AS a, r, k FROM p WHERE f(a) > -1000",
	"SELECT a, r, k FROM p WHERE f(a) > -1000",
	"SELECT sum(f(a)) AS a, r, min(k) AS k FROM p GROUP BY r",
	"SELECT f(sum(a)) AS a, r, max(k) AS k FROM p GROUP BY r",
	"SELECT max(f(a)) AS a, r, min(k) AS k FROM p GROUP BY r",
	"SELECT (array_agg(f(a) ORDER BY k, a))[1] AS a, r, min(k) AS k FROM p GROUP BY r",
	"SELECT a + (SELECT f(2)) AS a, r, k FROM p",
	"SELECT a + (SELECT sum(f(x)) FROM %s.t) AS a, r, k FROM p",
	"SELECT a + (SELECT max(f(z.x)) FROM %s.t AS z WHERE z.uid = q.k) AS a, r, k FROM p AS q",
	"SELECT z.b AS a, q.r, q.k FROM p AS q, LATERAL (SELECT f(q.a) AS b) AS z",
	"SELECT coalesce(z.b, 0) AS a, q.r, q.k FROM p AS q LEFT JOIN (SELECT f(x) AS b, id FROM %s.t) AS z ON z.id = q.k",
	"SELECT CASE WHEN r < 0.5 THEN f(a) ELSE a END AS a, r, k FROM p",
	"WITH w AS (SELECT f(a) AS a, r, k FROM p) SELECT a, r, k FROM w",
	"WITH w AS MATERIALIZED (SELECT f(a) AS a, r, k FROM p) SELECT w.a, v.r, w.k FROM w JOIN w AS v ON v.k = w.k",
	"SELECT sum(f(a)) OVER (PARTITION BY k) AS a, r, k FROM p",
	"SELECT r AS a, r, k FROM (SELECT f(a) AS a, r, k FROM p) AS q",
}

// momentsFalse are parts whose set of rows also depends on a false function.
var momentsFalse = []string{
	"SELECT a, r, k FROM p WHERE f(a) > 6",
	"SELECT a, r, k FROM p WHERE f(r) > 1 OR f(k) > 3",
	"SELECT a, r, k FROM p WHERE f(5) > 4",
	"SELECT count(*) AS a, r, min(k) AS k FROM p GROUP BY r HAVING sum(f(a)) > 20",
	"SELECT sum(a) AS a, f(r) AS r, min(k) AS k FROM p GROUP BY f(r)",
	"SELECT count(DISTINCT f(a)) AS a, r, max(k) AS k FROM p GROUP BY r",
	"SELECT sum(a) FILTER (WHERE f(a) > 6) AS a, r, max(k) AS k FROM p GROUP BY r",
	"SELECT CASE WHEN f(a) > 6 THEN 1 ELSE 2 END AS a, r, k FROM p",
	"SELECT r AS a, r, k FROM p ORDER BY f(a), a, r, k LIMIT 7",
	"SELECT r AS a, r, k FROM p ORDER BY a, r, k OFFSET f(3)::int",
	"SELECT DISTINCT ON (f(k)) a, r, k FROM p ORDER BY f(k), a, r, k",
	"SELECT DISTINCT f(a) AS a, r, k FROM p",
	"SELECT f(a) AS a, r, k FROM p EXCEPT SELECT a, r, k FROM p",
	"SELECT f(a) AS a, r, k FROM p INTERSECT ALL SELECT f(a), r, k FROM p",
	"SELECT q.a, z.rate AS r, q.k FROM p AS q JOIN %s.u AS z ON f(z.id) = q.k",
	"SELECT q.a, q.r, q.k FROM p AS q LEFT JOIN %s.u AS z ON z.id = q.k AND f(z.rate) > 1",
	"SELECT a, r, k FROM p AS q WHERE EXISTS (SELECT 1 FROM %s.t AS z WHERE z.uid = q.k AND f(z.x) > q.a)",
	"SELECT a, r, k FROM p WHERE k IN (SELECT f(uid) FROM %s.t)",
	"SELECT a, r, k FROM p WHERE k NOT IN (SELECT uid FROM %s.t WHERE f(x) < 3)",
	"SELECT rank() OVER (ORDER BY f(a)) AS a, r, k FROM p",
	"SELECT a, r, k FROM (SELECT a, r, k, row_number() OVER (PARTITION BY r ORDER BY f(a), a, k) AS n FROM p) AS q WHERE n < 3",
	"SELECT a @+ r AS a, r, k FROM p",
	"SELECT a, r, k FROM p WHERE a @+ a > 9",
	"SELECT gsum(a) AS a, r, min(k) AS k FROM p GROUP BY r",
	"SELECT a + g AS a, r, k FROM p, gset(2) AS g",
	"SELECT a + gset(1) AS a, r, k FROM p",
	"SELECT a + (SELECT max(g) FROM gset(3) AS g) AS a, r, k FROM p",
	"SELECT a, r, k FROM %s.v_gi",
	"SELECT a, r, k FROM %s.v_gs",
	"WITH RECURSIVE w (a, r, k) AS (SELECT a, r, k FROM p WHERE k < 3 UNION SELECT f(a), r, k + 1 FROM w WHERE k < 5) SELECT a, r, k FROM w",
}

var (
	falseCall = regexp.MustCompile(`\bf\(`)
	falseFrom = regexp.MustCompile(`\bFROM p\b( AS \w+)?`)
	falseUse  = regexp.MustCompile(`\b(ti|ts|tw|gi|gs|gw|gsum|gset)\(|@\+|\.v_`)
)

// function returns the name of a false function.
func (g *generator) function() string {
	if g.falsely == "random" {
		return g.one("ti(", "ts(", "tw(")
	}
	return g.one("gi(", "gs(", "gw(")
}

// falsePart returns a part that calls a false function.
func (g *generator) falsePart(depth int) string {
	part := g.one(surelyFalse...)
	switch {
	case g.falsely == "random" && g.IntN(20) == 0:
		part = "SELECT a, r, k FROM %s.v_ti"
	case g.falsely == "moment" && g.IntN(2) == 0:
		part = g.one(momentsFalse...)
	}
	f, p := g.function(), "("+g.part(-1)+")"
	if depth > 0 {
		p = g.from(depth - 1)
	}
	part = falseFrom.ReplaceAllStringFunc(part, func(s string) string {
		if s == "FROM p" {
			s += " AS " + g.name("p")
		}
		return strings.Replace(s, "FROM p", "FROM "+p, 1)
	})
	return falseCall.ReplaceAllLiteralString(part, f)
}

// falseBody wraps false functions around the input of the query with the draws. Equal values stay equal.
func (g *generator) falseBody(body string) string {
	f := g.function()
	switch form := g.IntN(5); {
	case form == 0:
		return strings.ReplaceAll(body, "q.a", f+"q.a)")
	case form == 1:
		return strings.ReplaceAll(body, "sum(q.a)", f+"sum(q.a))")
	case form == 2 && g.falsely == "moment":
		return strings.ReplaceAll(body, "q.r", f+"q.r)")
	}
	return body
}

// falseQuery returns a query that calls a false function.
func (g *generator) falseQuery() string {
	g.falsely = g.one("random", "moment", "moment", "moment")
	for {
		if sql := g.query(); falseUse.MatchString(sql) {
			return sql
		}
	}
}

// rowsOfTables creates tables in a session and returns the rows of each, sorted, and an error of the server.
func rowsOfTables(t *testing.T, conn *pgx.Conn, tables []string) (all map[string][]string, err error) {
	t.Helper()
	all = map[string][]string{}
	for _, sql := range tables {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			return nil, err
		}
		name := strings.Fields(sql)[3]
		rows, err := conn.Query(t.Context(), "SELECT row::text FROM pg_temp."+name+" AS row", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return nil, err
		}
		if all[name], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, err
		}
		slices.Sort(all[name])
	}
	return all, nil
}

// falseOracle checks generated queries.
type falseOracle struct {
	player *replay.Player
	a, b   *pgx.Conn // the sessions in which the test creates the tables itself
	change *pgx.Conn
}

// judge compares the result of MakeTwice with the tables of two sessions of the test's own, created in the same two
// moments. It returns the kind of result, and an error text or "".
func (o *falseOracle) judge(t *testing.T, sql string) (what, problem string) {
	t.Helper()
	moment := func(n int) {
		if _, err := o.change.Exec(t.Context(), fmt.Sprintf("UPDATE moment SET n = %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	moment(0)
	worlds := worldsOf(sql)
	var first, second map[string][]string
	var errs [2]error
	var rests []string
	reason := replay.MakeTwice(t.Context(), o.player, worlds, func(tables, all []string) {
		rests = all
		first, errs[0] = rowsOfTables(t, o.a, tables)
		moment(1)
		second, errs[1] = rowsOfTables(t, o.b, tables)
	})
	defer func() {
		for _, conn := range []*pgx.Conn{o.a, o.b} {
			if _, err := conn.Exec(t.Context(), "DISCARD TEMP"); err != nil {
				t.Fatal(err)
			}
		}
	}()
	differ := strings.Contains(reason, "differ between two sessions")
	switch {
	case rests == nil && differ:
		return "", reason + ", though nothing changed"
	case rests == nil:
		return reason, ""
	case errs[0] != nil:
		return "", errs[0].Error()
	case errs[1] != nil:
		if reason == "" {
			return "", "the tables were accepted, and cannot be made: " + errs[1].Error()
		}
		return "tables cannot be made in the second moment", ""
	}
	equal := maps.EqualFunc(first, second, slices.Equal)
	switch {
	case equal && reason != "":
		return "", reason + ", and the tables are the same"
	case !equal && reason == "":
		return "", "the tables were accepted, and differ:\n" + cmp.Diff(first, second)
	case !equal && !differ:
		return "", reason + ", and the tables differ"
	case !equal:
		return "differ", ""
	}
	if strings.Contains(sql, "ti(") || strings.Contains(sql, "ts(") || strings.Contains(sql, "tw(") || strings.Contains(sql, "v_ti") {
		return "same", "" // the level with the draws may call a random function
	}
	whole := observe(t, o.b, worlds[0])
	if whole.Error != "" {
		return "same, and the query fails", ""
	}
	if diff := cmp.Diff(whole, observe(t, o.b, rests[0])); diff != "" {
		return "", "the tables are the same, and the results differ (-whole +parts):\n" + diff + rests[0]
	}
	return "same", ""
}

// TestOracleOfVolatility: of generated queries that call wrongly declared functions, the tables are used if they are
// the same in two sessions, and only then. DPWATCH_ORACLE_QUERIES is the number of queries, DPWATCH_ORACLE_SEED the
// seed. Random numbers of at least 22 bits in the tables of both worlds agree by chance in fewer than 1 of 10^13
// queries.
func TestOracleOfVolatility(t *testing.T) {
	longtest.Scheduled(t)
	t.Parallel()
	const shards = 4
	count, seed := oracleSize(t, longtest.Count(40, 100))
	var each [shards]map[string]int
	t.Run("shards", func(t *testing.T) {
		for i := range shards {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				each[i] = judgeQueries(t, count/shards, rand.New(rand.NewPCG(seed, uint64(2+i))))
			})
		}
	})
	found := map[string]int{}
	for _, counts := range each {
		for what, n := range counts {
			found[what] += n
		}
	}
	t.Logf("%d queries: %v", count/shards*shards, found)
	for _, what := range []string{"random: differ", "random: same", "moment: differ", "moment: same"} {
		if found[what] <= count/100 {
			t.Errorf("%s: %d of %d queries, want more for a test", what, found[what], count)
		}
	}
}

// judgeQueries checks queries in a database of its own and returns the number of each kind of result.
func judgeQueries(t *testing.T, count int, r *rand.Rand) map[string]int {
	t.Helper()
	dsn := oracleDatabase(t)
	pgtest.Exec(t, dsn, falseSchema)
	o := falseOracle{player(t, options(dsn)), pgtest.Connect(t, dsn), pgtest.Connect(t, dsn), pgtest.Connect(t, dsn)}
	g := &generator{Rand: r}
	found := map[string]int{}
	for i := range count {
		sql := g.falseQuery()
		what, problem := o.judge(t, sql)
		if problem != "" {
			t.Errorf("query %d (%s): %s\n%s", i, g.falsely, problem, worldsOf(sql)[0])
			continue
		}
		found[g.falsely+": "+what]++
	}
	return found
}

// TestFalseVolatility: a part computed with a function that is wrongly declared IMMUTABLE or STABLE is never used: the
// tables of two sessions differ with probability 1, except for ties of random numbers of 52 bits.
func TestFalseVolatility(t *testing.T) {
	t.Parallel()
	dsn := oracleDatabase(t)
	p := player(t, options(dsn))
	n := 0
	for _, f := range []string{"fi", "fs"} {
		for _, sql := range []string{
			"SELECT sum(f(x)) + draw(1) FROM %s.t",
			"SELECT max(f(x)) + draw(1) FROM %s.t WHERE x > 3",
			"SELECT uid, avg(f(x)) + draw(1) FROM %s.t GROUP BY uid",
			"WITH a AS (SELECT f(x) AS x, uid FROM %s.t) SELECT count(*) FROM a WHERE draw(x) < 0.5",
			"WITH a AS MATERIALIZED (SELECT array_agg(f(x) ORDER BY id) AS x, uid FROM %s.t GROUP BY uid) SELECT uid, x, draw(1) FROM a",
			"SELECT * FROM (SELECT f(sum(x)) AS x FROM %s.t) AS a, (SELECT draw(2) AS d) AS b",
			"SELECT draw(1) + (SELECT sum(f(x)) FROM %s.t)",
			"SELECT draw(1) + (SELECT f(3) + count(*) FROM %s.t)",
			"SELECT sum(x) + f(1) + draw(1) FROM %s.t",
		} {
			reason := replay.MakeTwice(t.Context(), p, worldsOf(strings.ReplaceAll(sql, "f(", f+"(")), nil)
			switch {
			case reason == "", !strings.Contains(reason, "differ between two sessions") && !strings.Contains(reason, "a table is deterministic"):
				t.Errorf("%s, %s: %q", f, sql, reason)
			case strings.Contains(reason, "differ between"):
				n++
			}
		}
	}
	if n < 12 {
		t.Errorf("%d of 18 were made twice, want most", n)
	}
	if reason := replay.MakeTwice(t.Context(), p, worldsOf("SELECT uid, sum(x), avg(x) + draw(1) FROM %s.t GROUP BY uid"), nil); reason != "" {
		t.Errorf("a query without such a function: %q", reason)
	}
}
