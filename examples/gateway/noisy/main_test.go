package main

import (
	"math"
	"testing"
)

// What is not in the grammar is refused before the source is asked: it is nil here.
func TestGrammar(t *testing.T) {
	t.Parallel()
	a, err := answer(nil, `SELECT dp_count(*), dp_sum("Age") AS total FROM s."My Table" WHERE a < 3`, true)
	if err == nil {
		t.Errorf("a table with a blank in its name is answered as %v", a)
	}
	a, err = answer(nil, "SELECT dp_count(*), dp_sum(\"Age\") AS total\n FROM s.\"MyTable\" WHERE a <= -3 -- mine", true)
	if columns, _ := a["columns"].([]object); err != nil || len(columns) != 2 || columns[0]["name"] != "dp_count" || columns[1]["name"] != "total" {
		t.Errorf("%v, %v", a, err)
	}
	for _, sql := range []string{
		"", "SELECT 1", "SELECT count(*) FROM t", "SELECT dp_count(*) FROM t, u", "SELECT dp_count(*) FROM t GROUP BY x", "SELECT dp_sum(a + 1) FROM t",
		"SELECT dp_count(*) FROM t WHERE 1 / a > 0", "SELECT dp_count(*) FROM t WHERE f(a)", "SELECT dp_count(*) FROM t WHERE NOT a = 1", "SELECT dp_count(*) FROM t LIMIT 1",
		"SELECT dp_count(*) FROM t; SELECT dp_count(*) FROM t", "DELETE FROM t", "SELECT dp_count(a) FROM t", "SELECT s.dp_count(*) FROM t", "no SQL",
		"SELECT dp_count(*) FROM (SELECT 1) x", "SELECT dp_count(*) FROM t WHERE a = b", "SELECT dp_count(*) INTO u FROM t", "SELECT dp_count(*) FROM t FOR UPDATE",
	} {
		if a, err := answer(nil, sql, true); err == nil {
			t.Errorf("%q is answered as %v", sql, a)
		}
	}
}

// The noise has the intended distribution: the share of zeros of discrete Laplace noise of scale s is (1-a)/(1+a) with
// a = exp(-1/s), and the mean square 2a/(1-a)². Each comparison is within six standard errors.
func TestNoise(t *testing.T) { //nolint:paralleltest // it sets -broken
	const n = 200_000
	for _, tc := range []struct {
		broken string
		scale  float64
	}{{"none", 2}, {"no-clip", 2}, {"half-noise", 1}} {
		*broken = tc.broken
		zeros, squares, fourth := 0.0, 0.0, 0.0
		for range n {
			x := noisy(7, 0, 0.5) - 7
			if x == 0 {
				zeros++
			}
			squares += x * x
			fourth += x * x * x * x
		}
		a := math.Exp(-1 / tc.scale)
		p, v := (1-a)/(1+a), 2*a/((1-a)*(1-a))
		if got := zeros / n; math.Abs(got-p) > 6*math.Sqrt(p*(1-p)/n) {
			t.Errorf("%s: %v of the draws are 0, want %v", tc.broken, got, p)
		}
		if got := squares / n; math.Abs(got-v) > 6*math.Sqrt((fourth/n-got*got)/n) {
			t.Errorf("%s: mean square %v, want %v", tc.broken, got, v)
		}
	}
	*broken = "seeded"
	first := noisy(7, 0, 0.5)
	for range 100 {
		if noisy(7, 0, 0.5) != first {
			t.Fatal("the seeded noise is not always the same")
		}
	}
	*broken = "none"
	if x := noisy(123.4, 100, 1e9); math.Abs(x-123.4) > 100.0/1024 {
		t.Errorf("123.4 without noise to speak of: %v", x)
	}
}
