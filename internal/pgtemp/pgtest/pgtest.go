// Package pgtest gives tests a real PostgreSQL: one temporary cluster per test binary, one database per test.
//
// It owns the cluster's life within a test binary. A package's tests contain
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// and use Start or Database. Without PostgreSQL binaries tests fail and say what to install; they are never skipped.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// shared is the single cluster of this process. Tests share nothing else.
var shared struct {
	once    sync.Once
	cluster *pgtemp.Cluster
	err     error
	number  atomic.Int64
}

// Main runs the tests and stops the cluster, if one was started. TestMain needs to call nothing else: the testing
// package exits with the right status itself.
func Main(m *testing.M) {
	m.Run()
	shared.once.Do(func() { shared.err = fmt.Errorf("the tests are over") })
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// memory is Linux's in-memory file system: creating and removing files there costs half as much.
const memory = "/dev/shm"

// getenv is os.Getenv, with TMPDIR in memory if there is room for databases.
func getenv(name string) string {
	const room = 4 << 30
	var s syscall.Statfs_t
	if name == "TMPDIR" && syscall.Statfs(memory, &s) == nil && s.Bavail*uint64(s.Bsize) >= room {
		return memory
	}
	return os.Getenv(name)
}

// NeedsServer skips the test under go test -short, which runs the tests that need no server (make test-fast).
func NeedsServer(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: needs a PostgreSQL server; make test runs it")
	}
}

// Start returns the cluster that all tests of the binary share; the first call starts it. Tests must not stop it. Under
// go test -short it skips the test.
func Start(t testing.TB) *pgtemp.Cluster {
	t.Helper()
	NeedsServer(t)
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		shared.cluster, shared.err = pgtemp.Start(ctx, pgtemp.Options{
			Getenv: getenv,
			// Without autovacuum plans do not depend on when it runs.
			Settings: map[string]string{"max_wal_size": "256MB", "shared_buffers": "16MB", "autovacuum": "off", "jit": "off"},
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Database creates an empty database for the test, drops it when the test ends, and returns its connection URL (TCP,
// superuser). Remaining sessions are ended then.
func Database(t testing.TB) string {
	t.Helper()
	c := Start(t)
	name := fmt.Sprintf("test_%d", shared.number.Add(1))
	if err := c.CreateDatabase(context.Background(), name); err != nil {
		t.Fatalf("create database %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := c.DropDatabase(context.Background(), name); err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	return c.DSN(name)
}

// Connect opens a session that is closed at the end of the test.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatalf("connect to %s: %v", dsn, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Exec runs scripts, each of any number of statements, in one new session.
func Exec(t testing.TB, dsn string, scripts ...string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatalf("connect to %s: %v", dsn, err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // nothing to be done about it
	for _, script := range scripts {
		if _, err := conn.Exec(context.Background(), script, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v\n%s", err, script)
		}
	}
}
