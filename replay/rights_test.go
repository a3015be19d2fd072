package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
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
			"may read besides the copies: app.orders", "DROP SCHEMA app CASCADE",
		},
		{
			"CREATE SCHEMA app; CREATE TABLE app.orders (x int); CREATE SEQUENCE app.numbers; GRANT USAGE ON SCHEMA app TO PUBLIC; GRANT SELECT ON app.orders, app.numbers TO PUBLIC",
			"may read besides the copies, as PUBLIC may: app.numbers, app.orders: replays need SELECT on the copies alone: REVOKE SELECT ON TABLE app.numbers, app.orders FROM PUBLIC", "DROP SCHEMA app CASCADE",
		},
		{
			"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO %",
			"in schema public, by default", "ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM %",
		},
		{
			"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO %",
			"creates later, by default", "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM %",
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

// A right on an original is a fault, however the role has it; the statements that the error prints take it away.
func TestRightsOnOriginals(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	role := pgtest.ReplayRole(t, dsn, "d0", "d1")
	cfg, err := pgx.ParseConfig(role)
	if err != nil {
		t.Fatal(err)
	}
	group := cfg.User + "_group"
	pgtest.Exec(t, dsn, strings.ReplaceAll(`CREATE ROLE % NOLOGIN; CREATE ROLE %_outer NOLOGIN; GRANT % TO %_outer;
		CREATE SCHEMA app; CREATE TABLE app.people AS TABLE d0.people; CREATE TABLE app.countries (x int);
		CREATE TABLE public.people (id int) PARTITION BY RANGE (id); CREATE TABLE public.people_1 PARTITION OF public.people FOR VALUES FROM (0) TO (10);
		CREATE MATERIALIZED VIEW public.summary AS SELECT count(*) FROM app.people;
		CREATE SCHEMA d2; CREATE TABLE d2.people AS TABLE d1.people; GRANT USAGE ON SCHEMA d2 TO PUBLIC; GRANT SELECT ON d2.people TO PUBLIC;
		CREATE SCHEMA shop_d0; CREATE TABLE shop_d0.people (x int); CREATE TABLE shop_d0.shops (x int); GRANT SELECT ON shop_d0.people TO PUBLIC;
		CREATE SCHEMA shop_d1; CREATE TABLE shop_d1.people (x int); CREATE TABLE shop_d1.shops (x int)`, "%", group))
	t.Cleanup(func() {
		admin, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer admin.Close(context.Background())
		if _, err := admin.Exec(context.Background(), strings.ReplaceAll("DROP OWNED BY %, %_outer; DROP ROLE %, %_outer", "%", group)); err != nil {
			t.Error(err)
		}
	})
	opt := options(role)
	opt.Originals = []string{"app"}
	p := player(t, opt)
	for _, tc := range []struct{ give, want, take string }{
		{give: "", want: ""},
		{give: "GRANT SELECT ON app.people TO " + cfg.User, want: "may read 1 original(s) of the copies, app.people one of them"},
		{give: "GRANT SELECT (id) ON app.people TO " + cfg.User, want: "may read 1 original(s) of the copies, app.people one of them"},
		{give: "GRANT SELECT ON public.people TO PUBLIC", want: "may read 1 original(s) of the copies, as PUBLIC may, public.people one of them"},
		{give: "GRANT SELECT ON public.people_1 TO PUBLIC", want: "as PUBLIC may, public.people_1 one of them"},
		{give: "GRANT SELECT ON public.summary TO PUBLIC", want: "as PUBLIC may, public.summary one of them"},
		{give: "GRANT SELECT ON app.people TO " + group + "; GRANT " + group + " TO " + cfg.User, want: "as a member of " + group + ", app.people one of them"},
		{give: "GRANT " + group + "_outer TO " + cfg.User, want: "as a member of " + group + "_outer, app.people one of them"},
		{give: "GRANT pg_read_all_data TO " + cfg.User, want: "may read 4 original(s) of the copies as a member of pg_read_all_data"},
	} {
		pgtest.Exec(t, dsn, tc.give)
		_, err := p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"})
		var setup *replay.SetupError
		if tc.want == "" {
			if err != nil {
				t.Errorf("without a right: %v", err)
			}
			continue
		}
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.give, err, tc.want)
		}
		all, err := p.Excess(t.Context(), []string{"d0", "d1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			pgtest.Exec(t, dsn, e.Fix)
		}
		if _, err := p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"}); err != nil {
			t.Errorf("after %+v: %v", all, err)
		}
	}
	pgtest.Exec(t, dsn, "ALTER TABLE app.people OWNER TO "+cfg.User)
	warnings, err := p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "owns 1 original(s) of the copies, app.people one of them") {
		t.Errorf("an owner: %q, %v; want one warning", warnings, err)
	}
	pgtest.Exec(t, dsn, "ALTER TABLE app.people OWNER TO CURRENT_USER")
}
