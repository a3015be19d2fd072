package neighbours_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestSourceChangesMeanwhile: while rows are copied, tables of the source cannot be altered, and changed rows are
// ignored: the copy shows the moment when it began.
func TestSourceChangesMeanwhile(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := shop(t)
	rows := `SELECT 'users ' || count(*) FROM %[1]s.users UNION ALL SELECT 'visits ' || count(*) FROM %[2]s.visits UNION ALL SELECT 'orders ' || count(*) FROM %[3]s.orders`
	before := lines(t, o.Source, fmt.Sprintf(rows, "public", "public", "app"))
	var once sync.Once
	o.Progress = func(p neighbours.Progress) {
		if !strings.HasPrefix(p.Step, "copy ") {
			return
		}
		once.Do(func() { // after the first table
			for _, sql := range []string{
				"ALTER TABLE visits ADD more int", "DROP TABLE posts CASCADE", "TRUNCATE visits", "ALTER TABLE app.orders DROP COLUMN total CASCADE",
				"ALTER TABLE comments RENAME TO remarks", "DROP SCHEMA app CASCADE",
			} {
				conn, err := pgx.Connect(context.Background(), o.Source)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = conn.Exec(context.Background(), "SET lock_timeout TO '50ms'; "+sql, pgx.QueryExecModeSimpleProtocol)
				var pg *pgconn.PgError
				if !errors.As(err, &pg) || pg.Code != "55P03" {
					t.Errorf("%s: %v, want it to wait for the copy", sql, err)
				}
				_ = conn.Close(context.Background())
			}
			run(t, o.Source, "DELETE FROM visits", "INSERT INTO users (id, email) SELECT g, 'late' || g FROM generate_series(9000, 9100) g", "DELETE FROM app.\"Order Items\"; DELETE FROM app.orders")
		})
	}
	create(t, o)
	if after := lines(t, o.Target, fmt.Sprintf(rows, "d0", "d0", "d0")); !slices.Equal(before, after) {
		t.Errorf("copied %v of %v", after, before)
	}
	verified(t, o)
}

// TestSourceIsAltered: tables that are altered, dropped and created again while the source is read give a set of one
// version, or an error with a remedy that leaves nothing behind.
func TestSourceIsAltered(t *testing.T) {
	t.Parallel()
	o := shop(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	conn, err := pgx.Connect(t.Context(), o.Source)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		defer conn.Close(context.Background())
		for ctx.Err() == nil {
			for _, sql := range []string{
				"ALTER TABLE visits ADD more int DEFAULT 3", "ALTER TABLE visits DROP more", "CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')",
				"DROP TABLE events_2025", "TRUNCATE visits", "INSERT INTO visits SELECT 'a', 'b', 1 FROM generate_series(1, 10)", "BEGIN; DROP TABLE visits; CREATE TABLE visits (mail text, page text, ms real); COMMIT",
			} {
				if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
			}
		}
	}()
	made, refused := 0, 0
	for range longtest.Count(1, 3) {
		_, err := neighbours.Create(t.Context(), o)
		switch {
		case err == nil:
			made++
			settled := o
			settled.Source = "" // it may have been altered again since
			verified(t, settled)
			if err := neighbours.Drop(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		case strings.Contains(err.Error(), "run the command again") || strings.Contains(err.Error(), "a table was dropped during the command"):
			refused++
			if left := lines(t, o.Target, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^(dpwatch_|d0|d1)'"); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		default:
			t.Errorf("got %v", err)
		}
	}
	stop()
	<-done
	t.Logf("%d sets, %d refused", made, refused)
	if _, err := neighbours.Create(t.Context(), o); err != nil { // at rest, whatever was refused before
		t.Fatal(err)
	}
	verified(t, o)
}

// TestRights: every missing privilege is reported with role, database and the GRANT statement; nothing is left behind,
// and after the printed statements create succeeds.
func TestRights(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for i, tc := range []struct{ name, source, target, want string }{
		{"usage of a schema of the source", "REVOKE USAGE ON SCHEMA app FROM %s", "", "of neighbours.source lacks rights at the source, database test_"},
		{"one table of the source", "REVOKE SELECT ON public.visits FROM %s", "", "run there: GRANT SELECT ON public.visits TO nbr_rights_"},
		{"a sequence of the source", "REVOKE SELECT ON SEQUENCE app.orders_seq_seq FROM %s", "", "run there: GRANT SELECT ON SEQUENCE app.orders_seq_seq TO nbr_rights_"},
		{"creating in the shadow database", "", "REVOKE CREATE ON DATABASE %d FROM %s", "of neighbours.target lacks rights in the shadow database test_"},
		{"connecting to the shadow database", "", "REVOKE CONNECT ON DATABASE %d FROM PUBLIC", "; GRANT CONNECT ON DATABASE"},
		{"creating types in a schema that is there", "", "REVOKE CREATE ON SCHEMA public FROM %s", "run there: GRANT USAGE, CREATE ON SCHEMA public TO nbr_rights_"},
		{
			"the schema of a type that is there", `CREATE SCHEMA bank; CREATE TYPE bank.kind AS ENUM ('x'); GRANT USAGE ON SCHEMA bank TO %s; ALTER TABLE users ADD kind bank.kind`,
			`CREATE SCHEMA bank; CREATE TYPE bank.kind AS ENUM ('x')`, "run there: GRANT USAGE ON SCHEMA bank TO nbr_rights_",
		},
		{"the schema of a public table", "", `CREATE SCHEMA "My ref"; CREATE TABLE "My ref"."shops" (id int)`, `run there: GRANT USAGE ON SCHEMA "My ref" TO nbr_rights_`},
		{
			"the schema of a function that a definition calls", "CREATE SCHEMA dp; CREATE FUNCTION dp.f(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'; GRANT USAGE ON SCHEMA dp TO %s; CREATE INDEX ON users (dp.f(id))",
			"CREATE SCHEMA dp; CREATE FUNCTION dp.f(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'", `: permission denied for schema dp; run in that database, as the owner of the object: GRANT USAGE ON SCHEMA "dp" TO "nbr_rights_`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := shop(t)
			o.Public = append(o.Public, table("My ref.shops"))
			role := fmt.Sprintf("nbr_rights_%d", i)
			database := o.Target[strings.LastIndex(o.Target, "/")+1 : strings.Index(o.Target, "?")]
			run(t, o.Source, "CREATE ROLE "+role+" LOGIN PASSWORD 'x'", "GRANT USAGE ON SCHEMA public, app TO "+role,
				"GRANT SELECT ON ALL TABLES IN SCHEMA public, app TO "+role, "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public, app TO "+role)
			run(t, o.Target, "GRANT CREATE ON DATABASE "+database+" TO "+role, "GRANT CREATE ON SCHEMA public TO "+role, "GRANT SELECT ON public.products TO "+role)
			names := strings.NewReplacer("%s", role, "%d", database)
			run(t, o.Source, names.Replace(tc.source))
			run(t, o.Target, names.Replace(tc.target))
			admins := []string{o.Source, o.Target}
			o.Source, o.Target = as(t, o.Source, role), as(t, o.Target, role)
			_, err := neighbours.Create(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if left := lines(t, admins[1], "SELECT nspname FROM pg_namespace WHERE nspname ~ '^(dpwatch_|d0|d1_|app)'"); len(left) > 0 {
				t.Errorf("left %v", left)
			}
			for range 3 { // what was hidden by a missing privilege may lack another one
				for line := range strings.Lines(err.Error()) {
					for _, grant := range regexp.MustCompile(`GRANT [^;\n]+`).FindAllString(line, -1) {
						run(t, admins[map[bool]int{true: 0, false: 1}[strings.Contains(line, "at the source")]], grant)
					}
				}
				if _, err = neighbours.Create(t.Context(), o); err == nil {
					return
				}
			}
			t.Errorf("after the printed statements: %v", err)
		})
	}
}

// smallDisk creates a tablespace with the given number of megabytes.
func smallDisk(t *testing.T, name string, megabytes int) {
	t.Helper()
	admin := pgtest.Start(t).DSN("postgres")
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", megabytes), "tmpfs", dir).CombinedOutput()
	if err != nil {
		t.Skipf("a small file system cannot be mounted here, which needs root: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	data, err := os.Stat(lines(t, admin, "SELECT setting FROM pg_settings WHERE name = 'data_directory'")[0])
	if err != nil {
		t.Fatal(err)
	}
	owner := data.Sys().(*syscall.Stat_t)
	for _, at := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} { // the server's user must have access
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place := filepath.Join(dir, "space")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(place, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	run(t, admin, "CREATE TABLESPACE "+name+" LOCATION "+"'"+place+"'")
	t.Cleanup(func() { run(t, admin, "DROP TABLESPACE "+name) })
}

// TestNoSpace: a full disk ends create and refresh with a remedy; what was created is removed, the previous set stays,
// and with less to copy the next command succeeds.
func TestNoSpace(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	smallDisk(t, "nbr_small", 24)
	o := shop(t)
	database := o.Target[strings.LastIndex(o.Target, "/")+1 : strings.Index(o.Target, "?")]
	run(t, o.Target, "ALTER DATABASE "+database+" SET default_tablespace TO nbr_small")
	run(t, o.Source, "INSERT INTO visits SELECT 'much', repeat('x', 100), g FROM generate_series(1, 300000) g")
	empty := state(t, o.Target)
	_, err := neighbours.Create(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "the server has too little space for the copies: free space, request fewer neighbours, or set neighbours.method to view") {
		t.Fatalf("create on a full disk: %v", err)
	}
	gone := func() {
		t.Helper()
		if err := neighbours.Drop(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if after := state(t, o.Target); !slices.Equal(empty, after) {
			t.Errorf("left %v", after)
		}
	}
	gone()
	run(t, o.Source, "DELETE FROM visits WHERE mail = 'much'")
	set := create(t, o)
	run(t, o.Source, "INSERT INTO visits SELECT 'much', repeat('x', 100), g FROM generate_series(1, 300000) g")
	if _, err := neighbours.Refresh(t.Context(), o); err == nil || !strings.Contains(err.Error(), "too little space for the copies") {
		t.Fatalf("refresh on a full disk: %v", err)
	}
	if got, err := neighbours.Current(t.Context(), o.Target, o.Control); err != nil || got.Epoch != set.Epoch {
		t.Errorf("after the refresh: %+v, %v", got, err)
	}
	verified(t, o)
	gone()
}
