package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/generate"
	"github.com/dpwatch/dpwatch/internal/generate/store"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const spec = `
tables:
  - name: Users
    rows: 50
    columns:
      - {name: id, kind: key}
      - {name: note, kind: text, values: ["", "\\.", " a", "say \"x\", y", "two\nlines", "NULL"], nulls: 0.2}
  - name: visits
    rows: 300
    columns:
      - {name: select, kind: key, start: 5}
      - {name: user_id, kind: reference, table: Users, heavy: {rows: 100}}
      - {name: day, kind: date, from: 2024-01-01, to: 2024-12-31, nulls: 0.1}
      - {name: amount, kind: normal, mean: 0, sd: 1e-7, outliers: {share: 0.1, value: 1e300}}
`

func connected(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// export returns what the server holds, in the order in which it was copied.
func export(t *testing.T, conn *pgx.Conn, table string) string {
	t.Helper()
	var text strings.Builder
	if _, err := conn.PgConn().CopyTo(t.Context(), &text, "copy (select * from "+table+" order by 1) to stdout with (format csv, header)"); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestDatabase: the server holds exactly the values of the files, and refuses nothing of them.
func TestDatabase(t *testing.T) {
	t.Parallel()
	pgtest.NeedsServer(t)
	parsed, err := generate.Parse([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	tables, conn, dir := parsed.Generate(9), connected(t), filepath.Join(t.TempDir(), "data")
	rows, err := store.Database(t.Context(), conn, "new schema", tables)
	if err != nil || len(rows) != 2 || rows[0] != 50 || rows[1] != 300 {
		t.Fatal(rows, err)
	}
	paths, err := store.Files(t.Context(), dir, tables)
	if err != nil {
		t.Fatal(err)
	}
	for i, table := range []string{`"new schema"."Users"`, `"new schema".visits`} {
		file, err := os.ReadFile(paths[i])
		if err != nil {
			t.Fatal(err)
		}
		// The server's own texts of a second copy, filled from the file, are those of the first.
		if _, err := conn.Exec(t.Context(), "create temporary table again (like "+table+")"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(string(file)), "copy again from stdin with (format csv, header)"); err != nil {
			t.Fatal(err)
		}
		if got, want := export(t, conn, "again"), export(t, conn, table); got != want || strings.Count(want, "\n") < 51 {
			t.Errorf("%s: file and database differ", table)
		}
		if _, err := conn.Exec(t.Context(), "drop table again"); err != nil {
			t.Fatal(err)
		}
	}
	var texts, nulls, heavy int
	if err := conn.QueryRow(t.Context(), `select count(distinct note), count(*) filter (where note is null), (select count(*) from "new schema".visits where user_id = 0) from "new schema"."Users"`).Scan(&texts, &nulls, &heavy); err != nil {
		t.Fatal(err)
	}
	if texts != 6 || nulls == 0 || heavy != 100 {
		t.Errorf("%d texts, %d NULLs, %d rows of the heavy unit", texts, nulls, heavy)
	}
	before := export(t, conn, `"new schema".visits`)
	if _, err := store.Database(t.Context(), conn, "new schema", parsed.Generate(10)); err == nil || !strings.Contains(err.Error(), "table new schema.Users exists and is not replaced") {
		t.Errorf("a table that exists: %v", err)
	}
	if export(t, conn, `"new schema".visits`) != before {
		t.Error("a table that exists was changed")
	}
}

// TestPreset: the tables of the showcase are those that its own loader makes.
func TestPreset(t *testing.T) {
	t.Parallel()
	pgtest.NeedsServer(t)
	conn, data := connected(t), showcase.Generate(showcase.Seed)
	if _, err := store.Database(t.Context(), conn, "a", data.Tables()); err != nil {
		t.Fatal(err)
	}
	if err := showcase.Load(t.Context(), conn, "b", data); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"users", "transactions"} {
		if a, b := export(t, conn, "a."+table), export(t, conn, "b."+table); a != b || strings.Count(a, "\n") < 101 {
			t.Errorf("%s differs", table)
		}
	}
	var definitions int
	if err := conn.QueryRow(t.Context(), `select count(distinct (table_name, column_name, ordinal_position, data_type, is_nullable)) from information_schema.columns where table_schema in ('a', 'b')`).Scan(&definitions); err != nil {
		t.Fatal(err)
	}
	if definitions != 8 {
		t.Errorf("%d different columns in two schemas, want 8", definitions)
	}
}

func TestFilesThatExist(t *testing.T) {
	t.Parallel()
	parsed, err := generate.Parse([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "visits.csv")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if paths, err := store.Files(t.Context(), dir, parsed.Generate(1)); err == nil || len(paths) > 0 || !strings.Contains(err.Error(), "exists and is not replaced") {
		t.Errorf("%v %v", paths, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file now holds %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "Users.csv")); err == nil {
		t.Error("a file remains after an error")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	other := filepath.Join(dir, "other")
	if _, err := store.Files(ended, other, parsed.Generate(1)); err == nil {
		t.Error("no error after the context ended")
	}
	if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
		t.Errorf("%v remain, %v", left, err)
	}
}
