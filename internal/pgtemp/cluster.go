package pgtemp

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Cluster is a running temporary server. It is safe for concurrent use.
type Cluster struct {
	dir      *directory
	account  account
	binDir   string
	password string
	port     int
	process  process
	dog      *watchdog
	log      *tail

	stop    sync.Once
	stopErr error
}

// Host returns the server's listen address.
func (c *Cluster) Host() string { return "127.0.0.1" }

// Port returns the TCP port, which is also part of the socket's name.
func (c *Cluster) Port() int { return c.port }

// User returns the name of the superuser.
func (c *Cluster) User() string { return "postgres" }

// Password returns the superuser's password: random for every cluster, letters and digits only.
func (c *Cluster) Password() string { return c.password }

// BinDir returns the directory of the server binaries in use.
func (c *Cluster) BinDir() string { return c.binDir }

// Dir returns the private directory of the cluster.
func (c *Cluster) Dir() string { return c.dir.path }

// SocketDir returns the directory of the Unix-domain socket.
func (c *Cluster) SocketDir() string { return c.dir.sockets() }

// PID returns the process id of the server (the postmaster).
func (c *Cluster) PID() int { return c.process.cmd.Process.Pid }

// Done returns a channel that is closed when the server process has ended, by Stop or otherwise.
func (c *Cluster) Done() <-chan struct{} { return c.process.ended }

// LogTail returns the last lines of the server's log. They can contain the text of failing statements.
func (c *Cluster) LogTail() string { return c.log.lines() }

// DSN returns a connection URL over TCP for the superuser, including the password.
func (c *Cluster) DSN(database string) string { return c.UserDSN(database, c.User(), c.password) }

// UserDSN returns a connection URL over TCP for any role.
func (c *Cluster) UserDSN(database, user, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(user, password),
		Host:     c.Host() + ":" + strconv.Itoa(c.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// SocketDSN returns a connection URL over the Unix-domain socket for the superuser; it needs no password.
func (c *Cluster) SocketDSN(database string) string {
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(c.User()),
		Path:   "/" + database,
		RawQuery: url.Values{
			"host":    {c.dir.sockets()},
			"port":    {strconv.Itoa(c.port)},
			"sslmode": {"disable"},
		}.Encode(),
	}
	return u.String()
}

// CreateDatabase creates an empty database (UTF-8, C locale) with exactly the given name.
func (c *Cluster) CreateDatabase(ctx context.Context, name string) error {
	sql := "create database " + ident.Quote(name) + " template template0"
	version, _ := os.ReadFile(filepath.Join(c.dir.data(), "PG_VERSION"))
	if major, err := strconv.Atoi(strings.TrimSpace(string(version))); err == nil && major >= 15 {
		sql += " strategy file_copy" // without fsync it is cheaper than the default, which writes every page to the WAL
	}
	return c.exec(ctx, sql)
}

// DropDatabase drops the database and ends its sessions. It succeeds if there is no such database. The server waits
// five seconds for those sessions; if they take longer, DropDatabase retries for a minute.
func (c *Cluster) DropDatabase(ctx context.Context, name string) error {
	for end := time.Now().Add(time.Minute); ; {
		err := c.exec(ctx, "drop database if exists "+ident.Quote(name)+" with (force)")
		var inUse *pgconn.PgError
		if !errors.As(err, &inUse) || inUse.Code != "55006" || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

func (c *Cluster) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, c.SocketDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// Stop stops the server (SIGINT, which ends open sessions; after 10 s SIGQUIT; after another 5 s SIGKILL) and removes
// the directory. It is idempotent and safe for concurrent use; all calls return the result of the first. The error
// names what could not be removed.
func (c *Cluster) Stop() error {
	c.stop.Do(func() { c.stopErr = c.shutdown() })
	return c.stopErr
}

func (c *Cluster) shutdown() error {
	var err error
	if c.process.cmd != nil && !c.process.stop() {
		err = errors.New("temporary postgresql: the server does not end: kill process " + strconv.Itoa(c.PID()))
	}
	err = errors.Join(err, c.dir.remove())
	c.dog.release()
	return err
}

// process is the server's process.
type process struct {
	cmd   *exec.Cmd     // nil before the first attempt
	ended chan struct{} // closed when it has ended
}

// stop stops the server and reports whether it has ended.
func (p *process) stop() bool {
	for _, step := range []struct {
		signal  syscall.Signal
		patient time.Duration
	}{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		_ = p.cmd.Process.Signal(step.signal)
		select {
		case <-p.ended:
			return true
		case <-time.After(step.patient):
		}
	}
	return false
}
