package hoist_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/replay/hoist"
)

// TestLarge: statements of the largest size that is parsed can be planned. Its only time limit is that of all tests;
// work quadratic in the size times the depth would exceed it.
func TestLarge(t *testing.T) {
	t.Parallel()
	r := strings.Repeat
	chain := func(body string) string {
		var b strings.Builder
		b.WriteString("WITH a0 AS (SELECT 1 AS x FROM d0.t)")
		for i := 1; i < 1800; i++ {
			fmt.Fprintf(&b, ", a%d AS (SELECT %s FROM a%d)", i, body, i-1)
		}
		return b.String() + " SELECT random() FROM a1799"
	}
	for name, sql := range map[string]string{
		"sum of noise":   "SELECT sum(x)" + r("+random()", 900) + " FROM d0.t WHERE x > 1",
		"stable sum":     "SELECT random() + (sum(x)" + r("+sum(x)", 900) + ") FROM d0.t WHERE x > 1",
		"sums":           "SELECT " + r("sum(x)"+r("+random()", 900)+",", 6) + " 1 FROM d0.t",
		"calls":          "SELECT " + r("abs(random()+", 480) + "sum(x)" + r(")", 480) + " FROM d0.t",
		"columns":        "SELECT sum(x)+random()" + r(",sum(x)+random()", 1600) + " FROM d0.t",
		"sub-queries":    r("SELECT * FROM (", 900) + "SELECT random() FROM d0.t" + r(") x", 900),
		"noise in each":  r("SELECT sum(x)+random() FROM (", 400) + "SELECT x FROM d0.t" + r(") x", 400),
		"stable CTEs":    chain("x + 1"),
		"volatile CTEs":  chain("x + random()"),
		"CTEs of a name": "WITH a AS (SELECT 1 AS x FROM d0.t)" + r(", a AS (SELECT x + 1 FROM a)", 1800) + " SELECT random() FROM a",
		"union":          "SELECT random()" + r(" UNION ALL SELECT sum(x)+random() FROM d0.t", 900),
		"case":           "SELECT " + r("CASE WHEN random() > 1 THEN sum(x) ELSE ", 900) + "1" + r(" END", 900) + " FROM d0.t",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := hoist.Split(sql, hoist.Options{Knowledge: knowledge(), Prefix: "h"})
			if err != nil && !strings.Contains(err.Error(), "nested too deeply") { // the rest may be nested a little deeper than the input
				t.Error(err)
			}
		})
	}
}
