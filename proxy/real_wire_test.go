package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if q := p.sink.find(t, "SELECT 'after'"); !q.SettingsUncertain {
		t.Error("settings are certain though a function was called out of sight")
	}
}
