package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// TestEngines: every engine's files are complete, its configuration is valid and claims something for each query, and
// every query is one statement with an expectation. No server and no Python is needed.
func TestEngines(t *testing.T) {
	t.Parallel()
	all, err := engines(".", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 6 {
		t.Fatalf("%d engines", len(all))
	}
	for _, e := range all {
		files := []string{"README.md", "adapter.py", "adapter.sql", "data.sql"}
		if e.gateway {
			files = []string{"README.md", "child.py", "data.sql"}
		}
		for _, name := range files {
			if _, err := os.Stat(filepath.Join(e.dir, name)); err != nil {
				t.Error(err)
			}
		}
		file := filepath.Join(e.dir, "dpwatch.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse(file, text, func(name string) string {
			return map[string]string{"DATABASE": "postgres://postgres@127.0.0.1:5432/example", "ENGINE": "postgres://dpwatch@127.0.0.1:5433/shadow"}[name]
		})
		if err != nil {
			t.Error(err)
		}
		honest := 0
		for _, q := range e.cases {
			if tree, err := pgparse.Parse(q.sql); err != nil || len(tree.Stmts) != 1 {
				t.Errorf("%s: %q: %v: not one statement", e.name, q.sql, err)
			}
			claimed := c.Claims.Ask != "" || c.Claims.Default != nil
			for _, f := range c.Claims.Functions {
				claimed = claimed || strings.Contains(q.sql, f.Name+"(")
			}
			if !claimed {
				t.Errorf("%s: %q has no claim: it calls no function of claims.functions", file, q.sql)
			}
			if q.honest {
				honest++
			}
		}
		if honest < 3 {
			t.Errorf("%s: %d honest queries, want 3", e.name, honest)
		}
	}
}

// TestExpectation: what is written after "expect:" holds for the versions that it names.
func TestExpectation(t *testing.T) {
	t.Parallel()
	versions := []string{"1.0", "2.0"}
	for _, c := range []struct{ text, first, second, fault string }{
		{"violation", "violation", "violation", ""},
		{"violation in 1.0, no evidence in 2.0", "violation", "no_evidence", ""},
		{"violation in 2.0", "", "violation", ""},
		{"violation in 3.0", "", "", "requirements-3.0.txt"},
		{"a fault", "", "", "write"},
		{"", "", "", "write"},
	} {
		got, err := expectation(c.text, versions)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q: error %v, want one with %q", c.text, err, c.fault)
			}
		} else if err != nil || got["1.0"] != c.first || got["2.0"] != c.second {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
}

// TestAttempts: a query is audited again while its result is not the expected one, five times in all, but not if it has
// a violation that is not expected. A script answers instead of dpwatch: results by chance cannot be had at will.
func TestAttempts(t *testing.T) {
	t.Parallel()
	const script = `#!/bin/sh
[ "$1" = audit ] || exit 0
echo >>calls
sed -n "$(wc -l <calls)p" answers
`
	for _, c := range []struct {
		want, answers string // v: violation, n: no evidence, i: inconclusive
		attempts      int
		fault         bool
	}{
		{"violation", "v", 1, false},
		{"violation", "inv", 3, false},
		{"violation", "iiiiv", 5, false},
		{"violation", "iiiiiv", 5, true},
		{"no_evidence", "in", 2, false},
		{"no_evidence", "ivn", 2, true},
		{"no_evidence", "vn", 1, true},
	} {
		dir := t.TempDir()
		verdicts := strings.NewReplacer("v", `{"verdict": "violation"}`+"\n", "n", `{"verdict": "no_evidence"}`+"\n", "i", `{"verdict": "inconclusive"}`+"\n")
		for name, text := range map[string]string{"dpwatch": script, "answers": verdicts.Replace(c.answers)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		q := query{sql: "SELECT 1", expect: map[string]string{"1.0": c.want}, named: []string{"none"}}
		var got result
		err := auditor{program: filepath.Join(dir, "dpwatch")}.run(t.Context(), &server{}, engine{dir: dir, cases: []query{q}}, "1.0", func(r result) { got = r })
		if err != nil || len(got.missed) != c.attempts-1 || got.fault != "" != c.fault {
			t.Errorf("want %s, audits end with %s: %d audits, %q, %v", c.want, c.answers, len(got.missed)+1, got.fault, err)
		}
	}
}
