package main

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestParse(t *testing.T) {
	t.Parallel()
	q, err := parse(`SELECT dp_count(*), dp_sum("Age") AS total FROM s."My Table" WHERE a < 3 AND (b = 'it''s' OR c >= -1)`)
	if err != nil {
		t.Fatal(err)
	}
	if q.table != `"s"."My Table"` || q.where != ` WHERE ("a" < 3 AND ("b" = 'it''s' OR "c" >= -1))` ||
		strings.Join(q.columns, ",") != "dp_count,total" || strings.Join(q.sums, ",") != `,"Age"` {
		t.Errorf("%+v", q)
	}
	for _, sql := range []string{
		"", "SELECT 1", "SELECT count(*) FROM t", "SELECT dp_count(*) FROM t, u", "SELECT dp_count(*) FROM t GROUP BY x", "SELECT dp_sum(a + 1) FROM t",
		"SELECT dp_count(*) FROM t WHERE 1 / a > 0", "SELECT dp_count(*) FROM t WHERE f(a)", "SELECT dp_count(*) FROM t WHERE NOT a = 1", "SELECT dp_count(*) FROM t LIMIT 1",
		"SELECT dp_count(*) FROM t; SELECT dp_count(*) FROM t", "DELETE FROM t", "SELECT dp_count(a) FROM t", "SELECT s.dp_count(*) FROM t", "no SQL",
		"SELECT dp_count(*) FROM (SELECT 1) x", "SELECT dp_count(*) FROM t WHERE a = b", "SELECT dp_count(*) INTO u FROM t", "SELECT dp_count(*) FROM t FOR UPDATE",
	} {
		if q, err := parse(sql); err == nil {
			t.Errorf("%q is answered as %+v", sql, q)
		}
	}
}

// The noise has the intended distribution: the share of zeros of discrete Laplace noise of scale s is (1-a)/(1+a) with
// a = exp(-1/s), and the mean square 2a/(1-a)². Each comparison is within six standard errors.
func TestNoise(t *testing.T) {
	t.Parallel()
	const n = 200_000
	for _, tc := range []struct {
		broken string
		scale  float64
	}{{"none", 2}, {"no-clip", 2}, {"half-noise", 1}} {
		e := engine{broken: tc.broken}
		zeros, squares, fourth := 0.0, 0.0, 0.0
		for range n {
			x := e.noisy(7, 1, 1, 0.5) - 7
			if x == 0 {
				zeros++
			}
			squares += x * x
			fourth += x * x * x * x
		}
		a := math.Exp(-1 / tc.scale)
		p, v := (1-a)/(1+a), 2*a/((1-a)*(1-a))
		if got := zeros / n; math.Abs(got-p) > 6*math.Sqrt(p*(1-p)/n) {
			t.Errorf("%s: %v of the draws are 0, want %v", tc.broken, got, p)
		}
		if got := squares / n; math.Abs(got-v) > 6*math.Sqrt((fourth/n-got*got)/n) {
			t.Errorf("%s: mean square %v, want %v", tc.broken, got, v)
		}
	}
	seeded := engine{broken: "seeded"}
	first := seeded.noisy(7, 1, 1, 0.5)
	for range 100 {
		if seeded.noisy(7, 1, 1, 0.5) != first {
			t.Fatal("the seeded noise is not always the same")
		}
	}
	if x := (engine{broken: "none"}).noisy(123.4, 100, 100.0/steps, 1e9); math.Abs(x-123.4) > 100.0/steps {
		t.Errorf("123.4 without noise to speak of: %v", x)
	}
}

func TestCheckFlags(t *testing.T) {
	t.Parallel()
	right := engine{source: "postgres://u@h/x", high: 1, epsilon: 1, broken: "none"}
	if err := right.check(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(*engine){
		func(e *engine) { e.source = "" }, func(e *engine) { e.source = "::" }, func(e *engine) { e.broken = "much" },
		func(e *engine) { e.epsilon = 0 }, func(e *engine) { e.epsilon = math.NaN() }, func(e *engine) { e.low = 2 }, func(e *engine) { e.high = 0 },
	} {
		e := right
		spoil(&e)
		if e.check() == nil {
			t.Errorf("%+v is accepted", e)
		}
	}
}

// serveOn serves an engine and returns a session with it.
func serveOn(t *testing.T, e engine) *pgx.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go e.serve(context.Background(), conn)
		}
	}()
	conn := pgtest.Connect(t, "postgres://u@"+listener.Addr().String()+"/x?sslmode=prefer")
	return conn
}

// With negligible noise, answers are correct, bounded by user, in either protocol; errors are reported, and the session
// goes on.
func TestAnswers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `CREATE TABLE visits AS SELECT g % 10 AS id, g::float8 AS cost FROM generate_series(1, 100) g;
		CREATE VIEW slow AS SELECT 1 AS id, pg_sleep(3600)::text AS cost`)
	e := engine{source: dsn, user: "id", low: 0, high: 100, epsilon: 1e9, broken: "none"}
	clipped := serveOn(t, e)
	e.broken = "no-clip"
	unclipped := serveOn(t, e)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec} {
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
		for sql, code := range map[string]string{
			"SELECT count(*) FROM visits": "0A000", "SELECT dp_count(*) FROM nowhere": "42P01", "SET work_mem TO '1MB'": "0A000",
		} {
			var pg *pgconn.PgError
			if _, err := clipped.Exec(t.Context(), sql, mode); !errors.As(err, &pg) || pg.Code != code {
				t.Errorf("%s, %v: got %v, want SQLSTATE %s", sql, mode, err, code)
			}
		}
	}
	if _, err := clipped.Exec(t.Context(), "SET statement_timeout TO 100"); err != nil {
		t.Fatal(err)
	}
	var pg *pgconn.PgError
	if _, err := clipped.Exec(t.Context(), "SELECT dp_count(*) FROM slow WHERE cost <> 'x'"); !errors.As(err, &pg) || pg.Code != "57014" {
		t.Errorf("a slow statement: %v", err)
	}
}

// Invalid messages end only their own session.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	e := engine{source: pgtest.Database(t), user: "id", high: 1, epsilon: 1, broken: "none"}
	for _, bytes := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x04", "\x7f\xff\xff\xff\x00\x03\x00\x00", "\x00\x00\x00\x08\x04\xd2\x16\x2e"} {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() { e.serve(t.Context(), server); close(done) }()
		_, _ = client.Write([]byte(bytes))
		_ = client.Close()
		<-done
	}
}
