package rewrite

import (
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

func TestBound(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]float64{
		"SELECT count(*) FROM t WHERE x > 7":                                              0,
		"SELECT dp_sum(x, 0, 100, 0.5) FROM t LIMIT 1000":                                 100,
		"SELECT dp_sum(x, -250.5, 100, 0.5) FROM t":                                       250.5,
		"SELECT noisy(sum(least(x, 1e3)), 500 / 0.5) FROM t":                              1000,
		"SELECT s FROM (SELECT dp_sum(x, 0, 4::numeric) AS s FROM t) AS q":                4,
		"SELECT dp_var_pop(x, 0, 30, 0.5) FROM t":                                         900,
		"SELECT people_score('nanvar', 0, 100, 0.5), people_score('nanstd', 0, 500, 0.5)": 10000,
		"SELECT dp_sum(x, 'NaN', 0.5, 1e-6) FROM t":                                       0,
		"WITH c AS (SELECT dp_mean(x, 0, 30) AS m FROM t) SELECT m FROM c WHERE m < 60":   30,
	} {
		tree, err := pgparse.Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := factsOf(tree.GetStmts()[0].GetStmt().GetSelectStmt(), &Claim{Epsilon: .5, Delta: 1e-6}).Bound; got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}

// TestAverage: a column is the call of an average alone.
func TestAverage(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"SELECT AVG(x) FROM t":                      true,
		"SELECT g, s.anon_avg(x, 0, 5, 1.0) FROM t": true,
		"SELECT noisy(avg(x), 1) FROM t":            false,
		"SELECT sum(x) FROM t WHERE x > (SELECT 1)": false,
		"SELECT meaning(x), avg(x) + 1 FROM t":      false,
	} {
		tree, err := pgparse.Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := factsOf(tree.GetStmts()[0].GetStmt().GetSelectStmt(), nil).Average; got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}

// TestConstants: the numbers that a query calculates with, the last operation first.
func TestConstants(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string][]float64{
		"SELECT dp_sum(x, 0, 100, 0.5) FROM t WHERE x > 7":                    nil,
		"SELECT dp_sum(x, 0, 100, 0.5) / 6 FROM t":                            {6},
		"SELECT dp_sum(x, 0, 100, 0.5) / 6 * 1.1 + 0.1 FROM t":                {.1, 1.1, 6},
		"SELECT round((100 * s / 37.5)::numeric, 2), s - 100 FROM noisy AS s": {37.5, 100},
		"SELECT 2.5::float8 * s, s + -3, s OPERATOR(pg_catalog./) 7 FROM t":   {2.5, 3, 7},
		"SELECT s + 0, s || 5, s % 9, interval '1 day' * 1e999 FROM t":        nil,
	} {
		tree, err := pgparse.Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := factsOf(tree.GetStmts()[0].GetStmt().GetSelectStmt(), nil).Constants; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	n := Facts{Bound: 3, Constants: []float64{2}}
	if got := n.With(Facts{Bound: 1, Constants: []float64{5, 2}}); got.Bound != 3 || !slices.Equal(got.Constants, []float64{2, 5}) {
		t.Error("of two statements:", got)
	}
}
