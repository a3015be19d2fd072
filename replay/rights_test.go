package replay_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// The grants that dpwatch prints are sufficient for a new role, and are all that it may have without a warning.
func TestRights(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	conn := pgtest.Connect(t, dsn)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	cfg := conn.Config()
	role := "replay " + cfg.Database // roles belong to the whole server
	quoted := pgx.Identifier{role}.Sanitize()
	exec("CREATE ROLE " + quoted + " LOGIN PASSWORD 'secret'")
	t.Cleanup(func() {
		admin, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer admin.Close(context.Background())
		if _, err := admin.Exec(context.Background(), "DROP OWNED BY "+quoted+"; DROP ROLE "+quoted); err != nil {
			t.Error(err)
		}
	})
	p := player(t, options(pgtest.Start(t).UserDSN(cfg.Database, role, "secret")))
	check := func() ([]string, error) { return p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"}) }

	grants := p.Grants([]string{"d0", "d1"})
	if _, err := check(); err == nil || !strings.Contains(err.Error(), grants[1]) {
		t.Errorf("without rights: %v, want it to print %s", err, grants[1])
	}
	for _, g := range grants {
		exec(g)
	}
	if warnings, err := check(); err != nil || len(warnings) != 0 {
		t.Errorf("with the printed grants: %q, %v", warnings, err)
	}
	for _, tc := range []struct{ give, warning, take string }{
		{"ALTER ROLE % SUPERUSER", "is a SUPERUSER", "ALTER ROLE % NOSUPERUSER"},
		{"ALTER ROLE % BYPASSRLS", "has BYPASSRLS", "ALTER ROLE % NOBYPASSRLS"},
		{"GRANT pg_read_server_files TO %", "is a member of pg_read_server_files", "REVOKE pg_read_server_files FROM %"},
		{"GRANT DELETE ON d1.people TO %", "may write to 1 table(s), d1.people one of them", "REVOKE DELETE ON d1.people FROM %"},
		{"GRANT CREATE ON SCHEMA d0 TO %", "may create in schema d0", "REVOKE CREATE ON SCHEMA d0 FROM %"},
		{
			"CREATE SCHEMA app; CREATE TABLE app.orders (x int); GRANT USAGE ON SCHEMA app TO %; GRANT SELECT ON app.orders TO %",
			"may read 1 table(s) outside the copies, app.orders one of them", "DROP SCHEMA app CASCADE",
		},
	} {
		exec(strings.ReplaceAll(tc.give, "%", quoted))
		warnings, err := check()
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], tc.warning) {
			t.Errorf("%s: %q, %v; want one warning %q", tc.give, warnings, err, tc.warning)
		}
		exec(strings.ReplaceAll(tc.take, "%", quoted))
	}
}
