package rewrite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// binaries returns the directory of initdb and postgres.
func binaries(t *testing.T) string {
	t.Helper()
	dirs := []string{os.Getenv("DPWATCH_PG_BINDIR")}
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	usual, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(usual)
	for _, dir := range append(dirs, usual...) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); dir != "" && err == nil {
			return dir
		}
	}
	t.Fatal("no PostgreSQL server binaries: install them or set DPWATCH_PG_BINDIR")
	return ""
}

// startCluster starts a PostgreSQL server that ends with the test and returns its socket directory. As root it
// runs as the user postgres.
func startCluster(t *testing.T) string {
	t.Helper()
	bin := binaries(t)
	dir, err := os.MkdirTemp("", "rewrite-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr.Credential = postgresUser(t, dir)
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "jit=off", "-c", "shared_buffers=16MB", "-c", "max_parallel_workers_per_gather=0")
	server.SysProcAttr, server.Dir = attr, dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGQUIT)
		server.Wait()
	})
	return dir
}

// postgresUser gives dir to the user postgres and returns its credential.
func postgresUser(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("root cannot run a server, and there is no other user for it: %v", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid))); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// connect waits until the server answers and connects.
func connect(t *testing.T, socketDir, database string) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dsn := "host=" + socketDir + " user=postgres dbname=" + database
	for {
		conn, err := pgconn.Connect(ctx, dsn)
		if err == nil {
			t.Cleanup(func() { conn.Close(context.Background()) })
			return conn
		}
		select {
		case <-ctx.Done():
			t.Fatalf("connect to %s: %v", database, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// run executes a script and fails the test on any error.
func run(t *testing.T, conn *pgconn.PgConn, script string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
}
