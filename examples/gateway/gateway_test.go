package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestMain is also the child of these tests.
func TestMain(m *testing.M) {
	switch os.Getenv("GATEWAY_TEST_CHILD") {
	case "":
		pgtest.Main(m)
	case "sql":
		sqlMain()
	default:
		childMain()
	}
}

// childMain answers a fixed text for what the statement contains.
func childMain() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := lines.Text()
		for _, c := range []struct{ has, answer string }{
			{"types", `{"columns": [{"name": "b", "type": "bool"}, {"name": "i", "type": "int8"}, {"name": "f", "type": "float8"}, {"name": "t", "type": "text"},
					{"name": "n", "type": "numeric"}, {"name": "d", "type": "date"}, {"name": "j", "type": "jsonb"}],
				"rows": [[true, 9007199254740993, 0.1, "é", 123456789012345678901234567890.10, "2020-02-29", {"a": 9007199254740993}], [null, null, null, null, null, null, null],
					[false, -1, -1.5, "", "-0.50", "0001-01-01", "[1.0]"]]}`},
			{"costs", `{"columns": [{"name": "i", "type": "int8"}], "rows": [[1]], "claim": {"dp.epsilon": "1.5", "dp.delta": "1e-6"}}`},
			{"unknown type", `{"columns": [{"name": "i", "type": "flaot8"}], "rows": [[1]]}`},
			{"short row", `{"columns": [{"name": "i", "type": "int8"}, {"name": "j", "type": "int8"}], "rows": [[1]]}`},
			{"many", `{"columns": [{"name": "i", "type": "int8"}], "rows": [[1], [2], [3], [4], [5], [6], [7]]}`},
			{"wrong", `{"columns": [{"name": "i", "type": "int8"}], "rows": [["secret"]]}`},
			{"fails to describe", `{"error": "too much", "code": "22003"}`},
			{`"describe":true`, `{"columns": [{"name": "a", "type": "text"}]}`},
			{"process", fmt.Sprintf(`{"columns": [{"name": "a", "type": "int8"}], "rows": [[%d]]}`, os.Getpid())},
			{"echo", fmt.Sprintf(`{"columns": [{"name": "a", "type": "text"}], "rows": [[%q]]}`, line)},
			{"fails", `{"error": "too much", "code": "22003"}`},
			{"garbage", "?"},
			{"sleeps", "-"},
			{"dies", "."},
			{"", `{"error": "what?", "code": "42601"}`},
		} {
			if strings.Contains(line, c.has) {
				switch c.answer {
				case "-":
					time.Sleep(time.Hour)
				case ".":
					os.Exit(1)
				}
				fmt.Println(strings.ReplaceAll(c.answer, "\n", " "))
				break
			}
		}
	}
}

// serveOn serves an engine of n children and returns a connection string.
func serveOn(t *testing.T, n int, command ...string) string {
	t.Helper()
	p := make(pool, n)
	for range n {
		p <- start(command)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		for len(p) > 0 {
			c := <-p
			_, _ = c.Process.Kill(), c.Wait()
		}
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, p)
		}
	}()
	return "postgres://u@" + listener.Addr().String() + "/x?sslmode=prefer"
}

// script serves childMain.
func script(t *testing.T, n int) string {
	t.Helper()
	return serveOn(t, n, "env", "GATEWAY_TEST_CHILD=script", os.Args[0])
}

var modes = []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec}

// failsWith expects an SQLSTATE.
func failsWith(t *testing.T, conn *pgx.Conn, code, sql string, args ...any) {
	t.Helper()
	var pg *pgconn.PgError
	if _, err := conn.Exec(t.Context(), sql, args...); !errors.As(err, &pg) || pg.Code != code {
		t.Errorf("%s: got %v, want SQLSTATE %s", sql, err, code)
	}
}

// each runs a test with a connection to the gateway, and with one through the proxy.
func each(t *testing.T, dsn string, test func(t *testing.T, conn *pgx.Conn)) {
	t.Helper()
	t.Run("direct", func(t *testing.T) { test(t, pgtest.Connect(t, dsn)) })
	t.Run("proxy", func(t *testing.T) { test(t, pgtest.Connect(t, through(t, dsn))) })
}

// The engine's errors keep their SQLSTATE; a child that dies, answers no JSON, or does not answer in time is replaced,
// and sessions go on.
func TestFaults(t *testing.T) {
	t.Parallel()
	dsn := script(t, 1)
	conn := pgtest.Connect(t, dsn)
	process := func() (pid int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "process", pgx.QueryExecModeExec).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	first := process()
	failsWith(t, conn, "22003", "fails")
	if process() != first {
		t.Error("an error of the engine ended its process")
	}
	failsWith(t, conn, "58000", "dies")
	failsWith(t, conn, "58000", "garbage")
	second := process()
	if _, err := conn.Exec(t.Context(), "SET statement_timeout TO 100"); err != nil {
		t.Fatal(err)
	}
	failsWith(t, conn, "57014", "sleeps")
	if _, err := conn.Exec(t.Context(), "SET statement_timeout TO 0"); err != nil {
		t.Fatal(err)
	}
	if third := process(); first == second || second == third {
		t.Error("a process that gave no answer goes on")
	}
	canceled := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "sleeps")
		canceled <- err
	}()
	var pg *pgconn.PgError
	if err := cancel(t, conn, canceled); !errors.As(err, &pg) || pg.Code != "57014" {
		t.Errorf("canceled: %v", err)
	}
	process()
}

// cancel asks to cancel the statement of a connection until it has ended, and returns how. A request that comes before
// the statement does has no effect.
func cancel(t *testing.T, conn *pgx.Conn, ended <-chan error) error {
	t.Helper()
	for {
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Two children answer two statements at the same time; a third statement that waits can be canceled.
func TestPool(t *testing.T) {
	t.Parallel()
	dsn := script(t, 2)
	busy, conn := pgtest.Connect(t, dsn), pgtest.Connect(t, dsn)
	sleep := func(conn *pgx.Conn) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), "sleeps")
			ended <- err
		}()
		return ended
	}
	first := sleep(busy)
	for range 10 {
		if _, err := conn.Exec(t.Context(), "process"); err != nil {
			t.Error(err)
		}
	}
	waiting := pgtest.Connect(t, dsn)
	second, third := sleep(conn), sleep(waiting)
	for _, c := range []struct {
		conn  *pgx.Conn
		ended <-chan error
	}{{waiting, third}, {conn, second}, {busy, first}} {
		if err := cancel(t, c.conn, c.ended); err == nil {
			t.Error("a canceled statement has an answer")
		}
	}
}

// psql works, and its \d is refused.
func TestPsql(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed")
	}
	out, err := exec.CommandContext(t.Context(), psql, "-XAt", script(t, 1), "-c", "types", "-c", "BEGIN", "-c", "fails", "-c", "ROLLBACK", "-c", `\d`).CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "t|9007199254740993|0.1|é|123456789012345678901234567890.10|2020-02-29|{\"a\": 9007199254740993}\n||||||\nf|-1|-1.5||-0.50|0001-01-01|[1.0]\n") || !strings.Contains(text, "ERROR:  too much") ||
		!strings.Contains(text, "ROLLBACK") || !strings.Contains(text, "ERROR:  this engine has no catalog") {
		t.Errorf("%v\n%s", err, text)
	}
}

// With negligible noise, the answers of noisy are right and bounded by user, in either protocol; the source's errors are
// reported without their messages.
func TestNoisy(t *testing.T) {
	t.Parallel()
	noisy := filepath.Join(t.TempDir(), "noisy")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "netgo,osusergo", "-o", noisy, "./noisy").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	source := pgtest.Database(t)
	pgtest.Exec(t, source, "CREATE TABLE visits AS SELECT g % 10 AS id, g::float8 AS cost FROM generate_series(1, 100) g")
	clipped := pgtest.Connect(t, serveOn(t, 1, "env", "SOURCE="+source, noisy, "-epsilon", "1e9"))
	unclipped := pgtest.Connect(t, serveOn(t, 1, "env", "SOURCE="+source, noisy, "-epsilon", "1e9", "-broken", "no-clip"))
	for _, mode := range modes {
		var count, sum float64
		scan := func(conn *pgx.Conn, sql string) {
			t.Helper()
			if err := conn.QueryRow(t.Context(), sql, mode).Scan(&count, &sum); err != nil {
				t.Fatalf("%s, %v: %v", sql, mode, err)
			}
		}
		scan(clipped, "SELECT dp_count(*), dp_sum(cost) FROM visits")
		if count != 10 || math.Abs(sum-1000) > 1 {
			t.Errorf("%v: %v users, sum %v, want 10 and 1000", mode, count, sum)
		}
		scan(unclipped, "SELECT dp_count(*), dp_sum(cost) FROM public.visits WHERE cost <= 50")
		if count != 50 || math.Abs(sum-1275) > 1 {
			t.Errorf("%v, without bounds: %v rows, sum %v, want 50 and 1275", mode, count, sum)
		}
		failsWith(t, clipped, "0A000", "SELECT count(*) FROM visits", mode)
		if mode != pgx.QueryExecModeDescribeExec { // which asks for the columns first
			failsWith(t, clipped, "42P01", "SELECT dp_count(*) FROM nowhere", mode)
		}
	}
}

// Invalid messages end only their own session.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	for _, bytes := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x04", "\x7f\xff\xff\xff\x00\x03\x00\x00", "\x00\x00\x00\x08\x04\xd2\x16\x2e"} {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() { serve(server, nil); close(done) }()
		_, _ = client.Write([]byte(bytes))
		_ = client.Close()
		<-done
	}
	dsn := script(t, 1)
	conn := pgtest.Connect(t, dsn)
	const startup = "\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"
	for _, bytes := range []string{
		"P\x00\x00\x00\x04", "B\x00\x00\x00\x05\x00", "B\x00\x00\x00\x0a\x00\x00\x7f\xff\x00\x00", "D\x00\x00\x00\x06X\x00", "E\x00\x00\x00\x05\x00", "C\x00\x00\x00\x04",
		"\x01\x00\x00\x00\x04", "Q\x7f\xff\xff\xff", "Q\x00\x00\x00\x04", "Q\x00\x00\x00\x06'\x00", "F\x00\x00\x00\x04", "d\x00\x00\x00\x04", "p\x00\x00\x00\x04",
		"P\x00\x00\x00\x12\x00$99999999\x00\x00\x00D\x00\x00\x00\x06S\x00", "P\x00\x00\x00\x0e\x00many\x00\x00\x00\x00\x00",
	} {
		raw, err := net.Dial("tcp", conn.PgConn().Conn().RemoteAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := raw.Write([]byte(startup + bytes + "S\x00\x00\x00\x04X\x00\x00\x00\x04")); err != nil {
			t.Fatal(err)
		}
		_ = raw.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, raw); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v", bytes, err)
		}
		_ = raw.Close()
		if _, err := conn.Exec(t.Context(), "many"); err != nil {
			t.Fatalf("after %q: %v", bytes, err)
		}
	}
}
