package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestMain is also the child of these tests.
func TestMain(m *testing.M) {
	if os.Getenv("GATEWAY_TEST_CHILD") != "" {
		childMain()
		return
	}
	pgtest.Main(m)
}

// childMain answers a fixed text for what the statement contains.
func childMain() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := lines.Text()
		for _, c := range []struct{ has, answer string }{
			{"types", `{"columns": [{"name": "b", "type": "bool"}, {"name": "i", "type": "int8"}, {"name": "f", "type": "float8"}, {"name": "t", "type": "text"}],
				"rows": [[true, 9007199254740993, 0.1, "é"], [null, null, null, null], [false, -1, -1.5, ""]]}`},
			{`"describe":true`, `{"columns": [{"name": "a", "type": "text"}]}`},
			{"process", fmt.Sprintf(`{"columns": [{"name": "a", "type": "int8"}], "rows": [[%d]]}`, os.Getpid())},
			{"echo", fmt.Sprintf(`{"columns": [{"name": "a", "type": "text"}], "rows": [[%q]]}`, line)},
			{"fails", `{"error": "too much", "code": "22003"}`},
			{"garbage", "?"},
			{"wrong", `{"columns": [{"name": "i", "type": "int8"}], "rows": [["x"]]}`},
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
func serveOn(t *testing.T, n int, source string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	engine, err := startPool(ctx, command, source, n)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); engine.stop(); cancel() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(ctx, conn, engine)
		}
	}()
	return "postgres://u@" + listener.Addr().String() + "/x?sslmode=prefer"
}

// script serves childMain.
func script(t *testing.T, n int) string {
	t.Helper()
	return serveOn(t, n, "", "env", "GATEWAY_TEST_CHILD=1", os.Args[0])
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

// Values of every type arrive in text and binary, NULL too, several rows; parameters reach the child as texts.
func TestTypes(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, script(t, 1))
	for _, mode := range modes {
		rows, err := conn.Query(t.Context(), "types", mode)
		if err != nil {
			t.Fatal(err)
		}
		type row struct {
			B *bool
			I *int64
			F *float64
			T *string
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err != nil || len(all) != 3 || !*all[0].B || *all[0].I != 9007199254740993 || *all[0].F != 0.1 || *all[0].T != "é" ||
			all[1] != (row{}) || *all[2].B || *all[2].I != -1 || *all[2].F != -1.5 || *all[2].T != "" {
			t.Errorf("%v: %+v, %v", mode, all, err)
		}
	}
	var got string
	if err := conn.QueryRow(t.Context(), "echo $1 $2", pgx.QueryExecModeDescribeExec, "it's", nil).Scan(&got); err != nil ||
		got != `{"sql":"echo $1 $2","parameters":["it's",null],"describe":false}` {
		t.Errorf("%q, %v", got, err)
	}
	failsWith(t, conn, "58000", "wrong")
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
	for done := false; !done; { // a request that comes before the statement does has no effect
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-canceled:
			var pg *pgconn.PgError
			if done = true; !errors.As(err, &pg) || pg.Code != "57014" {
				t.Errorf("canceled: %v", err)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	process()
}

// Two children answer two statements at the same time.
func TestPool(t *testing.T) {
	t.Parallel()
	dsn := script(t, 2)
	busy, conn := pgtest.Connect(t, dsn), pgtest.Connect(t, dsn)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _, _ = busy.Exec(ctx, "sleeps"); close(done) }()
	for range 10 {
		if _, err := conn.Exec(t.Context(), "process"); err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-done
}

// What drivers send beside queries works.
func TestLocal(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, script(t, 1))
	for _, mode := range modes {
		for _, sql := range []string{"SET application_name TO x", "SELECT 1", "SHOW TimeZone", "BEGIN", "ROLLBACK", "", "COMMIT"} {
			if _, err := conn.Exec(t.Context(), sql, mode); err != nil {
				t.Errorf("%q, %v: %v", sql, mode, err)
			}
		}
		failsWith(t, conn, "0A000", "SET work_mem TO '1MB'", mode)
		failsWith(t, conn, "42704", "SHOW nothing", mode)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil || conn.PgConn().TxStatus() != 'T' {
		t.Fatal(err)
	}
	failsWith(t, conn, "22003", "fails")
	failsWith(t, conn, "25P02", "SELECT 1")
	if err := tx.Commit(t.Context()); !errors.Is(err, pgx.ErrTxCommitRollback) || conn.PgConn().TxStatus() != 'I' {
		t.Error(err)
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
	if text := string(out); err == nil || !strings.Contains(text, "t|9007199254740993|0.1|é\n|||\nf|-1|-1.5|\n") || !strings.Contains(text, "ERROR:  too much") ||
		!strings.Contains(text, "ROLLBACK") || !strings.Contains(text, "ERROR:  what?") {
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
	clipped := pgtest.Connect(t, serveOn(t, 1, source, noisy, "-epsilon", "1e9"))
	unclipped := pgtest.Connect(t, serveOn(t, 1, source, noisy, "-epsilon", "1e9", "-broken", "no-clip"))
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
		go func() { serve(t.Context(), server, nil); close(done) }()
		_, _ = client.Write([]byte(bytes))
		_ = client.Close()
		<-done
	}
}
