package proxy_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// client is a real client program: run uses it at addr and returns its output, which is the same every time. It skips
// the test if the client is missing on this machine.
type client struct {
	name string
	run  func(t *testing.T, addr, database string) string
}

// TestClients runs real clients directly and through the proxy: their output is the same, every byte comes through
// unchanged, and capture continues.
func TestClients(t *testing.T) {
	t.Parallel()
	clients := []client{
		{"psql COPY", runPsqlCopy},
		{"pgx", runPgx},
		{"lib/pq", func(t *testing.T, addr, database string) string { return runPq(t, addr, database, "") }},
		{"lib/pq binary", func(t *testing.T, addr, database string) string {
			return runPq(t, addr, database, "binary_parameters=yes")
		}},
		{"pgbench", runPgbench},
		{"pg_dump", runPgDump},
		{"pg_basebackup", runBaseBackup},
		{"psql", runPsqlCommands},
		{"pg_restore", runPgRestore},
		{"pg_receivewal", runReceiveWAL},
	}
	others := []client{ // of other languages
		{"node-postgres", runNode("pg_client.js")},
		{"pg-cursor", runNode("pg_cursor.js")},
		{"postgres.js", runNode("postgres_js.js")},
		{"psycopg2", runPython("psycopg2_client.py")},
		{"psycopg", runPython("psycopg_client.py")},
		{"asyncpg", runPython("asyncpg_client.py")},
		{"JDBC", runJDBC},
		{"tokio-postgres", runTokioPostgres},
	}
	if longtest.Enabled() {
		clients = append(clients, others...)
	}
	for _, server := range []struct {
		name string
		need func(t testing.TB) *cluster
	}{{"default server", func(testing.TB) *cluster { return &postgres }}, {"PostgreSQL 18", needs18}} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			if server.name != "default server" {
				longtest.Skip(t)
			}
			c := server.need(t)
			upstream := c.upstream(t)
			for _, client := range clients {
				for _, chunk := range []int{0, 1} {
					if chunk == 1 && client.name != "psql" && !longtest.Enabled() {
						continue
					}
					t.Run(fmt.Sprintf("%s/chunk %d", client.name, chunk), func(t *testing.T) {
						t.Parallel()
						if c == &postgres18 && strings.HasPrefix(client.name, "pg_") {
							t.Skip("SKIPPED: the tools of an older version refuse the server")
						}
						if chunk == 1 && slices.Contains([]string{"pg_basebackup", "pgbench", "pg_restore", "pg_receivewal", "JDBC"}, client.name) {
							t.Skip("SKIPPED: too much for single bytes")
						}
						conform(t, c, upstream, client, chunk)
					})
				}
			}
		})
	}
}

func conform(t *testing.T, c *cluster, upstream proxy.Address, client client, chunk int) {
	database := strings.NewReplacer(" ", "_", "/", "_", "-", "_").Replace(strings.ToLower(t.Name()))
	database = database[max(0, len(database)-50):]
	if err := c.CreateDatabase(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.DropDatabase(context.Background(), database); err != nil {
			t.Error(err)
		}
	})
	postgres.ensure(t) // its directory has client programs
	direct := client.run(t, upstream.Address, database)
	o := observe(t, upstream, chunk, nil)
	proxied := client.run(t, o.outer.addr, database)
	if diff := cmp.Diff(direct, proxied); diff != "" {
		t.Errorf("the client sees something else through the proxy: %s", diff)
	}
	if len(direct) < 10 {
		t.Errorf("the client did next to nothing: %q", direct)
	}
	o.same(t)
	s := o.Stats()
	if s.UncapturedPairing+s.UncapturedProtocol+s.UncapturedPanic+s.RefusedProtocol+s.FailedSessions != 0 {
		t.Errorf("stats %+v", s)
	}
}

// runTool runs a client program that reads libpq's environment variables. It skips the test if the program is not
// installed.
func runTool(t *testing.T, addr, database, stdin, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED: %s is not installed", name)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGHOST="+host, "PGPORT="+port, "PGUSER=ann", "PGDATABASE="+database)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

const copyScript = `
SET client_min_messages = warning; DROP TABLE IF EXISTS c; CREATE TABLE c (a int, b text);
COPY c FROM STDIN;
1	a;b
2	\N
3	tab\there
\.
COPY c FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', QUOTE '''');
a;b
4;'semi;colon'
5;
\.
COPY c (b, a) FROM STDIN (FORMAT text, NULL 'nil');
x	6
nil	7
\.
COPY c FROM STDIN;
\.
COPY c FROM STDIN;
8	good
nonsense	bad
\.
COPY c FROM STDIN (FORMAT csv);
9,"never closed
\.
SELECT count(*) FROM c;
COPY c TO STDOUT;
COPY c TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *);
COPY (SELECT a, b FROM c WHERE a < 0) TO STDOUT;
COPY (SELECT a / (a - 3) FROM c ORDER BY a) TO STDOUT;
COPY c (b) TO STDOUT (DELIMITER '|');
\copy c to 'FILE.bin' (format binary)
TRUNCATE c;
\copy c from 'FILE.bin' (format binary)
\copy (SELECT * FROM c ORDER BY a) to stdout csv
\copy c to program 'cat >/dev/null'
\copy c from program 'printf "10\\tfrom a program\\n"'
\copy c from '/nonexistent'
BEGIN; COPY c TO PROGRAM 'cat >/dev/null'; COPY c FROM PROGRAM 'exit 3'; ROLLBACK;
COPY c FROM PROGRAM 'echo 11';
BEGIN; TRUNCATE c; COPY c FROM STDIN (FREEZE);
12	frozen
\.
COMMIT;
SELECT 1 AS before \; COPY c TO STDOUT \; SELECT 2 AS after;
SELECT 1 AS before \; COPY c FROM STDIN \; SELECT count(*) FROM c;
13	within
\.
\copy (SELECT i, repeat('x', 2000) FROM generate_series(1, 300) i) to 'FILE.txt'
CREATE TEMP TABLE big (i int, x text);
\copy big from 'FILE.txt'
SELECT count(*), sum(length(x)) FROM big;
SELECT lo_create(4711); SELECT lo_put(4711, 0, 'large'); SELECT lo_get(4711); SELECT lo_unlink(4711);
`

// failedCopyScript has an error between two COPYs of one batch, after which psql 15.20 exits with status 0 and no
// message.
const failedCopyScript = `COPY c FROM STDIN \; SELECT 1/0 \; COPY c FROM STDIN;
14	undone
\.
SELECT count(*) FROM c;
`

func runPsqlCopy(t *testing.T, addr, database string) string {
	script := strings.ReplaceAll(copyScript, "FILE", filepath.Join(t.TempDir(), "copy"))
	out := runTool(t, addr, database, script, postgres.tool("psql"), "-X", "-A")
	if !strings.Contains(out, "300|600000") {
		t.Errorf("the script did not run: %s", out)
	}
	return out + runTool(t, addr, database, failedCopyScript, postgres.tool("psql"), "-X", "-A")
}

func runPgbench(t *testing.T, addr, database string) string {
	pgbench := postgres.tool("pgbench")
	runTool(t, addr, database, "", pgbench, "-i", "-q", "-s", "1")
	pipeline := filepath.Join(t.TempDir(), "pipeline.sql")
	script := "\\set n random(1, 1000)\n\\startpipeline\nSELECT :n;\nSELECT abalance FROM pgbench_accounts WHERE aid = :n;\nBEGIN;\nSELECT 2;\nEND;\n\\endpipeline\n"
	if err := os.WriteFile(pipeline, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	tps := regexp.MustCompile(`(?m)^(tps|latency|initial connection|average connection|pgbench \().*\n`)
	var out strings.Builder
	for _, args := range [][]string{
		{"-M", "simple"},
		{"-M", "extended"},
		{"-M", "prepared"},
		{"-M", "prepared", "-S"},
		{"-M", "simple", "-C"},
		{"-M", "extended", "-f", pipeline},
		{"-M", "prepared", "-f", pipeline},
	} {
		text := runTool(t, addr, database, "", pgbench, append(args, "-n", "-c", "4", "-j", "2", "-t", "30")...)
		if !strings.Contains(text, "actually processed: 120/120") {
			t.Errorf("pgbench %v: %s", args, text)
		}
		text = tps.ReplaceAllString(text, "")
		out.WriteString(strings.ReplaceAll(text, filepath.Dir(pipeline), ""))
	}
	return out.String()
}

func runPgDump(t *testing.T, addr, database string) string {
	runTool(t, addr, database, "SET client_min_messages = warning; DROP TABLE IF EXISTS d; CREATE TABLE d AS SELECT i, repeat('x', i % 50) AS x FROM generate_series(1, 3000) i;", postgres.tool("psql"), "-X", "-q")
	out := runTool(t, addr, database, "", postgres.tool("pg_dump"), "--serializable-deferrable")
	return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(out, "")
}

// runBaseBackup uses the replication protocol: COPY OUT, and CopyBoth for the WAL.
func runBaseBackup(t *testing.T, addr, database string) string {
	dir := filepath.Join(t.TempDir(), "backup")
	runTool(t, addr, database, "", postgres.tool("pg_basebackup"), "-D", dir, "-X", "stream", "-c", "fast", "--no-sync")
	version, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err != nil {
		t.Error(err)
	}
	return "a base backup of " + string(version)
}

func runPgx(t *testing.T, addr, database string) string {
	var out strings.Builder
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		ctx := t.Context()
		conn, err := tryConnect(t, addr, "database="+database+" default_query_exec_mode="+mode)
		if err != nil {
			t.Fatal(err)
		}
		note := func(what string, v ...any) { fmt.Fprintf(&out, "%s %s: %v\n", mode, what, v) }
		for i := range 3 {
			var sum int64
			var text *string
			var blob []byte
			err := conn.QueryRow(ctx, "SELECT $1::int8 + 1, $2::text, $3::bytea", int64(i), nil, []byte{0, 1, 255}).Scan(&sum, &text, &blob)
			note("row", sum, text == nil, blob, err)
		}
		_, err = conn.Exec(ctx, "SELECT 1/$1::int", 0)
		note("error", sqlState(err))
		tx, err := conn.Begin(ctx)
		note("begin", err)
		_, err = tx.Exec(ctx, "CREATE TABLE x (a int PRIMARY KEY, b text)")
		note("create", err)
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"x"}, []string{"a", "b"}, pgx.CopyFromRows([][]any{{1, "one"}, {2, nil}}))
		note("copy", n, err)
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"x"}, []string{"a", "b"}, pgx.CopyFromRows([][]any{{1, "again"}}))
		note("copy twice", sqlState(err), tx.Rollback(ctx))
		var batch pgx.Batch
		for i := range 5 {
			batch.Queue("SELECT $1::int * 2", i)
		}
		batch.Queue("SELECT 1/($1::int - 1)", 1)
		batch.Queue("SELECT 'not reached'")
		results := conn.SendBatch(ctx, &batch)
		for range 7 {
			var v any
			err := results.QueryRow().Scan(&v)
			note("batch", v, sqlState(err))
		}
		note("batch end", sqlState(results.Close()))
		var copied bytes.Buffer
		tag, err := conn.PgConn().CopyTo(ctx, &copied, "COPY (SELECT generate_series(1, 20)) TO STDOUT")
		note("copy out", tag, copied.Len(), err)
		many := make([]any, 10_000)
		places := make([]string, len(many))
		for i := range many {
			many[i], places[i] = int32(i), fmt.Sprintf("($%d::int)", i+1)
		}
		var total int64
		err = conn.QueryRow(ctx, "SELECT sum(v) FROM (VALUES "+strings.Join(places, ",")+") t (v)", many...).Scan(&total)
		note("10,000 parameters", total, err)
		pipelined(t, conn.PgConn(), note)
		_ = conn.Close(ctx)
	}
	return out.String()
}

// pipelined uses pgconn's pipeline mode: Flush, Sync, and an error in the middle.
func pipelined(t *testing.T, conn *pgconn.PgConn, note func(string, ...any)) {
	p := conn.StartPipeline(t.Context())
	p.SendPrepare("ps", "SELECT $1::int + 1", nil)
	p.SendQueryPrepared("ps", [][]byte{[]byte("41")}, nil, nil)
	p.SendPipelineSync()
	p.SendQueryParams("SELECT 1/0", nil, nil, nil, nil)
	p.SendQueryParams("SELECT 'skipped'", nil, nil, nil, nil)
	p.SendPipelineSync()
	p.SendQueryPrepared("ps", [][]byte{[]byte("1")}, nil, nil)
	p.SendDeallocate("ps")
	p.SendPipelineSync()
	if err := p.Flush(); err != nil {
		t.Error(err)
	}
	for {
		results, err := p.GetResults()
		if err != nil {
			note("pipeline", sqlState(err))
			continue
		}
		if results == nil {
			break
		}
		if r, ok := results.(*pgconn.ResultReader); ok {
			result := r.Read()
			note("pipeline", result.Rows, sqlState(result.Err))
			continue
		}
		note("pipeline", fmt.Sprintf("%T", results))
	}
	note("pipeline end", sqlState(p.Close()))
}

// sqlState returns the SQLSTATE of an error, "" without one.
func sqlState(err error) string {
	var pgErr *pgconn.PgError
	var pqErr *pq.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &pgErr):
		return pgErr.Code
	case errors.As(err, &pqErr):
		return string(pqErr.Code)
	}
	return err.Error()
}

func runPq(t *testing.T, addr, database, extra string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("postgres", fmt.Sprintf("host=%s port=%s user=ann dbname=%s sslmode=disable %s", host, port, database, extra))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := t.Context()
	var out strings.Builder
	note := func(what string, v ...any) { fmt.Fprintf(&out, "%s: %v\n", what, v) }
	var sum int
	var text string
	note("row", db.QueryRowContext(ctx, "SELECT $1::int + 1, $2::text", 41, "it's").Scan(&sum, &text), sum, text)
	stmt, err := db.PrepareContext(ctx, "SELECT $1::int / $2::int")
	note("prepare", err)
	for i := range 3 {
		err := stmt.QueryRowContext(ctx, 10, i).Scan(&sum)
		note("execute", sum, sqlState(err))
	}
	note("close", stmt.Close())
	_, err = db.ExecContext(ctx, "SELECT 1; SELECT 2; SELECT 1/0; SELECT 4")
	note("several", sqlState(err))
	tx, err := db.BeginTx(ctx, nil)
	note("begin", err)
	_, err = tx.ExecContext(ctx, "CREATE TABLE y (a int, b text)")
	note("create", err)
	in, err := tx.PrepareContext(ctx, `COPY "y" ("a", "b") FROM STDIN`)
	note("copy", err)
	for i := range 500 {
		if _, err := in.ExecContext(ctx, i, strings.Repeat("y", i)); err != nil {
			t.Error(err)
		}
	}
	_, err = in.ExecContext(ctx)
	note("copied", err, in.Close())
	note("count", tx.QueryRowContext(ctx, "SELECT count(*) FROM y").Scan(&sum), sum, tx.Rollback())
	rows, err := db.QueryContext(ctx, "SELECT generate_series(1, 1000)")
	note("rows", err)
	for n := 0; rows.Next() && n < 10; n++ {
		note("row", rows.Scan(&sum), sum)
	}
	note("closed early", rows.Close())
	return out.String()
}
