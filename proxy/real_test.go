package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// connect opens a pgx connection to addr; extra is appended to the connection string.
func connect(t testing.TB, addr, extra string) *pgx.Conn {
	t.Helper()
	conn, err := tryConnect(t, addr, extra)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func tryConnect(t testing.TB, addr, extra string) (*pgx.Conn, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%s user=ann database=bank sslmode=prefer %s", host, port, extra))
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// psql runs a script and returns psql's output, errors included.
func psql(t testing.TB, addr, script string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, postgres.tool("psql"), "-X", "-A", "-h", host, "-p", port, "-U", "ann", "-d", "bank")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v: %s", err, out)
	}
	return string(out)
}

const psqlScript = `
SELECT 1 AS one, 'it''s' AS text; SELECT NULL;
SELECT 1 \; SELECT 2 \; SELECT 3;
SELECT 1/0;
SELECT 1 \; SELECT 1/0 \; SELECT 3;
SELEC;
BEGIN; SET LOCAL dp.epsilon = '0.25'; SELECT 'in a block'; ROLLBACK;
CREATE TEMP TABLE t (a int, b text);
COPY t FROM STDIN;
1	a;b
2	\N
\.
COPY t FROM STDIN;
x	bad
\.
COPY t TO STDOUT;
COPY (SELECT count(*) FROM t) TO STDOUT WITH (FORMAT csv);
\copy t to stdout
DO $$ BEGIN RAISE NOTICE 'a notice'; END $$;
PREPARE p (int) AS SELECT $1 + 1; EXECUTE p(41);
DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 5); FETCH 2 FROM c; CLOSE c;
SET client_encoding = 'LATIN1'; SELECT 'latin';
SET client_encoding = 'UTF8'; SELECT 'utf8';
\set FETCH_COUNT 2
SELECT generate_series(1, 5);
\d pg_database
`

// TestPsql runs a script directly and through the proxy: psql prints the same.
func TestPsql(t *testing.T) {
	t.Parallel()
	upstream := postgres.upstream(t)
	p := start(t, upstream, nil)
	direct, proxied := psql(t, upstream.Address, psqlScript), psql(t, p.addr, psqlScript)
	if diff := cmp.Diff(direct, proxied); diff != "" {
		t.Errorf("psql prints something else through the proxy: %s", diff)
	}
	p.sink.find(t, "SELECT 'latin'") // only ASCII
	p.sink.find(t, "SELECT 'utf8'")
	block := p.sink.find(t, "SELECT 'in a block'")
	if diff := cmp.Diff(map[string]string{"dp.epsilon": "0.25"}, block.Settings); diff != "" || !block.Doubt.None() {
		t.Errorf("settings in the block: %s", diff)
	}
	if block.ApplicationName != "psql" || block.User != "ann" || block.Database != "bank" {
		t.Errorf("captured %+v", block)
	}
	for _, q := range p.sink.all() {
		if strings.Contains(q.SQL, "1/0") && q.SQLState != "22012" {
			t.Errorf("captured %q", q.SQL)
		}
	}
	stats := p.Stats()
	if stats.UncapturedPairing+stats.UncapturedProtocol+stats.UncapturedPanic != 0 || stats.SkippedEncoding != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// TestPgxModes runs the same queries in each of pgx's query execution modes.
func TestPgxModes(t *testing.T) {
	t.Parallel()
	upstream := postgres.upstream(t)
	modes := map[string]pgx.QueryExecMode{
		"cache_statement": pgx.QueryExecModeCacheStatement, "cache_describe": pgx.QueryExecModeCacheDescribe,
		"describe_exec": pgx.QueryExecModeDescribeExec, "exec": pgx.QueryExecModeExec, "simple_protocol": pgx.QueryExecModeSimpleProtocol,
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, upstream, nil)
			conn := connect(t, p.addr, "default_query_exec_mode="+name+" application_name=app options='-c dp.epsilon=0.5'")
			const sql = "SELECT $1::int8 + 1, $2::text, $3::text IS NULL"
			for i := range int64(3) {
				var sum int64
				var text string
				var null bool
				if err := conn.QueryRow(t.Context(), sql, mode, i, "it's", nil).Scan(&sum, &text, &null); err != nil {
					t.Fatal(err)
				}
				if sum != i+1 || text != "it's" || !null {
					t.Errorf("got %d, %q, %v", sum, text, null)
				}
			}
			var got []capture.Query
			eventually.True(t, "three queries are captured", func() bool {
				got = nil
				for _, q := range p.sink.all() {
					if strings.HasSuffix(q.SQL, "IS NULL") || strings.Contains(q.SQL, "IS NULL") {
						got = append(got, q)
					}
				}
				return len(got) == 3
			})
			for i, q := range got {
				if q.Tag != "SELECT 1" || q.Settings["dp.epsilon"] != "0.5" || q.ApplicationName != "app" || q.Doubt.Has("dp.epsilon") {
					t.Errorf("captured %+v", q)
				}
				if name == "simple_protocol" {
					continue
				}
				if q.SQL != sql || q.Protocol != capture.Extended || len(q.Params) != 3 {
					t.Fatalf("captured %+v", q)
				}
				if n := q.Params[0]; n.Format == 1 && (len(n.Value) != 8 || binary.BigEndian.Uint64(n.Value) != uint64(i)) ||
					n.Format == 0 && string(n.Value) != fmt.Sprint(i) {
					t.Errorf("first parameter %+v, want %d", n, i)
				}
				if string(q.Params[1].Value) != "it's" || q.Params[1].Null || !q.Params[2].Null || q.Params[2].Value != nil {
					t.Errorf("parameters %+v", q.Params)
				}
			}
		})
	}
}

// TestBatch: with an error in the middle of a pipeline, the statements up to it are captured, and none after it.
func TestBatch(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	modes, failed := 0, 0
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			conn := connect(t, p.addr, "default_query_exec_mode="+mode)
			name := func(i int) string { return fmt.Sprintf("SELECT '%s %d'", mode, i) }
			var batch pgx.Batch
			batch.Queue(name(1))
			batch.Queue("SELECT 1 / (length($1) - 1)", "x")
			batch.Queue(name(3))
			var pgErr *pgconn.PgError
			if err := conn.SendBatch(t.Context(), &batch).Close(); !errors.As(err, &pgErr) || pgErr.Code != "22012" {
				t.Fatalf("batch: %v, want 22012", err)
			}
			if _, err := conn.Exec(t.Context(), name(4)); err != nil {
				t.Fatal(err)
			}
			p.sink.find(t, name(4))
			for _, q := range p.sink.all() {
				if q.SQL == name(3) {
					t.Errorf("captured %q", q.SQL)
				}
				if strings.HasPrefix(q.SQL, "SELECT 1 /") {
					failed++
					if q.Outcome != capture.Failed || q.SQLState != "22012" {
						t.Errorf("%q: %s %s", q.SQL, q.Outcome, q.SQLState)
					}
				}
			}
			if modes++; failed != modes {
				t.Errorf("%d failed statements were captured", failed)
			}
			failed = 0
			p.sink.find(t, name(1))
		})
	}
	if stats := p.Stats(); stats.UncapturedPairing != 0 {
		t.Errorf("stats %+v", stats)
	}
}

func TestCopyWithPgx(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := connect(t, p.addr, "")
	if _, err := conn.Exec(t.Context(), "CREATE TEMP TABLE t (a int PRIMARY KEY, b text)"); err != nil {
		t.Fatal(err)
	}
	rows := [][]any{}
	for i := range 5000 {
		rows = append(rows, []any{i, strings.Repeat("x", i%100)})
	}
	if n, err := conn.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"a", "b"}, pgx.CopyFromRows(rows)); err != nil || n != 5000 {
		t.Fatalf("copy in: %d, %v", n, err)
	}
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"a", "b"}, pgx.CopyFromRows(rows)); err == nil {
		t.Fatal("copying the same keys again succeeded")
	}
	var out bytes.Buffer
	if _, err := conn.PgConn().CopyTo(t.Context(), &out, "COPY t TO STDOUT"); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 5000 {
		t.Errorf("copied %d rows out", n)
	}
	if _, err := conn.Exec(t.Context(), "SELECT 'after copy'"); err != nil {
		t.Fatal(err)
	}
	p.sink.find(t, "SELECT 'after copy'")
	if stats := p.Stats(); stats.UncapturedPairing != 0 {
		t.Errorf("stats %+v", stats)
	}
}

func TestNotify(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	listener, speaker := connect(t, p.addr, ""), connect(t, p.addr, "")
	if _, err := listener.Exec(t.Context(), "LISTEN proxy_test"); err != nil {
		t.Fatal(err)
	}
	if _, err := speaker.Exec(t.Context(), "NOTIFY proxy_test, 'hello'"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	n, err := listener.WaitForNotification(ctx)
	if err != nil || n.Payload != "hello" {
		t.Fatalf("got %v, %v", n, err)
	}
	if _, err := listener.Exec(t.Context(), "SELECT 'after notify'"); err != nil {
		t.Fatal(err)
	}
	p.sink.find(t, "SELECT 'after notify'")
}

// TestCancelReachesTheBackend cancels a query that would run much longer than the test's time limit.
func TestCancelReachesTheBackend(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := connect(t, p.addr, "")
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT pg_sleep(600)")
		failed <- err
	}()
	watch := connect(t, p.addr, "")
	eventually.True(t, "the query runs", func() bool {
		var n int
		err := watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND wait_event = 'PgSleep'", conn.PgConn().PID()).Scan(&n)
		return err == nil && n == 1
	})
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	var pgErr *pgconn.PgError
	if err := <-failed; !errors.As(err, &pgErr) || pgErr.Code != "57014" {
		t.Errorf("got %v, want 57014", err)
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	for _, user := range []string{"scram_user", "md5_user"} {
		conn := connect(t, p.addr, "user="+user+" password=secret database=bank")
		if _, err := conn.Exec(t.Context(), "SELECT '"+user+"'"); err != nil {
			t.Fatal(err)
		}
		if q := p.sink.find(t, "SELECT '"+user+"'"); q.User != user {
			t.Errorf("user is %q", q.User)
		}
		_, err := tryConnect(t, p.addr, "user="+user+" password=wrong")
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "28P01" {
			t.Errorf("wrong password: %v, want 28P01", err)
		}
	}
}

func TestLargeValues(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := connect(t, p.addr, "")
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	var back []byte
	if err := conn.QueryRow(t.Context(), "SELECT $1::bytea", big).Scan(&back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(big, back) {
		t.Error("16 MB came back as something else")
	}
	args := make([]any, 10_000)
	places := make([]string, len(args))
	for i := range args {
		args[i], places[i] = i, fmt.Sprintf("$%d::int", i+1)
	}
	var sum int
	if err := conn.QueryRow(t.Context(), "SELECT "+strings.Join(places, "+"), args...).Scan(&sum); err != nil {
		if !strings.Contains(err.Error(), "54001") { // stack depth: the server's own limit
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "SELECT 'after'"); err != nil {
		t.Fatal(err)
	}
	if q := p.sink.find(t, "SELECT 'after'"); q.Doubt.Has("dp.epsilon") {
		t.Error("settings are uncertain: the names in a Bind too large to copy were lost")
	}
	if n := p.Stats().SkippedNotCopied; n != 1 {
		t.Errorf("%d statements were not copied, want 1", n)
	}
}

// TestReplicationSession: only in a session of physical replication the server accepts no queries. One for logical
// replication has queries before and after it streams.
func TestReplicationSession(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	for i, value := range []string{"f", "No", "of", "0", "database", "true"} {
		conn := connect(t, p.addr, "replication="+value+" default_query_exec_mode=simple_protocol").PgConn()
		sql := fmt.Sprintf("SELECT 'replication %d'", i)
		if value == "database" {
			for _, command := range []string{"IDENTIFY_SYSTEM", "CREATE_REPLICATION_SLOT followed TEMPORARY LOGICAL pgoutput"} {
				if _, err := conn.Exec(t.Context(), command).ReadAll(); err != nil {
					t.Fatal(err)
				}
			}
			streamNothing(t, conn)
		}
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); (err == nil) != (value != "true") {
			t.Fatalf("%s: %v", value, err)
		}
		if value != "true" {
			p.sink.find(t, sql)
		}
	}
	eventually.True(t, "physical replication is counted", func() bool { return p.Stats().UncapturedReplication == 1 })
	if stats := p.Stats(); stats.UncapturedPairing+stats.UncapturedProtocol != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// streamNothing starts logical replication and ends it at once.
func streamNothing(t *testing.T, conn *pgconn.PgConn) {
	t.Helper()
	front := conn.Frontend()
	front.SendQuery(&pgproto3.Query{String: "START_REPLICATION SLOT followed LOGICAL 0/0 (proto_version '1', publication_names 'nothing')"})
	if err := front.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := front.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.CopyBothResponse:
			front.Send(&pgproto3.CopyDone{})
			if err := front.Flush(); err != nil {
				t.Fatal(err)
			}
		case *pgproto3.ErrorResponse:
			t.Fatal(m.Message)
		case *pgproto3.ReadyForQuery:
			return
		}
	}
}

func TestUnixSocketUpstream(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.socket(t), nil)
	conn := connect(t, p.addr, "")
	if _, err := conn.Exec(t.Context(), "SELECT 'over a socket'"); err != nil {
		t.Fatal(err)
	}
	p.sink.find(t, "SELECT 'over a socket'")
}

// TestDrainReal: a query in progress when the context ends gets its answer.
func TestDrainReal(t *testing.T) {
	t.Parallel()
	upstream := postgres.upstream(t)
	p := start(t, upstream, func(o *proxy.Options) { o.DrainTimeout = patience })
	conn, direct := connect(t, p.addr, ""), connect(t, upstream.Address, "")
	// The query waits for a lock until the proxy drains.
	const lock, slow, unlock = "SELECT pg_advisory_lock(7201)", "SELECT pg_advisory_lock_shared(7201), 'drained'", "SELECT pg_advisory_unlock(7201)"
	run := func(sql string) {
		if _, err := direct.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(lock)
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), slow)
		if closeErr := conn.Close(context.Background()); err == nil {
			err = closeErr
		}
		answered <- err
	}()
	eventually.True(t, "the query runs", func() (running bool) {
		err := direct.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND query = $1)", slow).Scan(&running)
		return err == nil && running
	})
	p.cancel()
	run(unlock)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	p.wait(t)
	p.sink.find(t, slow)
}
