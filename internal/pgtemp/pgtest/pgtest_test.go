package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func count(t *testing.T, dsn, sql string, args ...any) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func exec(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestDatabasePerTest(t *testing.T) {
	cluster := pgtest.Start(t)
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.Database(t)
			const tables = "select count(*) from pg_tables where schemaname = 'public'"
			if n := count(t, dsn, tables); n != 0 {
				t.Errorf("%d tables in a fresh database", n)
			}
			exec(t, dsn, "create table left_behind (x int)")
			if n := count(t, dsn, tables); n != 1 {
				t.Errorf("%d tables after creating one", n)
			}
		})
	}
	if pgtest.Start(t) != cluster {
		t.Error("a second cluster was started")
	}
	if n := count(t, cluster.DSN("postgres"), "select count(*) from pg_database where datname like 'test%'"); n != 0 {
		t.Errorf("%d databases left", n)
	}
}
