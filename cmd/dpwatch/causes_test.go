package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/docs"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestExamplesOfCauses: PostgreSQL runs the SQL examples of docs/causes.md.
func TestExamplesOfCauses(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Copies(t)
	pgtest.Exec(t, dsn, `CREATE TABLE cities (city text); CREATE TABLE visits (person int);
		CREATE TABLE people (id int, city text, age int, income numeric); INSERT INTO people VALUES (1, 'Bonn', 50, 40000)`)
	n := 0
	for _, block := range regexp.MustCompile(`(?m)^    -- leaks(\n    .*| .*)+`).FindAllString(string(docs.Causes), -1) {
		before, after, found := strings.Cut(block, "\n    -- fixed\n")
		if !found || !strings.Contains(before, "SELECT") || !strings.HasSuffix(after, ";") {
			t.Errorf("no SQL before and after in\n%s", block)
		}
		pgtest.Exec(t, dsn, block)
		n++
	}
	if n < 10 {
		t.Errorf("%d examples", n)
	}
}
