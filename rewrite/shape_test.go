package rewrite_test

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// TestShape: parts that a client can vary at will do not change the shape; another query does.
func TestShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"constant":                 {"SELECT count(*) FROM users WHERE id = 1", "SELECT count(*) FROM users WHERE id = 2", true},
		"constant's type":          {"SELECT count(*) FROM users WHERE id = 1", "SELECT count(*) FROM users WHERE id = '1'", true},
		"parameter":                {"SELECT count(*) FROM users WHERE id = 1", "SELECT count(*) FROM users WHERE id = $1", true},
		"column alias":             {"SELECT count(*) AS c0_1 FROM users", "SELECT count(*) AS c0_2 FROM users", true},
		"alias that is used":       {"SELECT income AS a1, count(*) FROM users GROUP BY a1", "SELECT income AS a2, count(*) FROM users GROUP BY a2", true},
		"table alias":              {"SELECT count(u1.id) FROM users u1", "SELECT count(u2.id) FROM users u2", true},
		"table alias with AS":      {"SELECT count(u1.id) FROM users AS u1", "SELECT count(u2.id) FROM users u2", true},
		"column list":              {"SELECT count(a1) FROM users u(a1)", "SELECT count(a2) FROM users u(a2)", true},
		"CTE":                      {"WITH w1 AS (SELECT id FROM users) SELECT count(*) FROM w1", "WITH w2 AS (SELECT id FROM users) SELECT count(*) FROM w2", true},
		"subquery":                 {"SELECT max(s1.x1) FROM (SELECT id AS x1 FROM users) s1", "SELECT max(s2.x2) FROM (SELECT id AS x2 FROM users) s2", true},
		"window":                   {"SELECT count(*) OVER w1 FROM users WINDOW w1 AS (ORDER BY id)", "SELECT count(*) OVER w2 FROM users WINDOW w2 AS (ORDER BY id)", true},
		"length of a list":         {"SELECT count(*) FROM users WHERE id IN (1, 2)", "SELECT count(*) FROM users WHERE id IN (1, 2, 3, $1)", true},
		"repeated condition":       {"SELECT count(*) FROM users WHERE id <> 1 AND id <> 2", "SELECT count(*) FROM users WHERE id <> 1 AND id <> 2 AND id <> 3", true},
		"comment and claim":        {"SELECT count(*) FROM users", "SELECT count(*) FROM users /*dp_epsilon='0.1'*/ -- 17", true},
		"spelling":                 {"SELECT count(*) FROM users", "select COUNT( * )\nfrom \"users\"", true},
		"table":                    {"SELECT count(*) FROM users", "SELECT count(*) FROM transactions", false},
		"column":                   {"SELECT max(id) FROM users", "SELECT max(income) FROM users", false},
		"function":                 {"SELECT max(id) FROM users", "SELECT min(id) FROM users", false},
		"condition":                {"SELECT count(*) FROM users", "SELECT count(*) FROM users WHERE id > 1", false},
		"operator":                 {"SELECT count(*) FROM users WHERE id < 1", "SELECT count(*) FROM users WHERE id > 1", false},
		"grouping":                 {"SELECT count(*) FROM users", "SELECT count(*) FROM users GROUP BY income", false},
		"distinct aggregate":       {"SELECT count(id) FROM users", "SELECT count(DISTINCT id) FROM users", false},
		"column beside a constant": {"SELECT 1 FROM users", "SELECT id FROM users", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params := []capture.Param{{OID: 23, Value: []byte("7")}}
			a, b := analyze(t, capture.Query{SQL: c.a, Params: params}), analyze(t, capture.Query{SQL: c.b, Params: params})
			if same := a.Shape == b.Shape; same != c.same || a.Shape == "" {
				t.Errorf("same shape: %t, want %t", same, c.same)
			}
			if a.Size() < len(c.a) {
				t.Errorf("size %d of a plan for %d bytes of text", a.Size(), len(c.a))
			}
		})
	}
}

// TestShapesOfAFlood: a flood of aliases, constants and claims is one shape.
func TestShapesOfAFlood(t *testing.T) {
	t.Parallel()
	shapes := map[string]bool{}
	for i := range 50 {
		sql := fmt.Sprintf("SELECT count(t%d.id) AS c%d FROM users t%d WHERE t%d.income > %d /*dp_epsilon='0.%d'*/", i, i, i, i, i, i+1)
		shapes[analyze(t, capture.Query{SQL: sql}).Shape] = true
	}
	if len(shapes) != 1 {
		t.Errorf("%d shapes, want one", len(shapes))
	}
}
