package rewrite_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestBuiltinLists runs the generating queries again and compares them with the lists in the package, on the major version
// with which the lists were generated.
func TestBuiltinLists(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Database(t))
	if version := conn.ParameterStatus("server_version"); !strings.HasPrefix(version, "15.") {
		t.Skipf("server %s: the lists are those of 15", version)
	}
	script, err := os.ReadFile("internal/judge/builtin_functions.sql")
	if err != nil {
		t.Fatal(err)
	}
	list := func(query string) []string {
		result := conn.ExecParams(t.Context(), query, nil, nil, nil, nil).Read()
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		var lines []string
		for _, row := range result.Rows {
			words := make([]string, len(row))
			for i, v := range row {
				words[i] = string(v)
			}
			lines = append(lines, strings.Join(words, " "))
		}
		return lines
	}
	embedded := func(file string) map[string]bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "# ") {
				lines[line] = true
			}
		}
		return lines
	}
	for file, query := range map[string]string{
		"internal/judge/builtin_functions.txt": string(script),
		"internal/resolve/system_catalogs.txt": `SELECT relname FROM pg_class
			WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')`,
		"internal/judge/builtin_operators.txt": "SELECT DISTINCT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace",
	} {
		have, missing := embedded(file), []string(nil)
		lines := list(query)
		for _, line := range lines {
			if !have[line] {
				missing = append(missing, line)
			}
		}
		if len(lines) < 70 {
			t.Errorf("%s: only %d lines", file, len(lines))
		}
		if diff := cmp.Diff([]string(nil), missing); diff != "" {
			t.Errorf("%s lacks, or has otherwise (+):\n%s", file, diff)
		}
	}
	// The properties that make a function safe must hold for every function of that name.
	for _, line := range list(`SELECT DISTINCT proname FROM pg_proc
		WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'
		AND proname NOT IN ('random', 'clock_timestamp', 'timeofday', 'gen_random_uuid')`) {
		if embedded("internal/judge/builtin_functions.txt")[fmt.Sprintf("%s safe", line)] {
			t.Errorf("%s is volatile and listed as safe", line)
		}
	}
}
