package main

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// stored returns a configuration whose source has noise in materialised views, drawn once for each copy: counts with
// discrete Laplace noise (public.counts) and answers with randomised response (public.answers). Both are honest at the
// given epsilon; a unit is replaced: its bit moves from 0 to 1.
func stored(t *testing.T, epsilon float64) (path, shadow string) {
	t.Helper()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	pgtest.Exec(t, source, fmt.Sprintf(`CREATE TABLE people (id int PRIMARY KEY, bit int NOT NULL);
		INSERT INTO people SELECT i, CASE WHEN i > 1 THEN i %% 2 ELSE 0 END FROM generate_series(1, 9) i;
		CREATE MATERIALIZED VIEW counts AS SELECT sum(bit) + floor(-ln(1 - random()) / %[1]g) - floor(-ln(1 - random()) / %[1]g) AS n FROM people;
		CREATE MATERIALIZED VIEW answers AS SELECT id, CASE WHEN random() < 1 / (1 + exp(-%[1]g)) THEN bit ELSE 1 - bit END AS answer FROM people`, epsilon))
	return file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people, public.counts, public.answers], unit: {table: public.people, key: id}}
claims: {default: {epsilon: 1}}
neighbours: {source: %q, relation: replace, measures: [{column: public.people.bit, low: 0, high: 1}], choose: [{rule: smallest, columns: public.people.id}]}
`, upstreamOf(t, source), shadow, source)), shadow
}

func TestAuditRecreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql string
		epsilon   float64
		code      int
	}{
		{"counts, honest", "SELECT n FROM counts", 1, exitDone},
		{"counts, half of the noise", "SELECT n FROM counts", 2, exitViolation},
		{"answers, honest", "SELECT answer FROM answers WHERE id = 1", 1, exitDone},
		{"answers, half", "SELECT answer FROM answers WHERE id = 1", 2, exitViolation},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, _ := stored(t, c.epsilon)
			r := call(t, "", "audit", "--config", path, "--recreate", "--confidence", "0.95", "--max-trials", "1000", "--sql", c.sql)
			t.Log(r.stdout, r.stderr)
			r.want(t, c.code)
		})
	}
	longtest.Count(1, 1)
}
