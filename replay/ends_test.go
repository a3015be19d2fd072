package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// endless creates functions that end sessions, and a table that counts them.
func fillEnds(t *testing.T, dsn string) {
	t.Helper()
	fillShadow(t, dsn)
	pgtest.Exec(t, dsn, `CREATE FUNCTION leave(n bigint, yes boolean) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS
		$$ BEGIN IF yes THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END IF; RETURN n; END $$`)
}

// TestEndsOfSessions finds a statement that ends its session on one copy reported as an outcome of none or of another
// copy, run more often than needed, or repeated after the end of a session that was not its own.
func TestEndsOfSessions(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	fillEnds(t, dsn)
	const d0, d1 = "SELECT leave(count(*), count(*) = 3) FROM %s.people", "SELECT leave(count(*), count(*) = 2) FROM %s.people"
	places := map[string]int{"d0": 0, "d1": 1, "twin": 2}
	kept := func(schema string) outcome.CopyEnds {
		return outcome.CopyEnds{Schema: schema, Place: places[schema], Trials: outcome.FewestKept}
	}
	gone := func(schema string, n int) outcome.CopyEnds {
		return outcome.CopyEnds{Schema: schema, Place: places[schema], Trials: n, Ended: n}
	}
	for _, tc := range []struct {
		name, sql string
		stmt      replay.Statement
		protocol  replay.Protocol
		engine    bool // trials go through an engine beside the database
		want      []outcome.CopyEnds
		one       bool
	}{
		{name: "on D1", sql: d1, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "on D0", sql: d0, want: []outcome.CopyEnds{gone("d0", 2), kept("d1")}, one: true},
		{name: "on both", sql: "SELECT leave(count(*), true) FROM %s.people", want: []outcome.CopyEnds{gone("d1", 1), gone("d0", 2)}},
		{name: "as simple queries", sql: d1, protocol: replay.Simple, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "in sessions of their own", sql: d1, stmt: replay.Statement{Separate: &replay.Separation{VaryText: true}}, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "with a parameter", sql: "SELECT leave(count(*), count(*) = $1) FROM %s.people", stmt: replay.Statement{Params: []capture.Param{{OID: 20, Value: []byte("2")}}}, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "prepared", sql: d1, stmt: replay.Statement{Named: true}, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "in the part that is hoisted", sql: "SELECT random() + n FROM (" + d1 + ") AS x(n)", stmt: replay.Statement{Hoist: replay.ForceHoisting()}, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "in a later statement", sql: "SELECT count(*) FROM %s.people", stmt: replay.Statement{
			Separate: &replay.Separation{},
			Then:     []replay.Step{{Worlds: []string{strings.ReplaceAll(d1, "%s", "d0"), strings.ReplaceAll(d1, "%s", "d1")}}},
		}, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "through an engine", sql: d1, engine: true, want: []outcome.CopyEnds{gone("d1", 2), kept("d0")}, one: true},
		{name: "in the place of the twin", sql: d1, stmt: replay.Statement{Places: []int{2, 1}}, want: []outcome.CopyEnds{gone("d1", 2), kept("twin")}, one: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			opt := options(dsn)
			opt.Copies, opt.Twin, opt.Protocol, opt.Connections = []string{"d0", "d1"}, "twin", tc.protocol, 1
			if tc.engine {
				opt.Engines = []string{dsn}
			}
			_, err := rounds(t, player(t, opt), tc.stmt, tc.sql, 3)
			var found *replay.EndsError
			if !errors.As(err, &found) || found.Down {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, found.Copies); diff != "" && tc.name != "on both" {
				t.Error(diff)
			}
			ended, _, one := found.OneCopy()
			if one != tc.one || tc.one && !strings.Contains(err.Error(), fmt.Sprintf("ends the session on the copy %s (2 of 2 trials)", ended.Schema)) {
				t.Error(err)
			}
		})
	}
}

// TestEndsByOthers finds the crash of a server reported without the copy whose trial crashed it, or repeated, and
// sessions that others end (operators, crashes of other clients, a shutdown) held against a statement.
func TestEndsByOthers(t *testing.T) {
	t.Parallel()
	server, err := pgtemp.Start(t.Context(), pgtemp.Options{Settings: map[string]string{"restart_after_crash": "on", "synchronous_commit": "on"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	dsn := server.DSN("postgres")
	fillShadow(t, dsn)
	pgtest.Exec(t, dsn, `CREATE FUNCTION crash(n bigint, yes boolean) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS
			$$ BEGIN IF yes THEN COPY (SELECT 1) TO PROGRAM 'kill -SEGV $PPID'; PERFORM pg_sleep(60); END IF; RETURN n; END $$`,
		`CREATE FUNCTION vanish(n bigint, yes boolean) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS
			$$ BEGIN IF yes THEN COPY (SELECT 1) TO PROGRAM 'kill -KILL $PPID'; PERFORM pg_sleep(60); END IF; RETURN n; END $$`,
		`CREATE TABLE busy()`, `CREATE FUNCTION linger() RETURNS float8 LANGUAGE plpgsql AS
			$$ BEGIN WHILE EXISTS (SELECT FROM busy) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN random(); END $$`)
	again := func() { // as soon as the server accepts sessions
		eventually.True(t, "the server is up", func() bool {
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				return false
			}
			_ = conn.Close(t.Context())
			return true
		})
	}
	opt := options(dsn)
	opt.Copies = []string{"d0", "d1"}
	for _, tc := range []struct {
		name, sql string
		on        outcome.CopyEnds
	}{
		{"segmentation fault", "SELECT crash(count(*), count(*) = 2) FROM %s.people", outcome.CopyEnds{Schema: "d1", Place: 1, Trials: 1, Ended: 1}},
		{"out of memory", "SELECT vanish(count(*), count(*) = 3) FROM %s.people", outcome.CopyEnds{Schema: "d0", Trials: 1, Ended: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := rounds(t, player(t, opt), replay.Statement{}, tc.sql, 1)
			want := outcome.Ends{Down: true, Copies: []outcome.CopyEnds{tc.on}}
			if found := (*replay.EndsError)(nil); !errors.As(err, &found) || !cmp.Equal(found.Ends, want) {
				t.Fatal(err)
			}
			again()
		})
	}
	const active = "pid <> pg_backend_pid() AND application_name = 'dpwatch-replay'"
	for _, tc := range []struct{ name, ends string }{
		{"an operator ends the session of a trial", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND " + active},
		{"an operator ends all sessions", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " + active},
		{"another client crashes the server", "SELECT crash(1, true)"},
		{"an immediate shutdown", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pgtest.Exec(t, dsn, "INSERT INTO busy DEFAULT VALUES")
			admin := pgtest.Connect(t, dsn)
			p := player(t, opt)
			failed := make(chan error, 1)
			go func() {
				_, err := rounds(t, p, replay.Statement{}, "SELECT linger() FROM %s.people LIMIT 1", 1)
				failed <- err
			}()
			eventually.True(t, "a trial runs", func() bool {
				select {
				case err := <-failed:
					t.Fatal("before the end: ", err)
				default:
				}
				var n int
				err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT linger()%' AND "+active).Scan(&n)
				return err == nil && n > 0
			})
			if tc.ends == "" {
				_ = syscall.Kill(server.PID(), syscall.SIGQUIT)
			} else if tx, err := admin.Begin(t.Context()); err == nil {
				_, _ = tx.Exec(t.Context(), "DELETE FROM busy")
				_, _ = tx.Exec(t.Context(), tc.ends)
				_ = tx.Commit(t.Context())
			}
			if err := <-failed; !replay.Transient(err) || errors.As(err, new(*replay.EndsError)) {
				t.Fatal(err)
			}
			if tc.ends == "" {
				return
			}
			again()
			pgtest.Exec(t, dsn, "DELETE FROM busy")
			if _, err := rounds(t, p, replay.Statement{}, "SELECT linger() FROM %s.people LIMIT 1", 1); err != nil {
				t.Error(err)
			}
		})
	}
}
