package throttle_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// until waits for a state; the time limit only ends a test that hangs.
func until(t *testing.T, g *throttle.Gate, what string, is func(throttle.State) bool) {
	t.Helper()
	eventually.True(t, what, func() bool { return is(g.State()) }, func() any { return g.State() })
}

// startStandby starts a standby of a server, in its directory, and returns the directory of the standby's socket.
func startStandby(t *testing.T, primary *pgtemp.Cluster) (socket string) {
	t.Helper()
	info, err := os.Stat(filepath.Join(primary.Dir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	attributes := &syscall.SysProcAttr{Setsid: true}
	if owner := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	command := func(name string, args ...string) *exec.Cmd {
		path := filepath.Join(primary.BinDir(), name)
		if _, err := os.Stat(path); err != nil { // the directory may hold links to the server's programs alone
			path = name
		}
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir, cmd.SysProcAttr, cmd.Env = primary.SocketDir(), attributes, []string{"LC_ALL=C", "TZ=UTC"}
		return cmd
	}
	data := filepath.Join(primary.SocketDir(), t.Name())
	if out, err := command("pg_basebackup", "-d", primary.DSN("postgres"), "-D", data, "-X", "stream", "-R", "-c", "fast", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var log strings.Builder
	server := command("postgres", "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+data)
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
		_ = os.RemoveAll(data)
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return data
}

// TestGuard: on a standby, replays are held while its replay lags behind.
func TestGuard(t *testing.T) {
	primary := pgtest.Start(t)
	socket := startStandby(t, primary)
	dsn := fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", socket, primary.Port())
	ctx, cancel := context.WithCancel(t.Context())
	g := throttle.New(throttle.Options{Guard: throttle.Guard{DSN: dsn, MaxLag: 50 * time.Millisecond, Every: 20 * time.Millisecond}})
	if held := g.State().Held; held == "" {
		t.Error("open before the guard looked")
	}
	var done sync.WaitGroup
	done.Go(func() { g.Run(ctx) })
	until(t, g, "no lag", func(s throttle.State) bool { return s.Held == "" })
	pgtest.Exec(t, primary.DSN("postgres"), "CREATE TABLE first (x int)")
	standby := pgtest.Connect(t, dsn)
	eventually.True(t, "the standby has replayed a transaction", func() bool {
		var there bool
		return standby.QueryRow(t.Context(), "SELECT to_regclass('first') IS NOT NULL").Scan(&there) == nil && there
	})
	pgtest.Exec(t, dsn, "SELECT pg_wal_replay_pause()")
	pgtest.Exec(t, primary.DSN("postgres"), "CREATE TABLE second (x int)")
	until(t, g, "a lag", func(s throttle.State) bool {
		return strings.Contains(s.Held, "behind; audit.max_lag allows 50ms") && s.Load.LagSeconds > 0.05 && s.Load.MaxLagSeconds == 0.05
	})
	pgtest.Exec(t, dsn, "SELECT pg_wal_replay_resume()")
	until(t, g, "no lag any more", func(s throttle.State) bool { return s.Held == "" })
	cancel()
	done.Wait()
}

// TestGuardWithoutRights: a role that may not see the lag of standbys causes a warning, and one that cannot connect
// holds replays.
func TestGuardWithoutRights(t *testing.T) {
	primary := pgtest.Start(t)
	startStandby(t, primary)
	pgtest.Exec(t, primary.DSN("postgres"), "CREATE ROLE blind LOGIN PASSWORD 'blind'")
	ctx, cancel := context.WithCancel(t.Context())
	g := throttle.New(throttle.Options{Guard: throttle.Guard{DSN: primary.UserDSN("postgres", "blind", "blind"), MaxLag: time.Minute, Every: 20 * time.Millisecond}})
	var done sync.WaitGroup
	done.Go(func() { g.Run(ctx) })
	until(t, g, "a warning with the grant", func(s throttle.State) bool {
		return s.Held == "" && strings.Contains(s.Warning, "GRANT pg_read_all_stats")
	})
	pgtest.Exec(t, primary.DSN("postgres"), "ALTER ROLE blind NOLOGIN")
	pgtest.Exec(t, primary.DSN("postgres"), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'blind'")
	until(t, g, "the lag cannot be read", func(s throttle.State) bool { return strings.Contains(s.Held, "cannot be read") })
	cancel()
	done.Wait()
}
