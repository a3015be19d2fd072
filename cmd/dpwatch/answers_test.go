package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// answersOf are what an analyst sees besides numbers and words, in queries over people p (id, g, x): 200 of them, and
// number 999 on D0 alone. lap is noise on a grid, and fixed has two digits after the point.
const answersOf = `
	CREATE FUNCTION naive(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT b * ln((1 - random()) / (1 - random()))';
	CREATE FUNCTION lap(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT round(naive(b) * 1024) / 1024';
	CREATE FUNCTION fixed(b float8) RETURNS numeric LANGUAGE sql VOLATILE AS 'SELECT round(naive(b)::numeric, 2)';
	CREATE FUNCTION fails(n bigint) RETURNS float8 LANGUAGE plpgsql VOLATILE
		AS 'BEGIN IF random() < 0.5 THEN RAISE EXCEPTION ''no noise for %'', n; END IF; RETURN n + lap(1); END';
	CREATE FUNCTION fails_alike(n bigint) RETURNS float8 LANGUAGE plpgsql VOLATILE
		AS 'BEGIN IF random() < 0.5 THEN RAISE EXCEPTION ''no noise, %'', random(); END IF; RETURN n + lap(1); END';
	CREATE FUNCTION fails_near(x float8) RETURNS float8 LANGUAGE plpgsql VOLATILE
		AS 'BEGIN IF random() < 0.5 THEN RAISE EXCEPTION ''no noise can hide %'', x; END IF; RETURN lap(1); END';
	CREATE FUNCTION notes(n bigint) RETURNS float8 LANGUAGE plpgsql VOLATILE
		AS 'BEGIN RAISE NOTICE ''clipped % rows'', n; RETURN n + lap(1); END';
	CREATE FUNCTION list(n bigint) RETURNS float8[] LANGUAGE sql VOLATILE
		AS 'SELECT array_agg(lap(1)) FROM generate_series(1, (n % 2 + 1 + 2 * floor(random() * 3))::int)';
	CREATE FUNCTION parts(OUT g int, OUT z float8, OUT all_z float8) RETURNS SETOF record LANGUAGE sql VOLATILE
		AS 'WITH e AS MATERIALIZED (SELECT i, lap(1) AS z FROM generate_series(0, 39) i) SELECT i, z, sum(z) OVER () / 40 FROM e';
	CREATE SCHEMA d0; CREATE TABLE d0.p (id int, g int, x numeric);
	INSERT INTO d0.p SELECT i, i % 40, 0.25 FROM generate_series(1, 200) i; INSERT INTO d0.p VALUES (999, 7, 0.500);
	CREATE SCHEMA d1; CREATE TABLE d1.p AS SELECT * FROM d0.p WHERE id <> 999; CREATE TABLE p AS TABLE d0.p`

const roundedAtRandom = "round(fixed(1), (9 * random())::int) AS a, round(fixed(1), (9 * random())::int) AS b, round(fixed(1), (9 * random())::int) AS c"

const neverRepeat = "the first letter of texts that never repeat"

// answers are wrong and right queries of the same kinds.
var answers = []struct{ what, leaks, right string }{
	{
		"digits of a sum", "SELECT sum(x) + fixed(1) AS s FROM p",
		"SELECT round(sum(x) + fixed(1), 2) AS s FROM p",
	},
	{
		"digits of one of four sums", "SELECT " + roundedAtRandom + ", sum(x) + fixed(1) AS s FROM p",
		"SELECT " + roundedAtRandom + ", round(sum(x) + fixed(1), 2) AS s FROM p",
	},
	{
		"a message", "SELECT fails(count(*)) AS n FROM p",
		"SELECT fails_alike(count(*)) AS n FROM p",
	},
	{
		"a value in a message", "SELECT fails_near(count(*) + lap(0.2)) AS n FROM p",
		"SELECT fails_near(count(*) + lap(1)) AS n FROM p",
	},
	{
		"a notice", "SELECT notes(count(*)) AS n FROM p",
		"SELECT notes(17) + 0 * count(*) AS n FROM p",
	},
	{
		"a key of a document", `SELECT jsonb_build_object('n', count(*) + lap(1)) || CASE count(*) FILTER (WHERE id = 999) WHEN 0 THEN '{}' ELSE '{"vip": true}'::jsonb END AS d FROM p`,
		"SELECT jsonb_build_object('n', count(*) + lap(1), 'vip', true) AS d FROM p",
	},
	{
		"the length of an array", "SELECT list(count(*)) AS a FROM p",
		"SELECT list(0 * count(*)) AS a FROM p",
	},
	{
		"an element of an array", "SELECT array_append(list(0), count(*) + lap(0.2)) AS a FROM p",
		"SELECT array_append(list(0), count(*) + lap(1)) AS a FROM p",
	},
	{
		neverRepeat, "SELECT CASE count(*) % 2 WHEN 0 THEN 'a' ELSE 'b' END || md5(random()::text) AS w FROM p",
		"SELECT 'a' || md5((random() + 0 * count(*))::text) AS w FROM p",
	},
	{
		"one bit of a hash", "SELECT overlay(md5(random()::text) placing CASE count(*) % 2 WHEN 0 THEN '0' ELSE '8' END FROM 11) AS w FROM p",
		"SELECT md5((random() + 0 * count(*))::text) AS w FROM p",
	},
	{
		"numbers in a wrapper", "SELECT 'np.float64(' || 5 * count(*) + lap(1) || ')' AS n FROM p",
		"SELECT 'np.float64(' || count(*) + lap(1) || ')' AS n FROM p",
	},
	{
		"a total", "SELECT g, c + z - all_z AS n FROM parts() JOIN (SELECT g, count(*) AS c FROM p GROUP BY g) AS q USING (g)",
		"SELECT g, c + z AS n FROM parts() JOIN (SELECT g, count(*) AS c FROM p GROUP BY g) AS q USING (g)",
	},
	{
		"the largest group", "SELECT g, c + z - max(c + z) OVER () + max(c) OVER () AS n FROM parts() JOIN (SELECT g, count(*) AS c FROM p GROUP BY g) AS q USING (g)",
		"",
	},
	{
		"an error in 1 of 8 trials", "SELECT 1 / (1 - (random() < 0.125)::int * (count(*) FILTER (WHERE id = 999))::int) + lap(1) AS n FROM p",
		"SELECT 1 / (1 - (random() < 0.125)::int) + lap(1) + count(*) AS n FROM p",
	},
	{
		"the order of rows", "SELECT g, count(*) + lap(1) AS n FROM p WHERE g IN (3, 7) GROUP BY g ORDER BY count(*) DESC, g",
		"SELECT g, n FROM (SELECT g, count(*) + lap(1) AS n FROM p WHERE g IN (3, 7) GROUP BY g OFFSET 0) AS q ORDER BY n DESC",
	},
}

// TestAnswers: what an analyst sees besides numbers and words is found by dpwatch run on queries of clients of both
// protocols, where it gives the person away, and their right counterparts have no violation. The rate of false alarms
// is 1e-6 for all of them together.
func TestAnswers(t *testing.T) {
	longtest.Scheduled(t)
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, answersOf)
	at := pgtest.Connect(t, dsn).Config()
	s := &sidecar{direct: dsn}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, twin: none}
privacy: {protected: [public.p]}
claims: {safe_functions: [lap, fixed, fails, fails_alike, fails_near, notes, list, parts], trust: [comment]}
audit: {measure_trials: 0, max_trials: 1000, confidence: 0.999999, error_rate: family, share: 1, watch_share: 0, sequences: false}
ledger: {dsn: memory}
`, at.Host, at.Port, dsn)))
	client := s.connect(t)
	want := map[float64]string{} // by the claim
	for i, a := range answers {
		for j, sql := range []string{a.leaks, a.right} {
			if sql == "" {
				continue
			}
			claim := 1 + float64(2*i+j+1)/1000
			want[claim] = "violation: " + a.what
			switch {
			case j == 1 && a.what == neverRepeat:
				want[claim] = "inconclusive: " + a.what // little of such texts is read
			case j == 1:
				want[claim] = "no_evidence: " + a.what
			}
			for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
				if _, err := client.Exec(t.Context(), fmt.Sprintf("%s /*dp_epsilon='%g'*/", sql, claim), mode); err != nil && !strings.Contains(err.Error(), "no noise") && !strings.Contains(err.Error(), "division by zero") {
					t.Fatal(err)
				}
			}
		}
	}
	for _, a := range s.decided(t, len(want)).Audit.Audits {
		if is := a.Report.Verdict + ": "; !strings.HasPrefix(want[a.Report.Claimed.Epsilon], is) {
			t.Errorf("%s (%s), want %s", is, a.Report.Reason, want[a.Report.Claimed.Epsilon])
		}
		delete(want, a.Report.Claimed.Epsilon)
	}
	if len(want) > 0 {
		t.Errorf("not audited: %v", want)
	}
}
