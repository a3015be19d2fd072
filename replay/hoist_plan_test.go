package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
)

// TestPlansDecide: a query is hoisted only if PostgreSQL evaluates its volatile functions in the same places, and as
// often, in the random part. In each of these, the syntax would allow a table that changes the law of the answer.
func TestPlansDecide(t *testing.T) {
	t.Parallel()
	dsn := oracleDatabase(t)
	const differs = "in another way: "
	for name, tc := range map[string]struct{ sql, reason string }{
		// One draw for all groups, because the planner sees constants; over a table it would be one for each.
		"a sub-query over a constant":          {`SELECT k, c + (SELECT draw(q.b)) AS n FROM (SELECT uid AS k, count(*) AS c, 1.0::float8 AS b FROM %s.t GROUP BY uid HAVING count(*) + draw(1) > 1) AS q`, differs},
		"a sub-query over constant parameters": {`WITH counts AS (SELECT uid, count(*) AS n FROM %s.t GROUP BY uid), params AS (SELECT uid, n, 1.0 AS sens, 4.0 AS eps FROM counts) SELECT uid, n + (SELECT draw(sens/eps)) AS n FROM params`, differs},
		// Expressions that are equal after constants are folded are evaluated once.
		"equal after folding":    {`SELECT c + draw(s1) AS a, c + draw(s2) AS b FROM (SELECT x AS c, 1 AS s1, 1.0 AS s2 FROM %s.t WHERE x > 3) AS q ORDER BY a`, differs},
		"not pulled up":          {`SELECT c + draw(s1) AS a, c + draw(s2) AS b FROM (SELECT count(*) AS c, 1 AS s1, 1.0 AS s2 FROM %s.t) AS q ORDER BY a`, ""},
		"a column twice":         {`SELECT q.a + draw(q.a) AS n, q.b + draw(q.b) AS m FROM (SELECT x AS a, x AS b FROM %s.t WHERE x > 3) AS q ORDER BY 1`, differs},
		"equal despite a cast":   {`SELECT draw(x) AS n, draw(x::float8) AS m FROM %s.t WHERE x > 3 ORDER BY n`, differs},
		"a condition for a join": {`SELECT count(*) FROM (SELECT t.x, u.rate FROM %s.t AS t JOIN %s.u AS u ON u.id = t.uid) AS q WHERE draw(q.rate) < 0.5`, differs},
		"a condition in IN":      {`SELECT count(*) FROM (SELECT u.rate FROM %s.u AS u WHERE u.id IN (SELECT uid FROM %s.t WHERE x > 8)) AS q WHERE draw(q.rate) < 0.5`, differs},
		"a condition of a union": {`SELECT count(*) FROM (SELECT x FROM %s.t UNION SELECT rate FROM %s.u) AS q WHERE draw(x) < 0.5`, differs},
		"groups":                 {`SELECT uid, count(*) + draw(count(*)) AS n FROM %s.t GROUP BY uid HAVING count(*) + draw(2) > 1 ORDER BY n`, ""},
		"a sub-query for each":   {`SELECT q.uid, q.n + (SELECT draw(q.n)) AS n FROM (SELECT uid, count(*) AS n FROM %s.t GROUP BY uid) AS q`, ""},
		"a sub-query for all":    {`SELECT q.uid, q.n + (SELECT draw(1)) AS n FROM (SELECT uid, count(*) AS n FROM %s.t GROUP BY uid) AS q`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, reason := replay.Parts(t.Context(), player(t, options(dsn)), worldsOf(tc.sql))
			if tc.reason == "" && strings.Contains(reason, differs) || !strings.Contains(reason, tc.reason) {
				t.Errorf("%q, want %q", reason, tc.reason)
			}
		})
	}
}

// TestGenericPlans: a named statement with parameters may run with a generic plan, whose constants are not known: both
// kinds of plans are compared, and trials are hoisted if they agree.
func TestGenericPlans(t *testing.T) {
	t.Parallel()
	dsn := oracleDatabase(t)
	const sql = `SELECT uid, count(*) + draw($1) AS n FROM %s.t WHERE x > $2 GROUP BY uid`
	for name, tc := range map[string]struct {
		format int16
		reason string
	}{"text": {0, ""}, "binary": {1, "parameters in binary form"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, three := []byte("1"), []byte("3")
			if tc.format == 1 {
				one, three = []byte("\x3f\xf0\x00\x00\x00\x00\x00\x00"), []byte("\x40\x08\x00\x00\x00\x00\x00\x00")
			}
			s := replay.Statement{Named: true, Hoist: replay.ForceHoisting(), Params: []capture.Param{
				{OID: 701, Format: tc.format, Value: one}, {OID: 701, Format: tc.format, Value: three},
			}}
			got, err := rounds(t, player(t, options(dsn)), s, sql, 120)
			if err != nil || got[0][0].Failed() {
				t.Fatalf("%v, %+v", err, got)
			}
			if r := s.Hoist.Report(); r.Hoisted != (tc.reason == "") || !strings.Contains(r.Reason, tc.reason) {
				t.Errorf("%+v, want the reason %q", r, tc.reason)
			}
		})
	}
}
