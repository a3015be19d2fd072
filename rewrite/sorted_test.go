package rewrite

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

func TestSorted(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"SELECT g, sum(x) FROM t GROUP BY g":                                                                 false,
		"SELECT g, sum(x) FROM t GROUP BY g ORDER BY g":                                                      false,
		"SELECT g, sum(x) FROM t GROUP BY g ORDER BY 1 DESC":                                                 false,
		"SELECT t.g AS a, h, sum(x) FROM t GROUP BY g, h ORDER BY a":                                         false,
		"SELECT date_trunc('month', d) AS m, h, sum(x) FROM t GROUP BY 1, 2 ORDER BY date_trunc('month', d)": false,
		"SELECT g, sum(x) + noise(1) AS n FROM t GROUP BY g ORDER BY n":                                      true,
		"SELECT g, sum(x) + noise(1) FROM t GROUP BY g ORDER BY 2 DESC":                                      true,
		"SELECT g, sum(x) + noise(1) FROM t GROUP BY g ORDER BY g, sum(x)":                                   true,
		"SELECT g, s + noise(1) FROM (SELECT g, sum(x) AS s FROM t GROUP BY g) AS q ORDER BY s":              true,
		"SELECT * FROM (SELECT g, sum(x) FROM t GROUP BY g ORDER BY 2) AS q":                                 false,
		"SELECT g FROM t UNION SELECT g FROM u ORDER BY 1":                                                   true,
		"SELECT g FROM t GROUP BY g ORDER BY 7":                                                              true,
	} {
		tree, err := pgparse.Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := sorted(tree.GetStmts()[0].GetStmt().GetSelectStmt()); got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}
