package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

func (r *running) rawSession(t testing.TB) net.Conn {
	t.Helper()
	conn := r.dial(t)
	send(t, conn, packet(version30, "user\x00ann\x00database\x00bank\x00client_encoding\x00UTF8\x00\x00"))
	until(t, conn, 'Z')
	return conn
}

// TestPortals uses portals directly: row limits, a snapshot of the statement, re-binding.
func TestPortals(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	parse := func(name, sql string) []byte { return message('P', name+"\x00"+sql+"\x00\x00\x00") }
	bind := func(portal, statement string) []byte {
		return message('B', portal+"\x00"+statement+"\x00\x00\x01\x00\x01\x00\x00\x00\x00")
	}
	execute := func(portal string, rows byte) []byte { return message('E', portal+"\x00\x00\x00\x00"+string(rows)) }
	sync, flush := message('S', ""), message('H', "")

	send(t, conn, parse("s", "SELECT generate_series(1, 5)"), bind("p", "s"), execute("p", 2), flush)
	until(t, conn, 's')
	send(t, conn, execute("p", 2), execute("p", 2), sync)
	if got := until(t, conn, 'Z'); got != "DDsDCZ" {
		t.Errorf("messages %q", got)
	}
	send(t, conn, parse("", "SELECT 'first'"), bind("q", ""), parse("", "SELECT 'second'"), execute("q", 0), bind("", ""), execute("", 0), sync)
	until(t, conn, 'Z')
	send(t, conn, parse("", "SELECT 'skipped' FROM nowhere"), bind("", ""), execute("", 0), message('Q', "SELECT 'skipped too'\x00"), sync)
	if got := until(t, conn, 'Z'); got != "EZ" {
		t.Errorf("messages %q", got)
	}
	send(t, conn, message('Q', "SELECT 'end'\x00"))
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 'end'")
	for _, q := range p.sink.all() {
		if q.Completed.IsZero() {
			t.Errorf("%s was completed at no time", q.SQL)
		}
	}
	want := []string{"SELECT generate_series(1, 5)", "SELECT 'first'", "SELECT 'second'", "SELECT 'end'"}
	if diff := cmp.Diff(want, p.sink.sqls()); diff != "" {
		t.Error(diff)
	}
}

// TestExtendedCopy runs COPY FROM STDIN over the extended protocol, with the early Sync that libpq sends.
func TestExtendedCopy(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	send(t, conn, message('Q', "CREATE TEMP TABLE t (a int)\x00"))
	until(t, conn, 'Z')
	start := bytes.Join([][]byte{message('P', "\x00COPY t FROM STDIN\x00\x00\x00"), message('B', "\x00\x00\x00\x00\x00\x00\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', "")}, nil)
	send(t, conn, start)
	until(t, conn, 'G')
	send(t, conn, message('d', "1\n2\n"), message('c', ""), message('S', ""))
	if got := until(t, conn, 'Z'); got != "CZ" {
		t.Errorf("messages %q", got)
	}
	send(t, conn, message('Q', "SELECT 'after'\x00"))
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 'after'")
	if q := p.sink.find(t, "COPY t FROM STDIN"); q.Tag != "COPY 2" {
		t.Errorf("tag %q", q.Tag)
	}
	// one that fails: it is unknown which Sync messages the server has read during the COPY
	send(t, conn, start)
	until(t, conn, 'G')
	send(t, conn, message('d', "x\n"), message('c', ""), message('S', ""))
	until(t, conn, 'Z')
	send(t, conn, message('Q', "SELECT 'behind it'\x00"))
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 'behind it'")
	if s := p.Stats(); s.UncapturedPairing+s.UncapturedOverflow != 0 {
		t.Errorf("out of step: %+v", s)
	}
}

func TestHalfCloseReal(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	send(t, conn, message('Q', "SELECT pg_sleep(0.1), repeat('x', 100000) FROM generate_series(1, 3)\x00"))
	closeWrite(t, conn)
	if got := until(t, conn, 'Z'); got != "TDDDCZ" {
		t.Errorf("messages %q", got)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestOneByteWritesReal(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := trickle{p.dial(t)}
	send(t, conn, packet(version30, "user\x00ann\x00database\x00bank\x00\x00"), message('Q', "SELECT 'slowly'\x00"))
	until(t, conn, 'Z')
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 'slowly'")
}

// TestBackendDies: the client reads the engine's last message, then the end.
func TestBackendDies(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	killer := connect(t, p.addr, "")
	send(t, conn, message('Q', "SELECT pg_backend_pid()\x00"))
	var pid string
	for {
		typ, body, err := readMessage(conn)
		if err != nil {
			t.Fatal(err)
		}
		if typ == 'D' {
			pid = body[6:]
		}
		if typ == 'Z' {
			break
		}
	}
	if _, err := killer.Exec(t.Context(), "SELECT pg_terminate_backend("+pid+")"); err != nil {
		t.Fatal(err)
	}
	typ, body, err := readMessage(conn)
	if err != nil || typ != 'E' || !strings.Contains(body, "57P01") {
		t.Errorf("got %q %q, %v; want 57P01", typ, body, err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// TestFunctionCall uses the fast-path protocol, as libpq does for large objects.
func TestFunctionCall(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	// lo_creat(-1): function 957, one binary argument, a binary result
	send(t, conn, message('F', "\x00\x00\x03\xbd\x00\x01\x00\x01\x00\x01\x00\x00\x00\x04\xff\xff\xff\xff\x00\x01"))
	if got := until(t, conn, 'Z'); got != "VZ" {
		t.Errorf("messages %q", got)
	}
	send(t, conn, message('F', "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00")) // no such function
	if got := until(t, conn, 'Z'); got != "EZ" {
		t.Errorf("messages %q", got)
	}
	send(t, conn, message('Q', "SELECT 'after'\x00"))
	until(t, conn, 'Z')
	if q := p.sink.find(t, "SELECT 'after'"); !q.Doubt.Has("dp.epsilon") {
		t.Error("settings are certain though a function was called out of sight")
	}
}

// TestFailedStatements: a statement whose error may be an answer is captured with its SQLSTATE, one that the server
// rejected with a place in the text is not.
func TestFailedStatements(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	simple := func(sql string) {
		send(t, conn, message('Q', sql+"\x00"))
		until(t, conn, 'Z')
	}
	extended := func(sql string) {
		send(t, conn, message('P', "\x00"+sql+"\x00\x00\x00"), message('B', "\x00\x00\x00\x00\x00\x00\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', ""))
		until(t, conn, 'Z')
	}
	const rows = " FROM generate_series(0, 1) x"
	deep := "SELECT 'deep', " + strings.Repeat("1+", 8000) + "1"
	simple("SELECT ln(x)" + rows)
	extended("SELECT ln(x), 2" + rows)
	simple("SELECT 'complete'; SELECT 1/x" + rows + "; SELECT 'not run'")
	simple("CREATE TEMP TABLE t AS SELECT 1/x" + rows)
	simple("PREPARE p AS SELECT 2/x" + rows)
	simple("EXECUTE p")
	simple("COPY (SELECT 3/x" + rows + ") TO STDOUT")
	simple("SET statement_timeout = 20")
	simple("SELECT pg_sleep(100)")
	simple("SET statement_timeout = 0")
	simple("SELEC")
	simple("SELECT 'unknown' FROM nowhere")
	simple(deep)
	extended("SELEC")
	simple("BEGIN; SELECT 4/x" + rows)
	simple("SELECT 'in a failed transaction'")
	extended("SELECT 'in a failed transaction'")
	simple("ROLLBACK")
	simple("SELECT 'end'")
	p.sink.find(t, "SELECT 'end'")
	var got []string
	for _, q := range p.sink.all() {
		got = append(got, strings.TrimSpace(q.SQL+" | "+q.Outcome.String()+" "+q.SQLState))
	}
	want := []string{
		"SELECT ln(x)" + rows + " | failed 2201E",
		"SELECT ln(x), 2" + rows + " | failed 2201E",
		"SELECT 'complete' | completed",
		"SELECT 1/x" + rows + " | failed 22012",
		"CREATE TEMP TABLE t AS SELECT 1/x" + rows + " | failed 22012",
		"PREPARE p AS SELECT 2/x" + rows + " | completed",
		"SELECT 2/x" + rows + " | failed 22012",
		"COPY (SELECT 3/x" + rows + ") TO STDOUT | failed 22012",
		"SET statement_timeout = 20 | completed",
		"SELECT pg_sleep(100) | cancelled 57014",
		"SET statement_timeout = 0 | completed",
		deep + " | failed 54001",
		"BEGIN | completed",
		"SELECT 4/x" + rows + " | failed 22012",
		"ROLLBACK | completed",
		"SELECT 'end' | completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClientGone: a client that has read its rows and closes the connection has got an answer.
func TestClientGone(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	const sql = "SELECT x, pg_sleep(CASE x WHEN 3 THEN 100 ELSE 0 END), repeat('x', 100000) FROM generate_series(1, 3) x"
	send(t, conn, message('Q', sql+"\x00"))
	until(t, conn, 'D')
	_ = conn.Close()
	if q := p.sink.find(t, sql); q.Outcome != capture.Lost {
		t.Errorf("outcome: %s", q.Outcome)
	}
}

// TestLongPipelines: clients at a time send pipelines of thousands of small statements, more than the capture budget
// holds. Behind each, the session is followed again, and its settings are certain. The first statement behind one can
// be missed: where the drainer got no processor since, the records are still there and leave no room.
func TestLongPipelines(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), func(o *proxy.Options) {
		o.DrainInterval = 0
		o.MaybeProtected = capture.Mentions([]string{"users"})
	})
	one := bytes.Join([][]byte{
		message('P', "\x00SELECT $1::int\x00\x00\x00"), message('B', "\x00\x00\x00\x00\x00\x01\x00\x00\x00\x041234\x00\x00"),
		message('D', "P\x00"), message('E', "\x00\x00\x00\x00\x00"),
	}, nil)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			conn := p.rawSession(t)
			send(t, conn, message('P', fmt.Sprintf("s\x00SELECT 'prepared %d' AS users\x00\x00\x00", i)), message('S', ""))
			until(t, conn, 'Z')
			for pipeline, syncs := range []int{1, 6000} {
				batch := append(bytes.Repeat(one, 6000), message('S', "")...)
				if syncs > 1 {
					batch = bytes.Repeat(append(bytes.Clone(one), message('S', "")...), syncs)
				}
				go func() { _, _ = conn.Write(batch) }()
				for range syncs {
					until(t, conn, 'Z')
				}
				sql := fmt.Sprintf("SELECT 'behind %d %d' AS users", i, pipeline)
				eventually.True(t, "query "+sql+" is captured", func() bool {
					send(t, conn, message('Q', sql+"\x00"))
					until(t, conn, 'Z')
					return slices.Contains(p.sink.sqls(), sql)
				}, func() any { return p.Stats() })
			}
			send(t, conn, message('B', "\x00s\x00\x00\x00\x00\x00\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', ""))
			until(t, conn, 'Z')
		})
	}
	clients.Wait()
	for i := range 4 {
		for _, sql := range []string{fmt.Sprintf("SELECT 'behind %d 0' AS users", i), fmt.Sprintf("SELECT 'behind %d 1' AS users", i), fmt.Sprintf("SELECT 'prepared %d' AS users", i)} {
			if q := p.sink.find(t, sql); q.Doubt.Has("dp.epsilon") {
				t.Errorf("%s: settings are uncertain", sql)
			}
		}
	}
	s := p.Stats()
	t.Logf("gaps %d, not copied %d", s.UncapturedOverflow, s.SkippedNotCopied)
	if s.UncapturedPairing+s.UncapturedProtocol+s.UncapturedPanic > 0 {
		t.Errorf("%+v", s)
	}
	eventually.True(t, "every session is followed", func() bool {
		s := p.Stats()
		return s.Unfollowed["over_budget"]+s.Unfollowed["pairing"] == 0 && len(s.UnfollowedSessions) == 0
	})
}
