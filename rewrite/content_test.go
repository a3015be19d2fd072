package rewrite_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestContent: a statement that runs a query has the plan of that query, and says where its rows go.
func TestContent(t *testing.T) {
	t.Parallel()
	const plain = "SELECT city, count(*) AS n FROM users WHERE age > 18 GROUP BY city"
	const with = "WITH a AS (SELECT * FROM users) SELECT count(*) FROM a"
	r := newRewriter(t, options())
	for sql, want := range map[string]struct{ query, to string }{
		"CREATE TABLE marts.daily AS " + plain: {plain, "into table marts.daily"},
		`CREATE TABLE "marts"."m__dbt_tmp"
  as
  (
    ` + plain + `
  )`: {plain, "into table marts.m__dbt_tmp"},
		"CREATE UNLOGGED TABLE IF NOT EXISTS daily (city, n) USING heap WITH (fillfactor = 70) AS " + plain + " WITH DATA": {plain, "into table daily"},
		"CREATE TEMPORARY TABLE x ON COMMIT DROP AS " + plain:                                                              {plain, "into a temporary table"},
		"CREATE TABLE pg_temp.x AS " + plain:                                                                               {plain, "into a temporary table"},
		"CREATE MATERIALIZED VIEW IF NOT EXISTS marts.v AS " + plain + " WITH DATA":                                        {plain, "into materialized view marts.v"},
		"CREATE TABLE t AS " + with:                                                                                        {with, "into table t"},
		"CREATE TABLE t AS TABLE users":                                                                                    {"TABLE users", "into table t"},
		"INSERT INTO marts.daily " + plain:                                                                                 {plain, "into table marts.daily"},
		"INSERT INTO marts.daily AS d (city, n) OVERRIDING USER VALUE (" + plain + ") ON CONFLICT (city) DO UPDATE SET n = excluded.n": {plain, "into table marts.daily"},
		"INSERT INTO daily (city, n) " + plain + " RETURNING city, n":                                                                  {plain, "into table daily, and to the client"},
		"INSERT INTO daily (city, n) " + plain + " ON CONFLICT DO NOTHING RETURNING *":                                                 {plain, "into table daily, and to the client"},
		"INSERT INTO tmp " + plain: {plain, "into a temporary table"},
		"WITH a AS (SELECT * FROM users) INSERT INTO daily SELECT count(*) FROM a":                             {with, "into table daily"},
		"WITH insert AS (SELECT * FROM users) INSERT INTO daily SELECT count(*) FROM insert":                   {"WITH insert AS (SELECT * FROM users) SELECT count(*) FROM insert", "into table daily"},
		"WITH a AS (SELECT * FROM users) INSERT INTO daily WITH b AS (SELECT * FROM a) SELECT count(*) FROM b": {"WITH a AS (SELECT * FROM users), b AS (SELECT * FROM a) SELECT count(*) FROM b", "into table daily"},
		"INSERT INTO daily VALUES ((SELECT count(*) FROM users))":                                              {"VALUES ((SELECT count(*) FROM users))", "into table daily"},
		"SELECT city, count(*) AS n INTO marts.daily FROM users WHERE age > 18 GROUP BY city":                  {plain, "into table marts.daily"},
		"SELECT city, count(*) AS n INTO TEMP TABLE x FROM users WHERE age > 18 GROUP BY city":                 {plain, "into a temporary table"},
		"SELECT id INTO UNLOGGED x FROM users UNION SELECT 1":                                                  {"SELECT id FROM users UNION SELECT 1", "into table x"},
		"WITH a AS (SELECT * FROM users) SELECT count(*) INTO x FROM a":                                        {with, "into table x"},
		"DECLARE c CURSOR FOR " + plain:                                                                        {plain, "through a cursor"},
		"DECLARE c INSENSITIVE NO SCROLL CURSOR WITH HOLD FOR " + plain:                                        {plain, "through a cursor"},
		"COPY (" + plain + ") TO STDOUT":                                                                       {plain, ""},
		"COPY (" + plain + ") TO '/tmp/secret-42'":                                                             {plain, "into a file of the server"},
		"COPY (" + plain + ") TO PROGRAM 'secret 42'":                                                          {plain, "into a program of the server"},
		"COPY (INSERT INTO daily " + plain + " RETURNING n) TO STDOUT":                                         {plain, "into table daily, and to the client"},
		"EXPLAIN ANALYZE " + plain:                                                                             {plain, "as row counts (EXPLAIN ANALYZE)"},
		"EXPLAIN ANALYSE VERBOSE (" + plain + ")":                                                              {plain, "as row counts (EXPLAIN ANALYZE)"},
		"EXPLAIN (VERBOSE, ANALYZE, FORMAT json) " + plain:                                                     {plain, "as row counts (EXPLAIN ANALYZE)"},
		"EXPLAIN (ANALYZE off, ANALYZE on) (" + plain + ")":                                                    {plain, "as row counts (EXPLAIN ANALYZE)"},
		"EXPLAIN (ANALYZE 1) CREATE TABLE daily AS (" + plain + ")":                                            {plain, "into table daily"},
		"EXPLAIN ANALYZE INSERT INTO daily " + plain:                                                           {plain, "into table daily"},
		"EXPLAIN ANALYZE DECLARE c CURSOR FOR " + plain:                                                        {plain, "as row counts (EXPLAIN ANALYZE)"},
	} {
		plan, err := r.Analyze(capture.Query{SQL: sql, Temporary: []string{"tmp"}})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		same, err := r.Analyze(capture.Query{SQL: want.query})
		if err != nil {
			t.Fatalf("%s: %v", want.query, err)
		}
		if plan.Key != same.Key || plan.Shape != same.Shape || plan.Group != same.Group {
			t.Errorf("%s: not the identity of %s", sql, want.query)
		}
		if plan.Destination != want.to || same.Destination != "" {
			t.Errorf("%s: destination %q, want %q", sql, plan.Destination, want.to)
		}
		got, err := plan.For("d0")
		if err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		expected, err := same.For("d0")
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]string{{got, expected}, {plan.Text(), want.query}} {
			if words(pair[0]) != words(pair[1]) {
				t.Errorf("%s: replayed as %q, want %q", sql, pair[0], pair[1])
			}
		}
	}
}

// words returns a text without white space and parentheses around it.
func words(sql string) string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(sql), " "), " ,", ",")
	if inner, ok := strings.CutPrefix(text, "("); ok {
		text = strings.TrimSuffix(inner, ")")
	}
	return strings.TrimSpace(text)
}

// TestContentClaims: comments of the whole statement, arguments and parameters claim.
func TestContentClaims(t *testing.T) {
	t.Parallel()
	o := options()
	o.Claims.TrustComment = true
	r := newRewriter(t, o)
	for _, q := range []capture.Query{
		{SQL: "/* dp_epsilon='0.5' */ CREATE TABLE t AS SELECT count(*) FROM users"},
		{SQL: "CREATE TABLE t AS SELECT count(*) FROM users WITH DATA /* dp_epsilon='0.5' */"},
		{SQL: "INSERT INTO t /* dp_epsilon='0.5' */ SELECT count(*) FROM users RETURNING *"},
		{SQL: "EXPLAIN /* dp_epsilon='0.5' */ ANALYZE SELECT count(*) FROM users"},
		{SQL: "/* dp_epsilon='0.5' */ INSERT INTO t SELECT count(*) FROM users WHERE id > $1", Params: []capture.Param{{OID: 23, Value: []byte("3")}}},
	} {
		plan, err := r.Analyze(q)
		if err != nil {
			t.Errorf("%s: %v", q.SQL, err)
			continue
		}
		if plan.Claim == nil || plan.Claim.Epsilon != 0.5 {
			t.Errorf("%s: claim %+v", q.SQL, plan.Claim)
		}
	}
}

// TestNoContent: statements that ran no query, or more than one, are refused.
func TestNoContent(t *testing.T) {
	t.Parallel()
	r := newRewriter(t, options())
	for _, c := range []struct {
		sql, tag string
		reason   rewrite.Reason
	}{
		{"EXPLAIN SELECT count(*) FROM users", "EXPLAIN", reasons.Explain},
		{"EXPLAIN (ANALYZE false) SELECT count(*) FROM users", "EXPLAIN", reasons.Explain},
		{"EXPLAIN (ANALYZE, ANALYZE 0) SELECT count(*) FROM users", "EXPLAIN", reasons.Explain},
		{"EXPLAIN CREATE TABLE t AS SELECT count(*) FROM users", "EXPLAIN", reasons.Explain},
		{"CREATE TABLE t AS SELECT count(*) FROM users WITH NO DATA", "", reasons.NotSelect},
		{"CREATE MATERIALIZED VIEW t AS SELECT count(*) FROM users WITH NO DATA", "", reasons.NotSelect},
		{"CREATE TABLE IF NOT EXISTS t AS SELECT count(*) FROM users", "CREATE TABLE AS", reasons.NotSelect},
		{"CREATE VIEW v AS SELECT count(*) FROM users", "", reasons.NotSelect},
		{"FETCH 10 FROM c", "", reasons.NotSelect},
		{"PREPARE p AS SELECT count(*) FROM users", "", reasons.NotSelect},
		{"EXPLAIN ANALYZE EXECUTE p", "", reasons.Wrapper},
		{"CREATE TABLE t AS EXECUTE p (1)", "", reasons.Wrapper},
		{"REFRESH MATERIALIZED VIEW v", "", reasons.Wrapper},
		{"COPY users TO STDOUT", "", reasons.Wrapper},
		{"INSERT INTO t VALUES (1, 'users')", "", reasons.NoProtectedTable},
		{"INSERT INTO users VALUES (1, 'a')", "", reasons.NoProtectedTable},
		{"INSERT INTO users DEFAULT VALUES", "", reasons.NotSelect},
		{"INSERT INTO t SELECT count(*) FROM users RETURNING (SELECT max(id) FROM users)", "", reasons.Wrapper},
		{"INSERT INTO t SELECT count(*) FROM users ON CONFLICT (a) DO UPDATE SET a = (SELECT max(id) FROM users)", "", reasons.Wrapper},
		{"WITH a AS (SELECT 1) INSERT INTO t WITH a AS (SELECT * FROM users) SELECT count(*) FROM a", "", reasons.Wrapper},
		{"WITH RECURSIVE a AS (SELECT 1) INSERT INTO t WITH b AS (SELECT * FROM users) SELECT count(*) FROM b", "", reasons.Wrapper},
		{"WITH a AS (DELETE FROM users RETURNING *) INSERT INTO t SELECT count(*) FROM a", "", reasons.SideEffects},
		{"UPDATE users SET id = 1", "", reasons.NotSelect},
	} {
		_, err := r.Analyze(capture.Query{SQL: c.sql, Tag: c.tag})
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%s: %v, want %s", c.sql, err, c.reason)
		}
	}
}
