package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestInit writes a configuration, which config check accepts, and replaces no file.
func TestInit(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, "CREATE TABLE users (id int PRIMARY KEY); CREATE TABLE orders (user_id int REFERENCES users)")
	file, sql := filepath.Join(t.TempDir(), "dpwatch.yaml"), filepath.Join(t.TempDir(), "roles.sql")
	dpwatch := func(want int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, environment{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
		if code != want {
			t.Errorf("%v: exit code %d, want %d: %s", args, code, want, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	dpwatch(exitDone, "init", "--dsn", dsn, "-o", file, "--sql", sql)
	dpwatch(exitDone, "config", "check", "--config", file)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := dpwatch(exitDone, "init", "--dsn", dsn); out != string(written) {
		t.Errorf("standard output:\n%s\nfile:\n%s", out, written)
	}
	if text, err := os.ReadFile(sql); err != nil || !strings.Contains(string(text), `GRANT SELECT ON "public"."orders" TO dpwatch_copy;`) {
		t.Errorf("%s, %v", text, err)
	}
	if _, errText := dpwatch(exitFailure, "init", "--dsn", dsn, "-o", file); !strings.Contains(errText, "exists and is not replaced") {
		t.Errorf("a file that exists: %s", errText)
	}
}
