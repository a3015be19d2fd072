package rewrite_test

import (
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// mediumQuery has about 650 bytes, the size in other measurements of pg_query.
const mediumQuery = `WITH per_user AS (
  SELECT t.user_id, t.store_id, LEAST(SUM(t.spent), 500.0) AS clipped, COUNT(*) AS visits
  FROM transactions AS t JOIN users AS u ON u.id = t.user_id
  WHERE t.spent BETWEEN 5 AND 500 AND u.income_class IN ('low', 'mid', 'high')
  GROUP BY t.user_id, t.store_id
), kept AS (
  SELECT store_id, COUNT(DISTINCT user_id) + 2.8 * SQRT(-2 * LN(RANDOM())) * COS(6.283185307 * RANDOM()) AS n
  FROM per_user GROUP BY store_id
)
SELECT p.store_id, SUM(p.clipped) + 1000 * SQRT(-2 * LN(RANDOM())) * COS(6.283185307 * RANDOM()) AS total
FROM per_user AS p JOIN kept AS k USING (store_id) WHERE k.n > 13.5 GROUP BY p.store_id ORDER BY 1`

// rewriteTwo does the whole work on a medium query: analysis and two rewrites.
func rewriteTwo(b *testing.B, r *rewrite.Rewriter) {
	plan, err := r.Analyze(capture.Query{SQL: mediumQuery, User: "alice", Database: "shop"})
	if err != nil {
		b.Fatal(err)
	}
	for _, schema := range []string{"d0", "d1"} {
		if _, err := plan.For(schema); err != nil {
			b.Fatal(err)
		}
	}
}

// parseDeparse is the reference: pg_query parses the same query and deparses it once.
func parseDeparse(b *testing.B) {
	tree, err := pg_query.Parse(mediumQuery)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := pg_query.Deparse(tree); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRewriteTwoSchemas(b *testing.B) {
	r := newRewriter(b, options())
	b.ReportAllocs()
	for b.Loop() {
		rewriteTwo(b, r)
	}
}

func BenchmarkParseDeparse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		parseDeparse(b)
	}
}

// BenchmarkOneSchema is analysis and one rewrite.
func BenchmarkOneSchema(b *testing.B) {
	r := newRewriter(b, options())
	for b.Loop() {
		plan, err := r.Analyze(capture.Query{SQL: mediumQuery, Database: "shop"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := plan.For("d0"); err != nil {
			b.Fatal(err)
		}
	}
}
