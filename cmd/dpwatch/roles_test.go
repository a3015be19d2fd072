package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// replayRole creates a role that can read schemas and execute functions in public, and returns its connection string.
func replayRole(t *testing.T, dsn string, schemas ...string) string {
	t.Helper()
	database := pgtest.Connect(t, dsn).Config().Database
	role := "replay_" + database // roles belong to the whole server
	pgtest.Exec(t, dsn, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'")
	t.Cleanup(func() {
		admin, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer admin.Close(context.Background())
		if _, err := admin.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	if len(schemas) > 0 {
		list := strings.Join(schemas, ", ")
		pgtest.Exec(t, dsn, "GRANT USAGE ON SCHEMA "+list+" TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA "+list+" TO "+role)
	}
	return pgtest.Start(t).UserDSN(database, role, "secret")
}
