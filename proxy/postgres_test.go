package proxy_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/proxy"
)

// cluster is a temporary PostgreSQL that all tests of the package share; it starts when first needed.
type cluster struct {
	once sync.Once
	err  error
	bin  string
	dir  string
	port int
	cred *syscall.Credential // whom the server runs as; nil: as the test does
}

var postgres cluster

// upstream returns the cluster's address.
func (c *cluster) upstream(t testing.TB) proxy.Address {
	t.Helper()
	c.once.Do(func() { c.err = c.start() })
	if c.err != nil {
		t.Fatalf("start PostgreSQL: %v", c.err)
	}
	return proxy.Address{Network: "tcp", Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))}
}

// socket returns the cluster's Unix socket.
func (c *cluster) socket(t testing.TB) proxy.Address {
	t.Helper()
	c.upstream(t)
	return proxy.Address{Network: "unix", Address: filepath.Join(c.dir, ".s.PGSQL."+strconv.Itoa(c.port))}
}

// tool returns the path of a program; clients may be elsewhere than the server.
func (c *cluster) tool(name string) string {
	p := filepath.Join(c.bin, name)
	if _, err := os.Stat(p); err != nil {
		return name
	}
	return p
}

const hba = `
local all all trust
host all scram_user 127.0.0.1/32 scram-sha-256
host all md5_user 127.0.0.1/32 md5
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
`

const roles = `
CREATE ROLE ann SUPERUSER LOGIN REPLICATION;
CREATE DATABASE bank OWNER ann;
SET password_encryption = 'scram-sha-256'; CREATE ROLE scram_user LOGIN PASSWORD 'secret';
SET password_encryption = 'md5'; CREATE ROLE md5_user LOGIN PASSWORD 'secret';
`

func (c *cluster) start() error {
	var err error
	if c.bin, err = findBin(); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("/tmp", "dpwatch-proxy-"); err != nil {
		return err
	}
	if err := c.dropRoot(); err != nil {
		return err
	}
	if c.port, err = freePort(); err != nil {
		return err
	}
	data := filepath.Join(c.dir, "data")
	if err := c.run("", "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		return err
	}
	options := fmt.Sprintf("-p %d -k %s -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200", c.port, c.dir)
	if err := c.run("", "pg_ctl", "-D", data, "-l", filepath.Join(c.dir, "log"), "-o", options, "-w", "start"); err != nil {
		return err
	}
	return c.run(roles, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", c.dir, "-p", strconv.Itoa(c.port), "-U", "postgres")
}

func (c *cluster) stop() {
	if c.dir == "" {
		return
	}
	_ = c.run("", "pg_ctl", "-D", filepath.Join(c.dir, "data"), "-m", "immediate", "stop")
	_ = os.RemoveAll(c.dir)
}

// dropRoot makes the server run as postgres when the test runs as root, which PostgreSQL refuses.
func (c *cluster) dropRoot() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("as root, a user named postgres is needed: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	c.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(c.dir, uid, gid)
}

func (c *cluster) run(stdin, name string, args ...string) error {
	cmd := exec.Command(c.tool(name), args...)
	cmd.Dir = c.dir
	cmd.Stdin = strings.NewReader(stdin)
	if c.cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	}
	// not a pipe: the server would inherit it and keep it open
	out, err := os.CreateTemp("", "dpwatch-out-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return nil
}

// findBin looks for the server's programs: PATH, pg_config, Debian's places.
func findBin() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p), nil
		}
	}
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(places) == 0 {
		return "", fmt.Errorf("no initdb in PATH or /usr/lib/postgresql: install PostgreSQL's server programs")
	}
	return filepath.Dir(places[len(places)-1]), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
