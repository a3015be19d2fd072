package pgtemp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 2 * time.Minute // from process start to the first connection
	bindAttempts = 5
)

// errPortTaken means that another process took the port between its choice and the start.
var errPortTaken = errors.New("the port was taken by another process")

// Start creates a cluster and returns when it accepts connections, after about a second. The context covers only the
// start: a started cluster lives until Stop or the end of this process. If Start fails or the context ends first,
// nothing is left behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("temporary postgresql: %w", err)
	}
	binDir, err := FindBinDir(ctx, o)
	if err != nil {
		return nil, err
	}
	acct, err := serverAccount()
	if err != nil {
		return nil, &StartError{Step: "account", Err: err}
	}
	dir, err := makeDirectory(o, acct)
	if err != nil {
		return nil, err
	}
	dog, err := startWatchdog(dir.path)
	if err != nil {
		_ = dir.remove()
		return nil, &StartError{Step: "start", Err: err}
	}
	c := &Cluster{dir: dir, account: acct, binDir: binDir, password: rand.Text(), dog: dog, log: &tail{}}
	if err := c.bringUp(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) bringUp(ctx context.Context, o Options) error {
	if err := c.initdb(ctx, o); err != nil {
		return c.fault(ctx, "initdb", err)
	}
	if err := c.authenticate(o); err != nil {
		return c.fault(ctx, "start", err)
	}
	plain, err := os.ReadFile(filepath.Join(c.dir.data(), "postgresql.conf"))
	if err != nil {
		return c.fault(ctx, "start", err)
	}
	for range bindAttempts {
		err = c.attempt(ctx, o, plain)
		if err == nil || !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return c.fault(ctx, "start", err)
	}
	return nil
}

// fault adds the step, hint and log to an error. The end of the context takes precedence.
func (c *Cluster) fault(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("temporary postgresql: %s: %w", step, context.Cause(ctx))
	}
	hint := hintFor(c.log.text())
	if hint == "" {
		hint = hintFor(errnoText(err))
	}
	var notRun *os.PathError
	if errors.As(err, &notRun) && notRun.Op == "fork/exec" && errors.Is(err, os.ErrPermission) {
		hint = "the account " + c.account.name + " cannot run it: make its parent directories accessible, or use another installation"
	}
	return &StartError{Step: step, Err: err, Hint: hint, Log: c.log.lines()}
}

func (c *Cluster) initdb(ctx context.Context, o Options) error {
	secret, err := Secret(c.password)
	if err != nil {
		return err
	}
	pwfile := filepath.Join(c.dir.sockets(), "password")
	if err := os.WriteFile(pwfile, []byte(secret+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(pwfile)
	if err := c.account.own(pwfile); err != nil {
		return err
	}
	cmd := c.command(o, "initdb", "-N", "-E", "UTF8", "--locale=C", "-U", c.User(), "--auth-local=trust",
		"--auth-host=scram-sha-256", "--pwfile="+pwfile, "-D", c.dir.data())
	if err := cmd.Start(); err != nil {
		return err
	}
	c.dog.guard(cmd.Process.Pid)
	defer c.dog.gone()
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	select {
	case err := <-waited:
		return err
	case <-ctx.Done():
		// Its children are in its process group: they must not write while the directory is being removed.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-waited
		return ctx.Err()
	}
}

// authenticate puts the caller's lines before those of initdb.
func (c *Cluster) authenticate(o Options) error {
	lines, err := o.hba()
	if err != nil || lines == "" {
		return err
	}
	path := filepath.Join(c.dir.data(), "pg_hba.conf") // already exists, so its owner stays
	rest, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(lines), rest...), 0o600)
}

// attempt starts the server on a free port and waits until it accepts a connection.
func (c *Cluster) attempt(ctx context.Context, o Options, plain []byte) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	added, err := o.config(port, c.dir.sockets())
	if err != nil {
		return err
	}
	conf := filepath.Join(c.dir.data(), "postgresql.conf") // already exists, so its owner stays
	if err := os.WriteFile(conf, append(plain[:len(plain):len(plain)], added...), 0o600); err != nil {
		return err
	}
	c.port = port
	c.log.reset()
	cmd := c.command(o, "postgres", "-D", c.dir.data())
	if err := cmd.Start(); err != nil {
		return err
	}
	c.dog.guard(cmd.Process.Pid)
	ended := make(chan struct{})
	c.process.cmd, c.process.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		c.dog.gone()
		close(ended)
	}()
	if err := c.dir.record(cmd.Process.Pid); err != nil {
		return err
	}
	return c.ready(ctx)
}

func (c *Cluster) command(o Options, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.binDir, program), args...)
	cmd.Dir = c.dir.sockets() // the account may not be able to enter the caller's
	cmd.Env = append([]string{"PATH=" + c.binDir + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + c.dir.sockets()}, o.Env...)
	cmd.SysProcAttr = c.account.attributes()
	out := io.MultiWriter(c.log, o.log())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// ready waits for a connection over TCP. SCRAM authenticates the server too, so the connection is to this server.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no connection within %v", startTimeout))
	defer cancel()
	connecting, stop := context.WithCancel(ctx)
	defer stop()
	go func(ended <-chan struct{}) { // another process on the port could accept and never answer
		select {
		case <-ended:
			stop()
		case <-connecting.Done():
		}
	}(c.process.ended)
	for {
		conn, err := pgx.Connect(connecting, c.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.process.ended:
			if strings.Contains(c.log.text(), "Address already in use") {
				return errPortTaken
			}
			return errors.New("the server ended at once")
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(15 * time.Millisecond):
		}
	}
}

// freePort returns a port that is currently free. It is not reserved: see errPortTaken.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
