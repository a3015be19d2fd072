package showcase_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

const (
	appPassword    = "it's the app"
	replayPassword = "replay"
)

// world is set up once for the test binary: Setup creates databases and roles with fixed names.
var world struct {
	once sync.Once
	err  error
}

func TestMain(m *testing.M) { pgtest.Main(m) }

func setup(t testing.TB) *pgtemp.Cluster {
	t.Helper()
	c := pgtest.Start(t)
	world.once.Do(func() {
		o := showcase.Options{AppPassword: appPassword, ReplayPassword: replayPassword}
		if world.err = showcase.Setup(context.Background(), c.DSN("postgres"), o); world.err == nil {
			world.err = copies(context.Background(), c)
		}
	})
	if world.err != nil {
		t.Fatal(world.err)
	}
	return c
}

// copies makes the neighbours as the demo does.
func copies(ctx context.Context, c *pgtemp.Cluster) error {
	users, transactions := ident.ParseTable("public.users"), ident.ParseTable("public.transactions")
	_, err := neighbours.Create(ctx, neighbours.Options{
		Source: c.DSN(showcase.ShopDatabase), Target: c.DSN(showcase.ShadowDatabase), Control: "dpwatch",
		D0: showcase.D0, D1: []string{showcase.D1}, Protected: []ident.Table{users, transactions},
		Unit: neighbours.Unit{Table: users, Key: []string{"id"}}, Relation: neighbours.Remove, Method: neighbours.Copy,
		Choose: []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}}, Grant: []string{showcase.ReplayRole},
	})
	return err
}

func connect(t testing.TB, dsn string, statements ...string) *pgx.Conn {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return conn
}

// replica returns a session like that of a replay: the auditor's role, the neighbour first in the search path.
func replica(t testing.TB, schema string, q showcase.Query) *pgx.Conn {
	t.Helper()
	c := setup(t)
	conn := connect(t, c.UserDSN(showcase.ShadowDatabase, showcase.ReplayRole, replayPassword), q.Setup...)
	if _, err := conn.Exec(context.Background(), "set search_path to "+schema+", public"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func state(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func TestSetupLoadsTheData(t *testing.T) {
	t.Parallel()
	c := setup(t)
	d0 := showcase.Generate(showcase.Seed)
	for _, w := range []struct {
		database, schema string
		want             showcase.Data
	}{
		{showcase.ShopDatabase, "public", d0},
		{showcase.ShadowDatabase, showcase.D0, d0},
		{showcase.ShadowDatabase, showcase.D1, d0.Without(showcase.HeavyUser)},
	} {
		t.Run(w.database+"_"+w.schema, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, c.DSN(w.database), "set search_path to "+w.schema)
			var got showcase.Data
			rows, err := conn.Query(t.Context(), "select * from users order by id") // physical column order
			if err != nil {
				t.Fatal(err)
			}
			if got.Users, err = pgx.CollectRows(rows, pgx.RowToStructByPos[showcase.User]); err != nil {
				t.Fatal(err)
			}
			rows, err = conn.Query(t.Context(), "select * from transactions order by id")
			if err != nil {
				t.Fatal(err)
			}
			if got.Transactions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[showcase.Transaction]); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(w.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// Whether every page is all-visible depends on concurrent sessions, such as autovacuum.
			var indexes, vacuumed int
			for range 600 { // servers before 15 report with a delay
				err = conn.QueryRow(t.Context(), `select (select count(*) from pg_indexes where schemaname = $1 and tablename in ('users', 'transactions')),
  (select count(*) from pg_class c join pg_stat_user_tables s on s.relid = c.oid where c.oid in ('users'::regclass, 'transactions'::regclass)
    and c.reltuples > 0 and s.last_vacuum is not null and s.last_analyze is not null)`,
					w.schema).Scan(&indexes, &vacuumed)
				if err != nil || vacuumed == 2 {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err != nil || indexes != 5 || vacuumed != 2 {
				t.Errorf("%d indexes, %d tables vacuumed and analysed (%v)", indexes, vacuumed, err)
			}
		})
	}
}

func TestSetupTwiceIsAFault(t *testing.T) {
	t.Parallel()
	c := setup(t)
	err := showcase.Setup(t.Context(), c.DSN("postgres"), showcase.Options{AppPassword: "x", ReplayPassword: "y"})
	if state(err) != "42P04" {
		t.Errorf("got %v, want SQLSTATE 42P04: the database exists", err)
	}
	connect(t, c.UserDSN(showcase.ShopDatabase, showcase.AppRole, appPassword)) // nothing has changed
	if err := showcase.Setup(t.Context(), c.DSN("postgres"), showcase.Options{AppPassword: "x"}); err == nil {
		t.Error("a role without a password was accepted")
	}
}

func TestLoadLeavesTablesAlone(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Database(t), `create schema "odd ""name"""`, `create table "odd ""name""".users (mine int)`)
	d := showcase.Generate(1)
	if err := showcase.Load(t.Context(), conn, `odd "name"`, d); state(err) != "42P07" {
		t.Errorf("got %v, want SQLSTATE 42P07: the table exists", err)
	}
	if _, err := conn.Exec(t.Context(), `drop table "odd ""name""".users`); err != nil {
		t.Fatal(err)
	}
	if err := showcase.Load(t.Context(), conn, `odd "name"`, d); err != nil {
		t.Error(err)
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	c := setup(t)
	app := c.UserDSN(showcase.ShopDatabase, showcase.AppRole, appPassword)
	replay := c.UserDSN(showcase.ShadowDatabase, showcase.ReplayRole, replayPassword)
	for _, r := range []struct{ name, dsn, sql, want string }{
		{"app_reads", app, "select count(*) from users", ""},
		{"app_writes_notes", app, "insert into notes (body) values ('x')", ""},
		{"app_does_not_write_users", app, "delete from users", "42501"},
		{"app_makes_no_tables", app, "create table t (x int)", "42501"},
		{"replay_reads_d0", replay, "select count(*) from d0.users", ""},
		{"replay_reads_d1", replay, "select count(*) from d1.transactions", ""},
		{"replay_reads_public_table", replay, "select count(*) from stores", ""},
		{"replay_calls_functions", replay, "select noisy(1, 1)", ""},
		{"replay_is_read_only", replay, "insert into d0.users values (1000)", "25006"},
		{"replay_has_no_right_to_write", replay, "set transaction read write; delete from d0.users", "42501"},
		{"replay_has_no_notes", replay, "select * from notes", "42501"},
		{"replay_makes_temporary_tables", replay, "set transaction read write; create temp table t (x int)", ""},
		{"production_tables_are_not_in_the_shadow", replay, "select * from public.users", "42P01"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			_, err := connect(t, r.dsn).Exec(t.Context(), r.sql)
			if got := state(err); got != r.want || (err == nil) != (r.want == "") {
				t.Errorf("got %v, want SQLSTATE %q", err, r.want)
			}
		})
	}
	for name, dsn := range map[string]string{
		"replay_does_not_enter_shop": c.UserDSN(showcase.ShopDatabase, showcase.ReplayRole, replayPassword),
		"app_does_not_enter_shadow":  c.UserDSN(showcase.ShadowDatabase, showcase.AppRole, appPassword),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := pgx.Connect(t.Context(), dsn); state(err) != "42501" {
				t.Errorf("got %v, want SQLSTATE 42501", err)
			}
		})
	}
}

func TestTheClientCanSendAllQueries(t *testing.T) {
	t.Parallel()
	c := setup(t)
	names := map[string]bool{}
	for _, q := range showcase.Queries() {
		if names[q.Name] {
			t.Errorf("two queries are named %q", q.Name)
		}
		names[q.Name] = true
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			if q.Simple && q.Params != nil {
				t.Error("parameters in the simple protocol")
			}
			conn := connect(t, c.UserDSN(showcase.ShopDatabase, showcase.AppRole, appPassword), q.Setup...)
			_, err := conn.Exec(t.Context(), q.SQL, arguments(q)...)
			if (err != nil) != q.Fails {
				t.Errorf("got %v, fails as planned: %t", err, q.Fails)
			}
			if q.Then != "" {
				if _, err := conn.Exec(t.Context(), q.Then); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if want := len(showcase.Honest()) + len(showcase.Broken()) + len(showcase.Causes()) + len(showcase.Ordinary()); len(names) != want {
		t.Errorf("%d queries, want all %d", len(names), want)
	}
}

// arguments returns the arguments for pgx: the protocol first, then the parameters.
func arguments(q showcase.Query) []any {
	mode := pgx.QueryExecModeCacheStatement
	if q.Simple {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	return append([]any{mode}, q.Params...)
}
