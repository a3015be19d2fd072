package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// hoistShadow returns a database with the tables t (500 rows) and u in d0 and d1, and functions that draw noise.
func hoistShadow(t *testing.T, more ...string) string {
	t.Helper()
	dsn := pgtest.Database(t)
	script := []string{
		`CREATE FUNCTION endless() RETURNS SETOF text LANGUAGE sql IMMUTABLE AS 'SELECT md5(g::text) FROM generate_series(1, 100000000) g'`,
		// The catalog declares constant() as volatile as noise(), and it always returns 0: results with it can be
		// compared exactly.
		`CREATE FUNCTION constant() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT 0::float8'`,
		`CREATE FUNCTION noise() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())'`,
		// A function that is wrongly declared immutable and that the planner does not evaluate in advance.
		`CREATE FUNCTION false_immutable(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x + random() * 1000; END'`,
		`CREATE FUNCTION noisy_final(s float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT s + noise()'`,
		`CREATE AGGREGATE noisy_sum(float8) (SFUNC = float8pl, STYPE = float8, INITCOND = 0, FINALFUNC = noisy_final)`,
	}
	for i, schema := range []string{"d0", "d1"} {
		script = append(script, strings.NewReplacer("%s", schema, "%n", fmt.Sprint(500-i)).Replace(`CREATE SCHEMA %s;
			CREATE TABLE %s.u (id int PRIMARY KEY, grp text COLLATE "C", cap numeric(12, 3));
			INSERT INTO %s.u SELECT i, chr(97 + i % 7), i * 1.5 FROM generate_series(0, 49) i;
			CREATE TABLE %s.t (id int PRIMARY KEY, uid int, x float8, at timestamptz, note varchar(10));
			INSERT INTO %s.t SELECT i, i % 50, i % 97, '2026-01-01'::timestamptz + i * interval '1 hour', CASE WHEN i % 3 = 0 THEN NULL ELSE 'n' || i % 5 END
				FROM generate_series(1, %n) i;
			CREATE VIEW %s.calm AS SELECT uid, sum(x) AS s FROM %s.t GROUP BY uid;
			CREATE VIEW %s.wild AS SELECT uid, sum(x) + random() AS s FROM %s.t GROUP BY uid;
			CREATE VIEW %s.over_wild AS SELECT max(s) AS s FROM %s.wild;
			ANALYZE`))
	}
	pgtest.Exec(t, dsn, append(script, more...)...)
	return dsn
}

// hoistRun replays n rounds with hoisting.
func hoistRun(t *testing.T, dsn string, s replay.Statement, sql string, n int) ([]replay.Round, hoisting.Report) {
	t.Helper()
	s.Hoist = replay.NewHoisting(nil)
	got, err := rounds(t, player(t, options(dsn)), s, sql, n)
	if err != nil {
		t.Fatal(err)
	}
	return got, s.Hoist.Report()
}

// chain is a query in the style of a rewriter: positional CTE columns, clipping per person, a clamp, and noise in the
// last step.
const chain = `WITH j (id, grp, cap, tid, uid, x, at, note) AS (SELECT * FROM %s.u AS l JOIN %s.t AS r ON r.uid = l.id),
	m (unit, grp, x) AS (SELECT md5(id::text), grp, x FROM j),
	n (unit, s) AS (SELECT unit, sqrt(sum(x * x)) FROM m GROUP BY unit),
	c (grp, x) AS (SELECT m.grp, m.x / greatest(1, n.s / 100) FROM m LEFT JOIN n ON n.unit = m.unit),
	s (grp, total) AS (SELECT grp, sum(x) FROM c GROUP BY grp),
	z (grp, total) AS (SELECT grp, least(1e6, greatest(0, coalesce(total, 0) + 3 * noise())) FROM s)
	SELECT grp, total FROM z ORDER BY grp`

// ranks chooses random rows of a unit as a rewriter does: within a unit n is a random order of 1, 2, ...
const ranks = `WITH s (tid, g, u) AS (SELECT max(id), note, nullif(uid % 5, 3) FROM %s.t GROUP BY id % 70, 2, 3),
	a (x, tid, g, u) AS (SELECT random(), tid, u, u FROM s),
	j (x, tid, g, u, rx, rtid, rg, ru) AS (SELECT * FROM a AS l JOIN a AS r ON l.x <= r.x AND l.u = r.u),
	p (v, h, w) AS (SELECT x, tid, u FROM j),
	c (n, h, g) AS (SELECT count(v), h, w FROM p GROUP BY h, w)`

// oracleQueries call noise(), which a test replaces; rows have a fixed order.
var oracleQueries = map[string]string{
	"chain":                      chain,
	"sum":                        `SELECT sum(x) + noise() FROM %s.t`,
	"groups":                     `SELECT note, count(*) + noise() AS n, avg(x), max(at) FROM %s.t WHERE x > 3 GROUP BY note ORDER BY note NULLS FIRST`,
	"group by position":          `SELECT noise() + count(*), upper(note) FROM %s.t GROUP BY 2 ORDER BY 2 NULLS LAST, 1`,
	"having":                     `SELECT grp FROM %s.u GROUP BY grp HAVING count(*) + noise() > 7 ORDER BY 1`,
	"order by unselected, limit": `SELECT grp, count(*) + noise() FROM %s.u GROUP BY grp ORDER BY sum(cap) DESC LIMIT 3`,
	"numeric scale":              `WITH a AS (SELECT grp, sum(cap) AS s, avg(cap) AS m, min(cap) AS c FROM %s.u GROUP BY grp) SELECT a.*, noise() FROM a ORDER BY 1`,
	"literals and collation":     `WITH a AS (SELECT DISTINCT 'lit' AS l, grp, NULL AS e FROM %s.u) SELECT l, grp, e, grp < 'd', noise() FROM a ORDER BY grp`,
	"typmods":                    `WITH a AS (SELECT DISTINCT note, cap FROM %s.t JOIN %s.u ON u.id = t.uid) SELECT note, cap, noise() FROM a ORDER BY 1, 2`,
	"public groups":              `WITH v(g) AS (SELECT * FROM (VALUES ('a'), ('b'), ('zz')) AS v(g)), a AS (SELECT grp, count(*) AS n FROM %s.u GROUP BY grp) SELECT v.g, coalesce(n, 0) + noise() FROM v LEFT JOIN a ON a.grp = v.g ORDER BY 1`,
	"threshold":                  `WITH a AS (SELECT grp, count(*) + noise() AS n FROM %s.u GROUP BY grp), k AS (SELECT grp FROM a WHERE n > 6.5) SELECT u.grp, sum(cap) FROM %s.u JOIN k ON k.grp = u.grp GROUP BY u.grp ORDER BY 1`,
	"sub-queries":                `SELECT q.grp, q.s + noise(), (SELECT max(x) FROM %s.t) FROM (SELECT grp, sum(cap) AS s FROM %s.u GROUP BY grp) AS q WHERE q.grp IN (SELECT lower(chr(97 + uid)) FROM %s.t) OR EXISTS (SELECT 1 FROM %s.t WHERE x > 96) ORDER BY 1`,
	"correlated":                 `SELECT id, noise() + (SELECT sum(x) FROM %s.t WHERE uid = u.id) FROM %s.u AS u WHERE id < 5 ORDER BY 1`,
	"lateral":                    `SELECT u.id, q.m + noise() FROM %s.u AS u, LATERAL (SELECT max(x) AS m FROM %s.t WHERE t.uid = u.id) AS q JOIN (SELECT grp, sum(cap) AS s FROM %s.u GROUP BY grp) AS g ON true WHERE noise() < 100 ORDER BY 1, g.s LIMIT 5`,
	"recursive":                  `WITH RECURSIVE r(n, s) AS (SELECT id, cap::numeric FROM %s.u WHERE id = 0 UNION ALL SELECT u.id, r.s + u.cap FROM r JOIN %s.u ON u.id = r.n + 1) SELECT max(s) + noise() FROM r`,
	"whole row":                  `WITH a AS (SELECT grp, count(*) AS n FROM %s.u GROUP BY grp) SELECT a, row_to_json(a), noise() FROM a ORDER BY grp`,
	"window":                     `WITH a AS (SELECT id, row_number() OVER (PARTITION BY grp ORDER BY cap) AS n FROM %s.u) SELECT id, n + noise() FROM a ORDER BY 1`,
	"set returning":              `WITH a AS (SELECT generate_series(1, 2) AS g, max(cap) AS m FROM %s.u) SELECT g, m + noise() FROM a ORDER BY 1`,
	"union":                      `SELECT 'a', sum(x) + noise() FROM %s.t UNION ALL SELECT 'b', sum(cap) + noise() FROM %s.u ORDER BY 1`,
	"over a calm view":           `SELECT max(s) + noise() FROM %s.calm`,
	"case":                       `SELECT CASE WHEN count(*) > 0 THEN sum(x) / count(*) + noise() ELSE 0 END FROM %s.t WHERE uid = 77`,
	"ranks":                      ranks + ` SELECT g, count(*), sum(n), min(n), max(n) FROM c GROUP BY g ORDER BY 1`,
	"ranks of groups":            ranks + ` SELECT count(*), sum(n) FROM c WHERE noise() < 1`,
	"shared CTE":                 `WITH a AS (SELECT grp, sum(cap) AS s FROM %s.u GROUP BY grp), b AS (SELECT sum(s) AS s FROM a), c AS (SELECT grp, s + noise() AS n FROM a) SELECT grp, n, b.s FROM c, b ORDER BY 1`,
}

// TestHoistedGivesTheSame: with noise() always 0, every trial of a world gives the same rows, hoisted or not.
func TestHoistedGivesTheSame(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	for name, sql := range oracleQueries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sql := strings.ReplaceAll(sql, "noise()", "constant()")
			s := replay.Statement{Hoist: replay.ForceHoisting()}
			got, err := rounds(t, player(t, options(dsn)), s, sql, 110)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Hoist.Report(); r.HoistedRounds == 0 {
				t.Errorf("not hoisted: %+v", r)
			}
			for i, p := range got {
				for world, diff := range []string{cmp.Diff(got[0][0], p[0]), cmp.Diff(got[0][1], p[1])} {
					if diff != "" {
						t.Fatalf("round %d, D%d (-unmodified +hoisted)\n%s", i, world, diff)
					}
				}
			}
			if got[0][0].Failed() || len(got[0][0].Rows) == 0 {
				t.Errorf("the query gives %+v", got[0][0])
			}
		})
	}
}

// TestHoistedKeepsTheLaw runs 2,000 trials each, hoisted and not, of the chain, a thresholded count, and randomly
// chosen rows. The hoisted runs are compared with unmodified ones independently of the comparison in package replay;
// the test's own false-alarm rate is below 1e-6.
func TestHoistedKeepsTheLaw(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	for name, tc := range map[string]struct {
		sql   string
		shift float64 // in units of about half a standard deviation
	}{
		"chain":     {oracleQueries["chain"], 1.5},
		"sum":       {oracleQueries["sum"], 0.5},
		"threshold": {oracleQueries["threshold"], 100},
		"ranks":     {ranks + ` SELECT g, sum(h) FROM c WHERE n <= 2 GROUP BY g ORDER BY 1`, 100},
	} {
		if !longtest.Enabled() && name != "chain" {
			continue // make test-long runs all
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sql := tc.sql
			plain, err := rounds(t, player(t, options(dsn)), replay.Statement{}, sql, 2000)
			if err != nil {
				t.Fatal(err)
			}
			s := replay.Statement{Hoist: replay.ForceHoisting()}
			hoisted, err := rounds(t, player(t, options(dsn)), s, sql, 2100)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Hoist.Report(); r.HoistedRounds < 1900 {
				t.Fatalf("not hoisted: %+v", r)
			}
			if what := differ(t, plain, hoisted[100:2100]); what != "" {
				t.Errorf("hoisted trials differ in %s", what)
			}
			// The comparison detects a shift.
			for i := range plain {
				for _, row := range plain[i][0].Rows {
					if last := &row[len(row)-1]; last.Kind == outcome.Number {
						last.Num += tc.shift
					}
				}
			}
			if what := differ(t, plain, hoisted[100:2100]); what == "" {
				t.Error("the comparison does not see a shift")
			}
		})
	}
}

// differ compares two samples of trials, world by world, and returns in which one they differ, or "". Samples of one
// law differ with a probability of at most 10^-6.
func differ(t *testing.T, plain, hoisted []replay.Round) string {
	t.Helper()
	for world := range plain[0] {
		a, err := analysis.New(analysis.Claim{}, analysis.Options{
			Confidence: 1 - 1e-6/float64(len(plain[0])), MaxTrials: len(plain), Deterministic: analysis.DeterministicIgnore,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range plain {
			if a.Add(plain[i][world], hoisted[i][world]); a.DetectedAt() > 0 {
				return fmt.Sprintf("D%d after %d trials", world, i+1)
			}
		}
	}
	return ""
}

func TestNotHoisted(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	for name, tc := range map[string]struct{ sql, reason string }{
		"deterministic":              {`SELECT sum(x) FROM %s.t`, "it is deterministic"},
		"all chance":                 {`SELECT sum(x + noise()) FROM %s.t`, "a table is deterministic"},
		"a volatile aggregate":       {`SELECT noisy_sum(x) FROM %s.t`, "a table is deterministic"},
		"a view over chance":         {`WITH a AS (SELECT max(s) AS s FROM %s.over_wild) SELECT s FROM a`, "a table is deterministic"},
		"a join under chance":        {`SELECT count(*) + noise() FROM (SELECT t.x, u.cap FROM %s.t JOIN %s.u ON u.id = t.uid) AS q WHERE random() < q.cap / 80`, "in another way: "},
		"columns that are one":       {`SELECT q.a + noise(), q.b + noise() FROM (SELECT x AS a, x AS b FROM %s.t WHERE x > 3) AS q ORDER BY 1`, "in another way: "},
		"an error in a hoisted part": {`WITH a AS (SELECT 1 / (count(*) - 500) AS s FROM %s.t) SELECT s + noise() FROM a`, "22012"},
		"an anonymous record":        {`WITH a AS (SELECT ROW(1, max(x)) AS r FROM %s.t) SELECT r, noise() FROM a`, "42P16"},
		"duplicate names":            {`WITH a AS (SELECT max(x), max(id) FROM %s.t) SELECT a.*, noise() FROM a`, "42701"},
		"no gain":                    {`WITH a AS (SELECT t.id FROM %s.t, %s.u) SELECT count(noise()) FROM a WHERE id = 7`, "not 3 times as fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := replay.Statement{Hoist: replay.TimedHoisting(func(bool) time.Duration { return time.Millisecond })} // it gains nothing
			got, err := rounds(t, player(t, options(dsn)), s, tc.sql, 150)
			if err != nil {
				t.Fatal(err)
			}
			r := s.Hoist.Report()
			if r.Hoisted || r.HoistedRounds > 0 || !strings.Contains(r.Reason, tc.reason) {
				t.Errorf("%+v, want the reason %q", r, tc.reason)
			}
			if len(got) != 150 || r.UnmodifiedRounds != 150 {
				t.Errorf("%d rounds, %+v", len(got), r)
			}
		})
	}
}

// TestErrorInOneWorldStays: a part that fails on D1 alone is an outcome there, as without hoisting.
func TestErrorInOneWorldStays(t *testing.T) {
	t.Parallel()
	got, _ := hoistRun(t, hoistShadow(t), replay.Statement{}, `WITH a AS (SELECT 1 / (count(*) - 499) AS s FROM %s.t) SELECT s + noise() FROM a`, 150)
	for i, p := range got {
		if p[0].Failed() || p[1].SQLState != "22012" {
			t.Fatalf("round %d: %+v", i, p)
		}
	}
}

func TestHoistedParameters(t *testing.T) {
	t.Parallel()
	s := replay.Statement{Params: []capture.Param{{Value: []byte("3")}, {Value: []byte("100")}, {OID: 25, Null: true}}, Hoist: replay.ForceHoisting()}
	got, err := rounds(t, player(t, options(hoistShadow(t))), s,
		`WITH a AS (SELECT sum(x) AS s FROM %s.t WHERE uid < $2) SELECT s + constant(), $1::int, coalesce($3, 'none') FROM a`, 120)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Hoist.Report(); r.HoistedRounds == 0 {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(got[0], got[119]); diff != "" || len(got[0][0].Rows) != 1 {
		t.Errorf("(-unmodified +hoisted)\n%s", diff)
	}
}

// TestWithoutTheRight: without the TEMPORARY privilege the reason names the remedy, and replays continue.
func TestWithoutTheRight(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	admin := pgtest.Connect(t, dsn)
	var database string
	if err := admin.QueryRow(t.Context(), "SELECT current_database()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	role := "reader_" + database
	script := `CREATE ROLE "%r" LOGIN PASSWORD 'x'; REVOKE TEMPORARY ON DATABASE "%d" FROM PUBLIC; GRANT USAGE ON SCHEMA d0, d1 TO "%r";
		GRANT SELECT ON ALL TABLES IN SCHEMA d0, d1 TO "%r"`
	if _, err := admin.Exec(t.Context(), strings.NewReplacer("%r", role, "%d", database).Replace(script)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), `DROP OWNED BY "`+role+`"; DROP ROLE "`+role+`"`); err != nil {
			t.Error(err)
		}
	})
	_, r := hoistRun(t, dsn+"&user="+role+"&password=x", replay.Statement{}, chain, 130)
	if r.Hoisted || !strings.Contains(r.Reason, "GRANT TEMPORARY ON DATABASE") || !strings.Contains(r.Reason, database) {
		t.Errorf("%+v", r)
	}
}

// TestDisagreement: a random function that is declared immutable makes hoisted trials all alike; the tables of two
// sessions differ before a hoisted trial counts.
func TestDisagreement(t *testing.T) {
	t.Parallel()
	got, r := hoistRun(t, hoistShadow(t), replay.Statement{}, `WITH a AS (SELECT sum(false_immutable(x)) AS s FROM %s.t) SELECT s + noise() FROM a`, 200)
	if r.Hoisted || r.HoistedRounds != 0 || !strings.Contains(r.Reason, "the rows of a part on D0 differ between two sessions") {
		t.Errorf("%+v", r)
	}
	values := map[float64]bool{}
	for _, p := range got {
		values[p[0].Rows[0][0].Num] = true
	}
	if len(values) != 200 {
		t.Errorf("%d different results of 200", len(values))
	}
}

// TestCountsAsVolatile: a function configured as a DP function, and one of a later version of the server, of which
// nothing is known, are volatile, whatever the catalog declares.
func TestCountsAsVolatile(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t, `CREATE FUNCTION pg_catalog.later(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x + random() * 1000; END'`)
	for _, name := range []string{"false_immutable", "later"} {
		s := replay.Statement{Hoist: replay.NewHoisting([]string{"false_immutable"})}
		_, err := rounds(t, player(t, options(dsn)), s, `WITH a AS (SELECT sum(`+name+`(x)) AS s FROM %s.t) SELECT s + noise() FROM a`, 150)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Hoist.Report(); r.Hoisted || !strings.Contains(r.Reason, "a table is deterministic") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestHoistingLasts: a second run of the audit reuses the decision of the first one, and no table is left.
func TestHoistingLasts(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	p := player(t, options(dsn))
	s := replay.Statement{Hoist: replay.ForceHoisting()}
	for range 3 {
		got, err := rounds(t, p, s, chain, 300)
		if err != nil || len(got) != 300 {
			t.Fatalf("%d rounds, %v", len(got), err)
		}
		if slices.ContainsFunc(got, func(p replay.Round) bool { return p[0].Failed() || p[1].Failed() }) {
			t.Fatal("a trial failed")
		}
	}
	r := s.Hoist.Report()
	if !r.Hoisted || r.UnmodifiedRounds < 100 || r.UnmodifiedRounds+r.HoistedRounds != 900 || r.Pieces != 2 || r.SpeedUp <= 0 {
		t.Errorf("%+v", r)
	}
	conn := pgtest.Connect(t, dsn)
	var left int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_class WHERE relname LIKE 'dpwatch\\_hoist%' AND relpersistence <> 't'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tables that are not temporary, %v", left, err)
	}
}

// TestHoistedWorlds: tables are created for every neighbour, and each world is compared.
func TestHoistedWorlds(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t, `CREATE SCHEMA d2; CREATE TABLE d2.t AS SELECT * FROM d0.t WHERE id > 100`)
	worlds := make([]string, 3)
	for i := range worlds {
		worlds[i] = fmt.Sprintf("SELECT count(*) + constant(), sum(x) FROM d%d.t", i)
	}
	s := replay.Statement{Worlds: worlds, Hoist: replay.ForceHoisting()}
	run, err := player(t, options(dsn)).Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	total := 0
	for batch, err := range run.Stream(t.Context(), 50) {
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range batch.All() {
			for world, want := range []float64{500, 499, 400} {
				if got := round[world].Rows[0][0].Num; got != want {
					t.Fatalf("round %d, world %d: %v rows, want %v", total, world, got, want)
				}
			}
			total++
		}
		if total >= 200 {
			break
		}
	}
	if r := s.Hoist.Report(); !r.Hoisted || r.Pieces != 3 || r.HoistedRounds < 50 {
		t.Errorf("%+v", r)
	}
}
