package proxy_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// cluster is a temporary PostgreSQL that all tests of the package share; the first use starts it.
type cluster struct {
	binDir string // "" means look for it

	once sync.Once
	err  error
	*pgtemp.Cluster
}

// postgres is the server that most tests use; postgres18 is a PostgreSQL 18, if its binaries are available.
var (
	postgres   cluster
	postgres18 = cluster{binDir: os.Getenv("DPWATCH_PG18_BINDIR")}
)

// hba accepts ann and replication without a password, and two roles with one.
var hba = []string{
	"host all scram_user 127.0.0.1/32 scram-sha-256",
	"host all md5_user 127.0.0.1/32 md5",
	"host all all 127.0.0.1/32 trust",
	"host replication all 127.0.0.1/32 trust",
}

const roles = `
CREATE ROLE ann SUPERUSER LOGIN REPLICATION;
SET password_encryption = 'scram-sha-256'; CREATE ROLE scram_user LOGIN PASSWORD 'secret';
SET password_encryption = 'md5'; CREATE ROLE md5_user LOGIN PASSWORD 'secret';
`

func (c *cluster) ensure(t testing.TB) {
	t.Helper()
	pgtest.NeedsServer(t)
	c.once.Do(func() { c.err = c.start() })
	if c.err != nil {
		t.Fatalf("start PostgreSQL: %v", c.err)
	}
}

func (c *cluster) start() error {
	ctx := context.Background()
	var err error
	c.Cluster, err = pgtemp.Start(ctx, pgtemp.Options{BinDir: c.binDir, HBA: hba, Settings: map[string]string{"wal_level": "logical"}})
	if err != nil {
		return err
	}
	if err := c.CreateDatabase(ctx, "bank"); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, c.SocketDSN("bank"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, roles, pgx.QueryExecModeSimpleProtocol)
	return err
}

// stop stops the server if it was started.
func (c *cluster) stop() error {
	if c.Cluster == nil {
		return nil
	}
	return c.Stop()
}

func (c *cluster) upstream(t testing.TB) proxy.Address {
	t.Helper()
	c.ensure(t)
	return proxy.Address{Network: "tcp", Address: net.JoinHostPort(c.Host(), strconv.Itoa(c.Port()))}
}

func (c *cluster) socket(t testing.TB) proxy.Address {
	t.Helper()
	c.ensure(t)
	return proxy.Address{Network: "unix", Address: filepath.Join(c.SocketDir(), ".s.PGSQL."+strconv.Itoa(c.Port()))}
}

// tool returns the path of a program; clients can be in another directory than the server.
func (c *cluster) tool(name string) string {
	p := filepath.Join(c.BinDir(), name)
	if _, err := os.Stat(p); err != nil {
		return name
	}
	return p
}

// needs18 skips the test, with the reason, if PostgreSQL 18 is not available.
func needs18(t testing.TB) *cluster {
	t.Helper()
	if postgres18.binDir == "" {
		t.Skip("SKIPPED: no PostgreSQL 18; make pg18 fetches it, DPWATCH_PG18_BINDIR names its programs")
	}
	return &postgres18
}
