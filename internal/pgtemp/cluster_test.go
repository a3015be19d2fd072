package pgtemp_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

func start(t *testing.T, o pgtemp.Options) *pgtemp.Cluster {
	t.Helper()
	c, err := pgtemp.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var got string
	if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStartAndStopTwice(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for range 2 {
		c := start(t, pgtemp.Options{})
		for name, dsn := range map[string]string{"tcp": c.DSN("postgres"), "socket": c.SocketDSN("postgres")} {
			if got := query(t, dsn, "select current_user || ' ' || current_setting('server_encoding')"); got != "postgres UTF8" {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if exists(c.Dir()) || running(c.PID()) {
			t.Errorf("after Stop: directory there: %t, process there: %t", exists(c.Dir()), running(c.PID()))
		}
		if err := c.Stop(); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	}
}

func TestStopEndsOpenSessions(t *testing.T) {
	t.Parallel()
	c := start(t, pgtemp.Options{})
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the session outlived the server")
	}
	<-c.Done()
}

func TestPrivate(t *testing.T) {
	t.Parallel()
	c := start(t, pgtemp.Options{})

	want := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		want = 0o710 // the server's account must be able to traverse it
	}
	got := map[string]os.FileMode{}
	for _, dir := range []string{".", "data", "s"} {
		info, err := os.Stat(filepath.Join(c.Dir(), dir))
		if err != nil {
			t.Fatal(err)
		}
		got[dir] = info.Mode().Perm()
	}
	if diff := cmp.Diff(map[string]os.FileMode{".": want, "data": 0o700, "s": 0o700}, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}

	_, err := pgx.Connect(t.Context(), c.UserDSN("postgres", c.User(), "wrong"))
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("wrong password: %v, want SQLSTATE 28P01", err)
	}
	if got := query(t, c.SocketDSN("postgres"), "select left(rolpassword, 16) from pg_authid where rolname = 'postgres'"); got != "SCRAM-SHA-256$1:" {
		t.Errorf("password stored as %q", got)
	}
	if got := query(t, c.SocketDSN("postgres"), "show listen_addresses"); got != "127.0.0.1" {
		t.Errorf("listens on %q", got)
	}
	if found, err := filepath.Glob(filepath.Join(c.Dir(), "*", "password")); err != nil || found != nil {
		t.Errorf("password file left: %v, %v", found, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	odd := `it's a \ path`
	c := start(t, pgtemp.Options{Settings: map[string]string{"work_mem": "7MB", "dp.epsilon": "0.5", "cluster_name": odd}})
	for name, want := range map[string]string{"work_mem": "7MB", "dp.epsilon": "0.5", "cluster_name": odd, "fsync": "off"} {
		if got := query(t, c.DSN("postgres"), "select current_setting('"+name+"')"); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	c := start(t, pgtemp.Options{})
	name := `odd "name"/?%`
	if err := c.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if got := query(t, c.DSN(name), "select current_database()"); got != name {
		t.Errorf("tcp: database %q", got)
	}
	if got := query(t, c.SocketDSN(name), "select current_database()"); got != name {
		t.Errorf("socket: database %q", got)
	}
	if err := c.CreateDatabase(t.Context(), name); err == nil {
		t.Error("created twice")
	}
	for range 2 {
		if err := c.DropDatabase(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	const n = 3
	var ports sync.Map
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			c, err := pgtemp.Start(t.Context(), pgtemp.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, taken := ports.LoadOrStore(c.Port(), true); taken {
				t.Errorf("port %d twice", c.Port())
			}
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestServerThatDiesIsNoticed(t *testing.T) {
	t.Parallel()
	c := start(t, pgtemp.Options{})
	if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if exists(c.Dir()) {
		t.Error("directory left")
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := start(t, pgtemp.Options{Log: &log})
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Success", "ready to accept connections", "shut down"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, log.String())
		}
	}
	if !strings.Contains(c.LogTail(), "shut down") {
		t.Errorf("the tail lacks the last line:\n%s", c.LogTail())
	}
}

// TestHBA: the caller's lines come first, so that they can admit a role without a password.
func TestHBA(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	c := start(t, pgtemp.Options{HBA: []string{"host all guest 127.0.0.1/32 trust"}})
	admin, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), "CREATE ROLE guest LOGIN"); err != nil {
		t.Fatal(err)
	}
	if got := query(t, c.UserDSN("postgres", "guest", ""), "SELECT current_user::text"); got != "guest" {
		t.Errorf("current_user is %s", got)
	}
	if _, err := pgtemp.Start(t.Context(), pgtemp.Options{HBA: []string{"host all\nall"}}); err == nil || !strings.Contains(err.Error(), "one line") {
		t.Errorf("two lines in one: %v", err)
	}
}
