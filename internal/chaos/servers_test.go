//go:build linux

package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/program"
)

// call identifies the calls of the noise function by a query on one copy, which the number of its rows identifies.
type call struct{ query, rows int }

// calls counts the lines of the server's log that the noise function writes. It is an io.Writer.
type calls struct {
	mu    sync.Mutex // guards the fields below
	rest  []byte     // an incomplete line
	n     map[call]int
	marks int // the last line of mark
}

var logged = regexp.MustCompile(`LOG:  chaos (call (\d+) (\d+)|mark (\d+))`)

func (c *calls) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	for {
		line, rest, complete := bytes.Cut(c.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		c.rest = rest
		if m := logged.FindSubmatch(line); m != nil && len(m[4]) > 0 {
			c.marks = number(m[4])
		} else if m != nil {
			c.n[call{number(m[2]), number(m[3])}]++
		}
	}
}

func number(digits []byte) int {
	n, _ := strconv.Atoi(string(digits)) // only digits
	return n
}

// read returns the calls of all sessions that have ended: their lines precede one that is written now.
func (c *calls) read(t *testing.T, conn *pgx.Conn) map[call]int {
	t.Helper()
	c.mu.Lock()
	next := c.marks + 1
	c.mu.Unlock()
	execute(t, conn, fmt.Sprintf("DO 'BEGIN RAISE LOG ''chaos mark %d''; END'", next))
	out := map[call]int{}
	eventually.True(t, "the mark is in the server's log", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for k, n := range c.n {
			out[k] = n
		}
		return c.marks == next
	})
	return out
}

// crashing is a PostgreSQL server that can be stopped at once, as by a crash, and started again.
type crashing struct {
	*pgtemp.Cluster
	cmd *exec.Cmd // since the first restart
}

func startServer(t *testing.T, o pgtemp.Options) *pgtemp.Cluster {
	t.Helper()
	c, err := pgtemp.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func startCrashing(t *testing.T) *crashing {
	t.Helper()
	// A transaction that was committed survives a crash of the server, though not one of the machine.
	c := &crashing{Cluster: startServer(t, pgtemp.Options{Settings: map[string]string{"synchronous_commit": "on", "shared_buffers": "16MB"}})}
	t.Cleanup(func() { // before that of the cluster
		if c.cmd != nil {
			c.crash(t)
		}
	})
	return c
}

// crash stops the server without a checkpoint (immediate shutdown).
func (c *crashing) crash(t *testing.T) {
	t.Helper()
	pid := c.PID()
	if c.cmd != nil {
		pid = c.cmd.Process.Pid
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		t.Errorf("stop the server: %v", err)
	}
	if c.cmd != nil {
		_ = c.cmd.Wait()
		return
	}
	<-c.Done()
}

// restart starts the server after crash; its log must say that it was not shut down and recovers from its WAL.
func (c *crashing) restart(t *testing.T) {
	t.Helper()
	data := filepath.Join(c.Dir(), "data")
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGQUIT}
	if owner := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	c.cmd = exec.Command(filepath.Join(c.BinDir(), "postgres"), "-D", data)
	c.cmd.Dir, c.cmd.SysProcAttr, c.cmd.Env = c.SocketDir(), attributes, []string{"LC_ALL=C", "TZ=UTC"}
	log := &program.Journal{}
	c.cmd.Stderr = log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the server is up again", func() bool {
		conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
	if !strings.Contains(log.String(), "automatic recovery in progress") {
		t.Errorf("the server had not crashed:\n%s", log)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}
