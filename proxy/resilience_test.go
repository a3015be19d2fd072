package proxy_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// TestHugeValues streams 100 MB to the engine and 100 MB back, and measures the process's allocations meanwhile. It is
// not parallel, because nothing else may allocate.
func TestHugeValues(t *testing.T) {
	longtest.Skip(t)
	p := start(t, postgres.upstream(t), nil)
	conn := p.rawSession(t)
	const size = 100 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	send(t, conn, message('P', "\x00SELECT length($1), $1\x00\x00\x01\x00\x00\x00\x19"))
	bind := []byte("\x00\x00\x00\x00\x00\x01")
	bind = binary.BigEndian.AppendUint32(bind, size)
	header := binary.BigEndian.AppendUint32([]byte{'B'}, uint32(4+len(bind)+size+2))
	send(t, conn, header, bind)
	block := []byte(strings.Repeat("v", 64<<10))
	for sent := 0; sent < size; sent += len(block) {
		if _, err := conn.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	send(t, conn, []byte("\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', ""))
	var types []byte
	var got int64
	head := make([]byte, 5)
	for len(types) == 0 || types[len(types)-1] != 'Z' {
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		n := int64(binary.BigEndian.Uint32(head[1:])) - 4
		for rest := n; rest > 0; {
			k, err := conn.Read(block[:min(rest, int64(len(block)))])
			if err != nil {
				t.Fatal(err)
			}
			rest -= int64(k)
		}
		types, got = append(types, head[0]), got+n
	}
	runtime.ReadMemStats(&after)
	if string(types) != "12DCZ" || got < size {
		t.Fatalf("messages %q with %d bytes", types, got)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated while 200 MB passed", grown)
	}
	send(t, conn, message('Q', "SELECT 'after'\x00"))
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 'after'")
	if n := p.Stats().SkippedNotCopied; n != 1 {
		t.Errorf("%d statements were not copied, want 1", n)
	}
}

// backends counts the engine's sessions that run a statement like this.
func backends(t *testing.T, watch *pgx.Conn, like string) (n int) {
	t.Helper()
	const sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND pid <> pg_backend_pid() AND state <> 'idle'"
	if err := watch.QueryRow(t.Context(), sql, like).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClientDies: a client that disconnects in the middle, with or without Terminate, ends its backend and no other.
func TestClientDies(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	watch := connect(t, p.addr, "")
	for i, test := range []struct {
		name, sql string
		waitFor   byte
		more      []byte
	}{
		{"COPY in", "COPY died_%d FROM STDIN", 'G', message('d', "1\n2\n")},
		{"COPY in, within a message", "COPY died_%d FROM STDIN", 'G', []byte("d\x00\x00\xff\xff1\n")},
		{"COPY out", "COPY (SELECT repeat('x', 1000) AS died_%d FROM generate_series(1, 10000000)) TO STDOUT", 'H', nil},
		{"rows", "SELECT repeat('x', 1000) AS died_%d FROM generate_series(1, 10000000)", 'T', nil},
		{"within a header", "COPY died_%d FROM STDIN", 'G', []byte("d\x00")},
	} {
		for _, reset := range []bool{false, true} {
			id := 2*i + map[bool]int{true: 1}[reset]
			t.Run(fmt.Sprintf("%s/reset %v", test.name, reset), func(t *testing.T) {
				conn := p.rawSession(t)
				send(t, conn, message('Q', fmt.Sprintf("CREATE UNLOGGED TABLE died_%d (a int)\x00", id)))
				until(t, conn, 'Z')
				send(t, conn, message('Q', fmt.Sprintf(test.sql, id)+"\x00"))
				until(t, conn, test.waitFor)
				send(t, conn, test.more)
				like := fmt.Sprintf("%%died_%d %%", id)
				eventually.True(t, "the statement runs", func() bool { return backends(t, watch, like) == 1 })
				if reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
				_ = conn.Close()
				eventually.True(t, "the backend is gone", func() bool { return backends(t, watch, like) == 0 })
				eventually.True(t, "the session is gone", func() bool { return p.Stats().OpenSessions == 1 })
				var rows int
				if err := watch.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM died_%d", id)).Scan(&rows); err != nil || rows != 0 {
					t.Errorf("%d rows, %v: half a COPY was kept", rows, err)
				}
				if _, err := watch.Exec(t.Context(), fmt.Sprintf("DROP TABLE died_%d", id)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestServerRestarts: the engine crashes and recovers, and later shuts down. Clients read its error, then the end, and
// reconnect through the same proxy.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	pgtest.NeedsServer(t)
	ctx := t.Context()
	engine, err := pgtemp.Start(ctx, pgtemp.Options{HBA: hba, Settings: map[string]string{"restart_after_crash": "on"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Stop() })
	upstream := proxy.Address{Network: "tcp", Address: net.JoinHostPort(engine.Host(), strconv.Itoa(engine.Port()))}
	p := start(t, upstream, nil)
	open := func() (*pgx.Conn, error) {
		return tryConnect(t, p.addr, "user=postgres dbname=postgres database=postgres password="+engine.Password())
	}
	idle, err := open()
	if err != nil {
		t.Fatal(err)
	}
	busy, err := open()
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := busy.Exec(context.Background(), "SELECT pg_sleep(600)")
		failed <- err
	}()
	eventually.True(t, "the statement runs", func() bool { return backends(t, idle, "SELECT pg_sleep(600)%") == 1 })
	if err := syscall.Kill(int(busy.PgConn().PID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the killed backend's statement succeeded")
	}
	eventually.True(t, "the other session ends, too", func() bool {
		_, err := idle.Exec(ctx, "SELECT 1")
		return err != nil
	})
	var conn *pgx.Conn
	eventually.True(t, "clients get in again", func() bool {
		conn, err = open()
		return err == nil
	})
	if _, err := conn.Exec(ctx, "SELECT 'recovered'"); err != nil {
		t.Fatal(err)
	}
	p.sink.find(t, "SELECT 'recovered'")
	if err := engine.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "SELECT 1"); sqlState(err) != "57P01" {
		t.Errorf("at the shutdown: %v, want 57P01", err)
	}
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "08001") {
		t.Errorf("without an engine: %v, want 08001", err)
	}
	eventually.True(t, "no session is left", func() bool { return p.Stats().OpenSessions == 0 })
	if s := p.Stats(); s.UncapturedPairing+s.UncapturedPanic+s.UncapturedProtocol != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestHalfClosedClients: each side of a session can end before the other.
func TestHalfClosedClients(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := observe(t, postgres.upstream(t), 0, nil)
	conn := dial(t, o.outer.addr)
	send(t, conn, packet(version30, "user\x00ann\x00database\x00bank\x00\x00"))
	until(t, conn, 'Z')
	send(t, conn, message('Q', "COPY (SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i) TO STDOUT\x00"), message('Q', "SELECT 'last'\x00"))
	closeWrite(t, conn)
	if got := until(t, conn, 'Z'); !strings.HasPrefix(got, "Hdd") || !strings.HasSuffix(got, "cCZ") {
		t.Errorf("messages %.20q", got)
	}
	if got := until(t, conn, 'Z'); got != "TDCZ" {
		t.Errorf("messages %q", got)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	_ = conn.Close()
	o.same(t)
	o.sink.find(t, "SELECT 'last'")
}

// TestSettingsAreAsShown compares the captured settings with the output of SHOW.
func TestSettingsAreAsShown(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := connect(t, p.addr, "default_query_exec_mode=simple_protocol")
	for i, test := range []struct{ set, name string }{
		{"SET search_path = a, b", "search_path"},
		{"SET search_path = 'a, b'", "search_path"},
		{`SET search_path TO "$user", "Mixed Case", public, 'q"uote'`, "search_path"},
		{"SET search_path = ''", "search_path"},
		{"SET SCHEMA 'my schema'", "search_path"},
		{"SELECT set_config('search_path', 'a,  \"B\"', false)", "search_path"},
		{"SET dp.epsilon = 0.50", "dp.epsilon"},
		{"SET dp.epsilon = -1e-6", "dp.epsilon"},
		{"SET dp.epsilon TO On", "dp.epsilon"},
		{"SELECT set_config('DP.Epsilon', ' 0.5', false)", "dp.epsilon"},
		{"SET extra_float_digits = 1", "extra_float_digits"},
		{"SET ROLE pg_monitor", "role"},
		{"SET ROLE NONE", "role"},
		{"SET application_name = 'x y'", "application_name"},
		{"SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "timezone"},
		{"SET TIME ZONE INTERVAL '-05:30' HOUR TO MINUTE", "timezone"},
	} {
		if _, err := conn.Exec(t.Context(), test.set); err != nil {
			t.Fatalf("%s: %v", test.set, err)
		}
		var shown string
		if err := conn.QueryRow(t.Context(), "SHOW "+test.name).Scan(&shown); err != nil {
			t.Fatal(err)
		}
		sql := fmt.Sprintf("SELECT %d", i)
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		q := p.sink.find(t, sql)
		got := q.Settings[test.name]
		if test.name == "application_name" {
			got = q.ApplicationName
		}
		if got != shown || q.Doubt.Has(test.name) {
			t.Errorf("%s: captured %q (uncertain: %v), the server shows %q", test.set, got, q.Doubt.Has(test.name), shown)
		}
		if test.name == "timezone" { // a replay sets it so
			if _, err := conn.Exec(t.Context(), "SET timezone = '"+got+"'"); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestExecuteReal: the captured form of EXECUTE, run with parameters, gives the same result as EXECUTE.
func TestExecuteReal(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := connect(t, p.addr, "default_query_exec_mode=simple_protocol")
	check := connect(t, postgres.upstream(t).Address, "")
	for i, test := range []struct{ types, expression, args string }{
		{"(int, text)", "$1 || $2", "41, 'it''s'"},
		{"", "$1::float8 / 2", "1e-6"},
		{"", "$1::text || 'x'", "007"},
		{"", "$1::text", "-.50"},
		{"(float8)", "$1", "0.1"},
		{"(numeric)", "$1", "1.50e1"},
		{"(real)", "$1", "0.1"},
		{"(bigint)", "$1", "'12'::bigint"},
		{"(date)", "$1 + 1", "DATE '2020-02-28'"},
		{"(bool, text)", "$1::text || $2", "true, false"},
		{"(varchar(2))", "$1", "'abc'"},
		{"(character varying)", "$1", "CAST('abc' AS text)"},
		{"(timestamp with time zone)", "$1", "'2020-01-01 00:00+02'"},
		{"(double precision, int)", "$1 + $2", "0.5::float8, NULL"},
	} {
		name := fmt.Sprintf("p%d", i)
		inner := fmt.Sprintf("SELECT (%s)::text AS v%d", test.expression, i)
		if _, err := conn.Exec(t.Context(), "PREPARE "+name+" "+test.types+" AS "+inner); err != nil {
			t.Fatal(err)
		}
		var want *string
		if err := conn.QueryRow(t.Context(), "EXECUTE "+name+"("+test.args+")").Scan(&want); err != nil {
			t.Fatalf("%s%s: %v", test.expression, test.args, err)
		}
		q := p.sink.find(t, inner)
		values, oids := make([][]byte, len(q.Params)), make([]uint32, len(q.Params))
		for i, param := range q.Params {
			values[i], oids[i] = param.Value, param.OID
		}
		r := check.PgConn().ExecParams(t.Context(), q.SQL, values, oids, nil, nil).Read()
		if r.Err != nil || len(r.Rows) != 1 {
			t.Errorf("%s with %q: %v", q.SQL, values, r.Err)
			continue
		}
		if got := r.Rows[0][0]; (got == nil) != (want == nil) || want != nil && string(got) != *want {
			t.Errorf("%s with %q gives %q, EXECUTE (%s) gave %v", q.SQL, values, got, test.args, want)
		}
	}
	if n := p.Stats().SkippedArguments; n != 0 {
		t.Errorf("%d were not followed", n)
	}
}

// TestSocketPath: the cluster's socket is in the directory that the tests expect.
func TestSocketPath(t *testing.T) {
	t.Parallel()
	if a := postgres.socket(t); filepath.Dir(a.Address) != postgres.SocketDir() {
		t.Errorf("socket %s", a.Address)
	}
}
