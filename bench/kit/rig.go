package kit

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/program"
)

// Rig is a temporary server with an engine, its copies and a database for the ledger, and a directory for
// configurations of dpwatch.
type Rig struct {
	*pgtemp.Cluster
	Ledger string // DSN of the ledger's database
	dir    string
}

// copies creates the copies of the protected table people, of 50 rows, and the role of the replays.
const copies = `
	CREATE SCHEMA d0; CREATE TABLE d0.people AS SELECT * FROM people;
	CREATE SCHEMA d1; CREATE TABLE d1.people AS SELECT * FROM people WHERE id <> 50;
	CREATE ROLE replayer LOGIN PASSWORD 'replayer';
	GRANT USAGE ON SCHEMA d0, d1 TO replayer; GRANT SELECT ON d0.people, d1.people TO replayer`

// NewRig starts the server. engine is SQL that creates the table people, whose column id has the values 1 to 50, and
// the noise functions. log receives the server's log; nil discards it.
func NewRig(ctx context.Context, engine string, log io.Writer) (*Rig, error) {
	settings := map[string]string{"log_error_verbosity": "terse", "shared_buffers": "128MB", "max_connections": "200"}
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{Log: log, Settings: settings})
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("DPWATCH_TEST_TUNING", `{"capture_rate": 1000000}`); err != nil { // of the programs that are started here
		return nil, err
	}
	r := &Rig{Cluster: cluster, Ledger: cluster.DSN("ledger")}
	if r.dir, err = os.MkdirTemp("", "bench-*"); err == nil {
		err = r.execute(ctx, engine, copies, "CREATE DATABASE ledger")
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Rig) execute(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, r.DSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was used
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

// Configure writes a configuration of dpwatch for the rig, with further sections, and returns its path. ledger is the
// ledger's DSN, or "memory".
func (r *Rig) Configure(name, ledger, sections string) (string, error) {
	path := filepath.Join(r.dir, name+".yaml")
	return path, os.WriteFile(path, fmt.Appendf(nil, `
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d", drain_timeout: 1s}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
ledger: {dsn: %q}
engine: {name: bench}
%s`, r.Host(), r.Port(), r.UserDSN("postgres", "replayer", "replayer"), ledger, sections), 0o600)
}

// Through returns the DSN of the server by way of dpwatch.
func (r *Rig) Through(p *program.Process) string {
	u, err := url.Parse(r.DSN("postgres"))
	if err != nil { // a DSN of pgtemp is a URL
		return ""
	}
	u.Host = p.Listen
	return u.String()
}

// Close stops the server and removes all files.
func (r *Rig) Close() {
	_ = r.Stop()
	_ = os.RemoveAll(r.dir)
}
