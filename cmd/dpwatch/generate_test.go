package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// documentedSpec writes the specification of docs/commands.md to a file.
func documentedSpec(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(# data.yaml\n.*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("docs/commands.md has no data.yaml")
	}
	return file(t, "data.yaml", block[1])
}

func TestGenerateFiles(t *testing.T) {
	t.Parallel()
	dir, spec := filepath.Join(t.TempDir(), "data"), documentedSpec(t)
	call(t, "", "generate", "--spec", spec, "--output", dir).want(t, exitDone, "users.csv", "transactions.csv")
	for name, rows := range map[string]int{"users.csv": 1000, "transactions.csv": 20000} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Count(string(text), "\n") != rows+1 {
			t.Errorf("%s has %d lines, %v", name, strings.Count(string(text), "\n"), err)
		}
	}
	call(t, "", "generate", "--spec", spec, "--output", dir).want(t, exitFailure, "users.csv exists and is not replaced")
	call(t, "", "generate", "--preset", "shops", "--output", dir).want(t, exitFailure, "the only preset is shop")
	call(t, "", "generate", "--preset", "shop").want(t, exitFailure, "[output dsn] is required")
	bad := file(t, "bad.yaml", "tables: [{name: t, rows: 1, columns: [{name: c, kind: word}]}]")
	call(t, "", "generate", "--spec", bad, "--output", dir).want(t, exitFailure, `bad.yaml: tables[0] (t).columns[0] (c): kind "word"`)
}

func TestGenerateDatabase(t *testing.T) {
	t.Parallel()
	pgtest.NeedsServer(t)
	dsn := pgtest.Database(t)
	call(t, "", "generate", "--preset", "shop", "--dsn", dsn, "--schema", "demo").want(t, exitDone, "demo.users: 100 rows", "demo.transactions: 10000 rows")
	call(t, "", "generate", "--preset", "shop", "--dsn", dsn, "--schema", "demo").want(t, exitFailure, "demo.users exists and is not replaced")
	call(t, "", "generate", "--preset", "shop", "--dsn", "password=secret:").want(t, exitFailure)
}
