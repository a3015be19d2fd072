package rewrite_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// connect connects to a database of the server that the tests share.
func connect(t *testing.T, dsn string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// run executes a script and fails the test on any error.
func run(t *testing.T, conn *pgconn.PgConn, script string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
}

// superuser creates a role of the server that the tests share, unless another test did.
func superuser(t *testing.T, conn *pgconn.PgConn, name string) {
	t.Helper()
	run(t, conn, "DO $$ BEGIN CREATE ROLE "+name+" SUPERUSER; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
}
