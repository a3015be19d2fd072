package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// server is a temporary server with an engine in it, or beside it.
type server struct {
	cluster *pgtemp.Cluster
	environ []string  // what dpwatch.yaml refers to
	gateway *exec.Cmd // nil if the engine is in the server
	engine  string    // connection string of the gateway
}

func (s *server) stop() error {
	if s.gateway != nil {
		_ = s.gateway.Process.Signal(os.Interrupt)
		_ = s.gateway.Wait()
	}
	return s.cluster.Stop()
}

// serve starts a temporary server, and creates there the database example with the data. It has an engine's functions,
// and PL/Python finds the packages of its version, or a gateway is started with them.
func serve(ctx context.Context, o options, site string, e engine) (_ *server, err error) {
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return nil, err
	}
	// One thread for each session.
	environ := []string{"PYTHONDONTWRITEBYTECODE=1", "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "POLARS_MAX_THREADS=1"}
	scripts, options := []string{"data.sql"}, pgtemp.Options{BinDir: o.binDir}
	if !e.gateway {
		scripts, options.Env = append(scripts, "adapter.sql"), append(environ, "PYTHONPATH="+dir+":"+filepath.Dir(dir)+":"+site)
	}
	s := &server{}
	if s.cluster, err = pgtemp.Start(ctx, options); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.stop()
		}
	}()
	if err := s.cluster.CreateDatabase(ctx, "example"); err != nil {
		return nil, err
	}
	dsn := s.cluster.DSN("example")
	s.environ = []string{"DATABASE=" + dsn}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, name := range scripts {
		script, err := os.ReadFile(filepath.Join(e.dir, name))
		if err != nil {
			return nil, err
		}
		if _, err := conn.PgConn().Exec(ctx, string(script)).ReadAll(); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(e.dir, name), err)
		}
	}
	if !e.gateway {
		return s, nil
	}
	gateway := exec.Command(filepath.Join(o.root, "gateway"), "-source", dsn, "-listen", "127.0.0.1:0", "-children", strconv.Itoa(gatewayChildren), "-engine", "python child.py") //nolint:gosec // built by this program
	gateway.Dir, gateway.Stderr = dir, os.Stderr
	gateway.Env = append(append(os.Environ(), environ...), "PATH="+filepath.Join(site, "..", "..", "..", "bin")+":"+os.Getenv("PATH"))
	stdout, err := gateway.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := gateway.Start(); err != nil {
		return nil, err
	}
	s.gateway = gateway
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.New("the gateway does not listen: see above")
	}
	s.engine = "postgres://dpwatch@" + strings.TrimSpace(address) + "/shadow?sslmode=disable"
	s.environ = append(s.environ, "ENGINE="+s.engine)
	return s, nil
}

// ready waits until the processes behind the gateway answer. They import the engine first, which can take longer than
// dpwatch waits for a claim.
func (s *server) ready(ctx context.Context) error {
	if s.gateway == nil {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.engine)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for range gatewayChildren { // in turn: statements go to the one that has been idle for longest
		_, err := conn.PgConn().Exec(ctx, "SELECT COUNT(*) AS n FROM people").ReadAll()
		if err != nil && !errors.As(err, new(*pgconn.PgError)) {
			return err
		}
	}
	return nil
}

const gatewayChildren = 2
