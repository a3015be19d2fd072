package pgtest

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// Copies returns a database with 50 people in d0.people and one fewer in d1.people, and a noise function.
func Copies(t *testing.T) string {
	t.Helper()
	dsn := Database(t)
	Exec(t, dsn, `
		CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024';
		CREATE FUNCTION slowly(value float8) RETURNS float8 LANGUAGE plpgsql VOLATILE
			AS 'BEGIN PERFORM pg_sleep(3600); RETURN value; END';
		CREATE SCHEMA d0; CREATE TABLE d0.people AS SELECT g AS id, g % 3 AS grp FROM generate_series(1, 50) g;
		CREATE SCHEMA d1; CREATE TABLE d1.people AS SELECT * FROM d0.people WHERE id <> 50`)
	return dsn
}

// ReplayRole creates a role that can read schemas and execute functions in public, and returns its connection string.
// The role is dropped when the test ends.
func ReplayRole(t *testing.T, dsn string, schemas ...string) string {
	t.Helper()
	database := Connect(t, dsn).Config().Database
	role := "replay_" + database // roles belong to the whole server
	secret, err := pgtemp.Secret("secret")
	if err != nil {
		t.Fatal(err)
	}
	Exec(t, dsn, "CREATE ROLE "+role+" LOGIN PASSWORD '"+secret+"'")
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
		Exec(t, dsn, "GRANT USAGE ON SCHEMA "+list+" TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA "+list+" TO "+role)
	}
	return Start(t).UserDSN(database, role, "secret")
}
