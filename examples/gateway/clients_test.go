package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/clienttest"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// TestClients: the clients of the proxy's tests see the same answers from PostgreSQL, from the gateway whose engine asks
// PostgreSQL, and from the gateway through the proxy. The program with tokio-postgres is left out, because parts of a
// compiled program cannot be.
func TestClients(t *testing.T) {
	t.Parallel()
	python := func(t *testing.T) []string { return []string{clienttest.Python(t)} }
	node := func(t *testing.T) []string {
		return []string{"env", "NODE_PATH=" + clienttest.Node(t), "node", "--no-deprecation"}
	}
	for _, c := range []struct {
		script  string
		command func(t *testing.T) []string
	}{
		{"psql.sql", func(t *testing.T) []string { return []string{"psql", "-XAf"} }},
		{"psycopg2_client.py", python},
		{"psycopg_client.py", python},
		{"asyncpg_client.py", python},
		{"Client.java", func(t *testing.T) []string {
			return []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", clienttest.Java(t)}
		}},
		{"pg_client.js", node},
		{"pg_cursor.js", node},
		{"postgres_js.js", node},
	} {
		t.Run(c.script, func(t *testing.T) {
			if c.script != "psql.sql" {
				longtest.Skip(t)
			}
			t.Parallel()
			dsn := pgtest.Database(t)
			file := filepath.Join(t.TempDir(), c.script)
			if err := os.WriteFile(file, []byte(clienttest.Script(t, c.script, false)), 0o600); err != nil {
				t.Fatal(err)
			}
			command := append(c.command(t), file)
			want := run(t, dsn, command)
			direct := serveOn(t, 2, "env", "GATEWAY_TEST_CHILD=sql", "SOURCE="+dsn, os.Args[0])
			if diff := cmp.Diff(want, run(t, direct, command)); diff != "" || len(want) < 10 {
				t.Errorf("PostgreSQL (-) and the gateway (+) differ, or the output is too short: %s", diff)
			}
			if diff := cmp.Diff(want, run(t, through(t, direct), command)); diff != "" {
				t.Errorf("PostgreSQL (-) and the gateway through the proxy (+) differ: %s", diff)
			}
		})
	}
}

// run returns the output of a client program.
func run(t *testing.T, dsn string, command []string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PGHOST="+cfg.Host, "PGPORT="+strconv.Itoa(int(cfg.Port)), "PGUSER="+cfg.User,
		"PGPASSWORD="+cfg.Password, "PGDATABASE="+cfg.Database, "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// through starts a proxy of dpwatch and returns a connection string that goes through it.
func through(t *testing.T, dsn string) string {
	t.Helper()
	address := strings.Split(strings.Split(dsn, "@")[1], "/")[0]
	server, err := proxy.New(proxy.Options{
		Upstream: proxy.Address{Network: "tcp", Address: address}, Capture: true, Sink: capture.NewQueue(1024, 16<<20),
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		<-ended
		if s := server.Stats(); s.UncapturedPairing+s.UncapturedProtocol+s.UncapturedPanic+s.RefusedProtocol+s.FailedSessions != 0 {
			t.Errorf("the proxy's counts: %+v", s)
		}
	})
	return strings.Replace(dsn, address, listener.Addr().String(), 1)
}
