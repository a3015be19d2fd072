package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
)

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
		`CREATE VIEW d1.wild_late AS SELECT sum(x) + noise() AS s FROM d1.t WHERE id < 400`)
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

		{"SELECT count(*) + noise() FROM %s.t", none, none},
		{"SELECT count(*) + noise() FROM %s.t WHERE id > 400", none, none},
		{"SELECT frozen(count(*)) FROM %s.t", none, none},
		{"SELECT noisy_sum(x) FROM %s.t WHERE id > 400", none, none},
		{"SELECT count(*) + noise() FROM %s.t WHERE id NOT IN (SELECT id FROM %s.u)", none, none},
		{"SELECT s FROM %s.wild", none, none},
		{"SELECT (SELECT count(*) + noise() FROM %s.u b WHERE b.id = a.uid) FROM %s.t a", none, none},
		{"SELECT count(*) + noise() FROM %s.t TABLESAMPLE bernoulli (50) WHERE id < 400", none, none},
	} {
		run, err := p.Start(replay.Statement{Worlds: worldsOf(c.sql)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		reads, err := run.Reads(t.Context())
		run.Close()
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.sql, err)
		case c.why == none && reads.LeftOut != nil:
			t.Errorf("%s: %+v, want that the person takes part", c.sql, reads.LeftOut)
		case c.why != none && (len(reads.LeftOut) != 1 || !strings.HasPrefix(reads.LeftOut[0].Why, c.why) || reads.LeftOut[0].Reader != c.reader):
			t.Errorf("%s: %+v, want %q, %q", c.sql, reads.LeftOut, c.why, c.reader)
		}
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
