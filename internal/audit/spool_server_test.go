package audit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// restartServer starts the server of a cluster whose process was killed; it ends with the test.
func restartServer(t *testing.T, c *pgtemp.Cluster) {
	t.Helper()
	data := filepath.Join(c.Dir(), "data")
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	attributes := &syscall.SysProcAttr{Setsid: true}
	if owner := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	cmd := exec.Command(filepath.Join(c.BinDir(), "postgres"), "-D", data)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = c.SocketDir(), attributes, []string{"LC_ALL=C", "TZ=UTC"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
	})
	eventually.True(t, "the server is up again", func() bool {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(t.Context(), c.DSN("postgres")); err == nil {
			err = conn.Close(t.Context())
		}
		return err == nil
	}, func() any { return err })
}

// TestSpoolServerKilled: the ledger's server crashes. What three auditors capture until it is started again, the first
// with the ledger open, is in the ledger once.
func TestSpoolServerKilled(t *testing.T) {
	t.Parallel()
	longtest.SkipFast(t)
	server, err := pgtemp.Start(t.Context(), pgtemp.Options{Settings: map[string]string{"shared_buffers": "16MB"}}) // of its own: the test kills it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	l, _, up := spooled(t, 64<<20)
	up.Store(true)
	l.ledger.DSN = server.DSN("postgres")
	executions, different := int(longtest.Count(6000, 50_000)), int(longtest.Count(300, 3000))
	stop := l.begin(t)
	l.restored(t)
	if err := syscall.Kill(server.PID(), syscall.SIGQUIT); err != nil { // as a crash: without a checkpoint
		t.Fatal(err)
	}
	<-server.Done()
	offered := 0
	for i := range 3 {
		if i > 0 {
			l.restart(t, nil)
			stop = l.begin(t)
		}
		n := (executions - offered) / (3 - i)
		l.offerOf(t, n, different)
		offered += n
		if i < 2 {
			stop()
		}
	}
	defer func() { stop() }()
	restartServer(t, server)
	conn := pgtest.Connect(t, l.ledger.DSN)
	eventually.True(t, "every execution is counted", func() bool {
		n, skipped := l.counted(t, conn)
		return n == executions && skipped == 0 && l.Status().Ledger.Spooled == 0
	}, func() any { n, skipped := l.counted(t, conn); return []any{n, skipped, l.Status().Ledger} })
	var queries int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM dpwatch_ledger.queries").Scan(&queries); err != nil || queries != different {
		t.Errorf("%d queries, want %d (%v)", queries, different, err)
	}
	if lost := l.Status().Ledger.Lost; lost != 0 {
		t.Errorf("%d lost", lost)
	}
}
