package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/outcome"
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
	kept := func(schema string) outcome.CopyEnds {
		return outcome.CopyEnds{Schema: schema, Trials: outcome.FewestKept}
	}
	gone := func(schema string, n int) outcome.CopyEnds {
		return outcome.CopyEnds{Schema: schema, Trials: n, Ended: n}
	}
	for _, tc := range []struct {
		name, sql string
		stmt      replay.Statement
		protocol  replay.Protocol
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
		{name: "in the place of the twin", sql: d1, stmt: replay.Statement{Places: []int{2, 1}}, want: []outcome.CopyEnds{gone("d1", 2), kept("twin")}, one: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			opt := options(dsn)
			opt.Copies, opt.Twin, opt.Protocol, opt.Connections = []string{"d0", "d1"}, "twin", tc.protocol, 1
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
