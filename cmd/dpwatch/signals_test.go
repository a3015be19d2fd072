package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// awaitSQL waits until a condition holds in the server; the time limit only ends a test that hangs.
func awaitSQL(t *testing.T, conn *pgx.Conn, what, condition string, args ...any) {
	t.Helper()
	eventually.True(t, what, func() (holds bool) {
		if err := conn.QueryRow(t.Context(), "SELECT "+condition, args...).Scan(&holds); err != nil {
			t.Fatal(err)
		}
		return holds
	})
}

// TestTwoSignals: create, with and without --replace, that get two signals in quick succession, as from timeout, remove
// what they made; the third signal ends the process.
func TestTwoSignals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		command []string
		signals int
	}{{[]string{"create"}, 2}, {[]string{"create", "--replace"}, 2}, {[]string{"create"}, 3}} {
		t.Run(fmt.Sprint(tc.command, tc.signals), func(t *testing.T) {
			t.Parallel()
			source, shadow := pgtest.Database(t), pgtest.Database(t)
			// The rows can be written only while advisory lock 4711 of the shadow database is free.
			const slow = `CREATE FUNCTION public.slow(int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM %s; RETURN true; END';`
			pgtest.Exec(t, source, fmt.Sprintf(slow, "1")+`CREATE TABLE users (id int PRIMARY KEY CHECK (public.slow(id))); INSERT INTO users VALUES (1), (2), (3)`)
			pgtest.Exec(t, shadow, fmt.Sprintf(slow, "pg_advisory_xact_lock_shared(4711)"))
			path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}
shadow: {dsn: %q}
privacy: {protected: [public.users], unit: {table: public.users, key: id}}
neighbours: {source: %q, choose: [{rule: random}]}
`, shadow, source))
			if len(tc.command) > 1 {
				call(t, "", "neighbours", "create", "--config", path).want(t, exitDone, "epoch")
			}
			conn, holder := pgtest.Connect(t, shadow), pgtest.Connect(t, shadow)
			const schemas = "SELECT coalesce(string_agg(nspname, ' ' ORDER BY nspname), '') FROM pg_namespace WHERE nspname ~ '^(dpwatch_|d0|d1)'"
			var before, after string
			if err := conn.QueryRow(t.Context(), schemas).Scan(&before); err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_lock(4711)"); err != nil {
				t.Fatal(err)
			}
			cmd := program(t.Context(), append([]string{"neighbours", "--config", path}, tc.command...)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitSQL(t, conn, "the copy waits for the lock", "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))")
			if tc.signals == 3 { // so that removing waits, too
				if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE dpwatch.neighbour_unit IN ACCESS EXCLUSIVE MODE", pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatal(err)
				}
			}
			signal := func(s syscall.Signal) {
				if err := cmd.Process.Signal(s); err != nil && (tc.signals == 3 || !errors.Is(err, os.ErrProcessDone)) { // it may end before the second one
					t.Error(err)
				}
			}
			signal(syscall.SIGINT) // two signals of one kind may be delivered as one
			signal(syscall.SIGTERM)
			if tc.signals == 3 {
				awaitSQL(t, conn, "removing waits for the table", "EXISTS (SELECT FROM pg_locks WHERE relation = 'dpwatch.neighbour_unit'::regclass AND NOT granted)")
				signal(syscall.SIGTERM)
			}
			_ = cmd.Wait()
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if tc.signals == 3 {
				if !ok || status.Signal() != syscall.SIGTERM || !strings.Contains(stderr.String(), "another signal ends the process") {
					t.Errorf("it ended by %v, want the third SIGTERM: %s", cmd.ProcessState, &stderr)
				}
				return
			}
			if cmd.ProcessState.ExitCode() != exitFailure {
				t.Errorf("it ended by %v: %s", cmd.ProcessState, &stderr)
			}
			if err := conn.QueryRow(t.Context(), schemas).Scan(&after); err != nil {
				t.Fatal(err)
			}
			if left := slices.DeleteFunc(strings.Fields(after), func(s string) bool { return s == "dpwatch" || strings.Contains(before, s) }); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}
