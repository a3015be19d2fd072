package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// A simple query gives the same outcomes as the extended one, failures included.
func TestSimpleLikeExtended(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	quick := options(dsn)
	quick.StatementTimeout = 500 * time.Millisecond
	for _, sql := range []string{
		`SELECT grp, sum(income), NULL AS nothing, true AS yes, '' AS empty FROM %s.people GROUP BY 1 ORDER BY 1`,
		`SELECT id::int8, income::numeric FROM %s.people WHERE id > 2`,
		`SELECT 1 / (count(*) - 2) FROM %s.people`,
		`SELECT 1 / (id - 2) FROM %s.people ORDER BY id DESC`, // rows, then an error
		`SELECT grp::int FROM %s.people`,
		`SELECT g FROM generate_series(1, 999 + (SELECT count(*) FROM %s.people WHERE id <> 1)) g`,
		`SELECT pg_sleep(600) FROM %s.people`, // too slow in both worlds, whatever the load of the machine
		`SELECT FROM %s.people`,
		`SELECT count(*) FROM %s.people -- the client's comment`,
	} {
		p := player(t, options(dsn))
		if strings.Contains(sql, "pg_sleep") {
			p = player(t, quick)
		}
		extended, err := rounds(t, p, replay.Statement{}, sql, 3)
		if err != nil {
			t.Fatal(err)
		}
		simple, err := rounds(t, p, replay.Statement{Simple: true}, sql, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(extended, simple); diff != "" {
			t.Errorf("%s: (-extended +simple)\n%s", sql, diff)
		}
	}
}

// Trials use the protocol of the client unless the options select one: the server's log shows simple queries as
// statements.
func TestProtocol(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	for _, tc := range []struct {
		protocol replay.Protocol
		captured bool // as a simple query
		kept     bool // plans
	}{
		{"", true, false},
		{replay.Captured, true, false},
		{replay.Captured, false, true},
		{replay.Extended, true, true},
		{replay.Simple, false, false},
	} {
		opt := options(dsn)
		opt.Protocol = tc.protocol
		got, err := rounds(t, player(t, opt), replay.Statement{Simple: tc.captured}, "SELECT count(p.name) FROM pg_prepared_statements p, %s.people x", 2)
		if err != nil {
			t.Fatal(err)
		}
		if kept := got[0][0].Rows[0][0].Num > 0; kept != tc.kept {
			t.Errorf("protocol %q, captured as a simple query %t: statements prepared %t", tc.protocol, tc.captured, kept)
		}
	}
	opt := options(dsn)
	opt.Protocol = replay.Simple
	params := replay.Statement{Params: []capture.Param{{OID: 23, Value: []byte("1")}}}
	var setup *replay.SetupError
	params.Worlds = []string{"SELECT $1::int", "SELECT $1::int"}
	if _, err := player(t, opt).Start(params, 1); !errors.As(err, &setup) || !strings.Contains(err.Error(), "parameters") {
		t.Errorf("parameters in a simple query: %v", err)
	}
}

// Every trial calls a random function that is declared IMMUTABLE: simple queries are planned again each time.
func TestSimpleIsPlannedAnew(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	pgtest.Exec(t, dsn, `CREATE FUNCTION planned() RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN random(); END'`)
	got, err := rounds(t, player(t, options(dsn)), replay.Statement{Simple: true}, "SELECT planned() FROM %s.people LIMIT 1", 20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for _, round := range got {
		seen[round[0].Rows[0][0].Num], seen[round[1].Rows[0][0].Num] = true, true
	}
	if len(seen) != 40 {
		t.Errorf("%d draws in 40 trials", len(seen))
	}
}

// Each trial is a transaction of its own, and an error ends only its own.
func TestSimpleTransactions(t *testing.T) {
	t.Parallel()
	p := player(t, options(shadow(t)))
	got, err := rounds(t, p, replay.Statement{Simple: true}, "SELECT extract(epoch FROM now()), current_setting('transaction_read_only') FROM %s.people LIMIT 1", 10)
	if err != nil {
		t.Fatal(err)
	}
	times := map[float64]bool{}
	for _, round := range got {
		for _, o := range round {
			if times[o.Rows[0][0].Num] = true; o.Rows[0][1].Text != "on" {
				t.Errorf("a trial that may write: %v", o)
			}
		}
	}
	if len(times) < 15 { // two sessions may begin in the same microsecond
		t.Errorf("%d transactions for 20 trials", len(times))
	}
}

// Long queries and long results do not deadlock server and client.
func TestSimpleLong(t *testing.T) {
	t.Parallel()
	opt := options(shadow(t))
	opt.MaxBytes, opt.Connections = 64<<20, 1
	for _, length := range []int{10, 5000, 100_000, 2_000_000} {
		text := strings.Repeat("x", length)
		got, err := rounds(t, player(t, opt), replay.Statement{Simple: true}, "SELECT '"+text+"' || repeat('y', 1000000) FROM %s.people LIMIT 1", 8)
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range got {
			for world, o := range round {
				if got := o.Rows[0][0].Text; len(got) != length+1_000_000 {
					t.Fatalf("queries of %d bytes, world %d: a text of %d", length, world, len(got))
				}
			}
		}
	}
}

// Set-up errors and a session that ends give the same errors as with extended queries, and the run continues.
func TestSimpleErrors(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	p := player(t, options(dsn))
	for sql, want := range map[string]string{
		"SELECT * FROM %s.gone":                     "create the copies again",
		"SELECT anon_count(id, 1) FROM %s.people":   "install the engine's functions",
		"DELETE FROM %s.people":                     "the query writes",
		"COPY %s.people FROM STDIN":                 "the query writes",
		"COPY (SELECT id FROM %s.people) TO STDOUT": "unexpected *pgproto3.CopyOutResponse",
	} {
		if _, err := rounds(t, p, replay.Statement{Simple: true}, sql, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", sql, err, want)
		}
	}
	run, err := p.Start(replay.Statement{Simple: true, Worlds: []string{"SELECT pg_backend_pid() FROM d0.people", "SELECT 1 FROM d1.people"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpwatch-replay' AND datname = current_database()")
	if _, err := run.Rounds(t.Context(), 2); !replay.Transient(err) {
		t.Errorf("after the kill: %v, want a transient error", err)
	}
	if _, err := run.Rounds(t.Context(), 2); err != nil {
		t.Errorf("the run did not recover: %v", err)
	}
}

// A cancelled replay ends soon, and so does its statement on the server.
func TestSimpleCancelled(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	opt := options(dsn)
	opt.StatementTimeout = time.Hour
	run, err := player(t, opt).Start(replay.Statement{Simple: true, Worlds: []string{"SELECT pg_sleep(1800)", "SELECT pg_sleep(1800)"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := run.Rounds(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	const asleep = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(1800)%' AND state = 'active' AND pid <> pg_backend_pid()"
	eventually.True(t, "the server has stopped both statements", func() bool { return number(t, dsn, asleep) == 0 })
}

// Hoisted queries are replayed as prepared statements, whatever the client's protocol; unmodified trials are simple
// queries, and both give the same.
func TestSimpleHoisted(t *testing.T) {
	t.Parallel()
	s := replay.Statement{Simple: true, Hoist: replay.ForceHoisting()}
	got, err := rounds(t, player(t, options(shadow(t))), s, `SELECT (SELECT sum(income) FROM %s.people) + 0 * random() AS total`, 300)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Hoist.Report(); !r.Hoisted || r.HoistedRounds == 0 || r.UnmodifiedRounds == 0 {
		t.Errorf("%+v", r)
	}
	for _, round := range got {
		if round[0].Rows[0][0].Num != 30.5 || round[1].Rows[0][0].Num != 30.5 {
			t.Fatalf("%v, want 30.5 in both worlds", round)
		}
	}
}

func number(t *testing.T, dsn, sql string) (n int) {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
