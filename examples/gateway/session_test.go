package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// Values of every type arrive in text and binary, NULL too, several rows, all digits; parameters reach the child as texts.
func TestTypes(t *testing.T) {
	t.Parallel()
	each(t, script(t, 1), func(t *testing.T, conn *pgx.Conn) {
		for _, mode := range modes {
			type row struct {
				B *bool
				I *int64
				F *float64
				T *string
				N pgtype.Numeric
				D pgtype.Date
				J *string
			}
			rows, err := conn.Query(t.Context(), "types", mode)
			if err != nil {
				t.Fatal(err)
			}
			all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
			if err != nil || len(all) != 3 || !*all[0].B || *all[0].I != 9007199254740993 || *all[0].F != 0.1 || *all[0].T != "é" ||
				all[1] != (row{}) || *all[2].B || *all[2].I != -1 || *all[2].F != -1.5 || *all[2].T != "" {
				t.Fatalf("%v: %+v, %v", mode, all, err)
			}
			for i, want := range []string{"123456789012345678901234567890.10", "", "-0.50"} {
				if got, err := all[i].N.Value(); err != nil || i != 1 && got != want {
					t.Errorf("%v: numeric %v, %v, want %s", mode, got, err, want)
				}
			}
			if d := all[0].D; d.Time.Format(time.DateOnly) != "2020-02-29" || all[2].D.Time.Year() != 1 || *all[0].J != `{"a": 9007199254740993}` || *all[2].J != "[1.0]" {
				t.Errorf("%v: %+v %+v", mode, all[0], all[2])
			}
		}
		var got string
		if err := conn.QueryRow(t.Context(), "echo $1 $2", pgx.QueryExecModeDescribeExec, "it's", nil).Scan(&got); err != nil ||
			got != `{"sql":"echo $1 $2","parameters":["it's",null],"describe":false}` {
			t.Errorf("%q, %v", got, err)
		}
		for sql, code := range map[string]string{"wrong": "22P03", "unknown type": "0A000", "short row": "XX000"} {
			var number int64
			var pg *pgconn.PgError
			if err := conn.QueryRow(t.Context(), sql, pgx.QueryExecModeDescribeExec).Scan(&number); !errors.As(err, &pg) || pg.Code != code || strings.Contains(pg.Message, "secret") {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
}

// TestClaim: what an answer costs arrives before it is complete, and a client cannot set it.
func TestClaim(t *testing.T) {
	t.Parallel()
	each(t, script(t, 1), func(t *testing.T, conn *pgx.Conn) {
		for _, mode := range modes {
			if _, err := conn.Exec(t.Context(), "types", mode); err != nil {
				t.Fatal(err)
			}
			status := conn.PgConn().ParameterStatus
			if epsilon := status("dp.epsilon"); epsilon != "" && mode == modes[0] {
				t.Errorf("before a claim: epsilon %s", epsilon)
			}
			if _, err := conn.Exec(t.Context(), "costs", mode); err != nil || status("dp.epsilon") != "1.5" || status("dp.delta") != "1e-6" {
				t.Errorf("%v: epsilon %q, delta %q, %v", mode, status("dp.epsilon"), status("dp.delta"), err)
			}
		}
		failsWith(t, conn, "0A000", "SET dp.epsilon = 9")
	})
}

// A portal sends its rows in parts, and ends with the transaction.
func TestPortals(t *testing.T) {
	t.Parallel()
	each(t, script(t, 1), func(t *testing.T, conn *pgx.Conn) {
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		raw, err := conn.PgConn().Hijack()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = raw.Conn.Close() })
		f := raw.Frontend
		var got []string
		exchange := func(messages ...pgproto3.FrontendMessage) {
			t.Helper()
			for _, m := range append(messages, &pgproto3.Sync{}) {
				f.Send(m)
			}
			if err := f.Flush(); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := f.Receive()
				if err != nil {
					t.Fatal(err)
				}
				switch m := m.(type) {
				case *pgproto3.DataRow:
					got = append(got, string(m.Values[0]))
				case *pgproto3.PortalSuspended:
					got = append(got, "suspended")
				case *pgproto3.CommandComplete:
					got = append(got, string(m.CommandTag))
				case *pgproto3.ErrorResponse:
					got = append(got, m.Code)
				case *pgproto3.ReadyForQuery:
					got = append(got, string(m.TxStatus))
					return
				}
			}
		}
		exchange(&pgproto3.Parse{Name: "many", Query: "many"}, &pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "many"}, &pgproto3.Execute{Portal: "p", MaxRows: 3})
		exchange(&pgproto3.Parse{Query: "SELECT 5"}, &pgproto3.Bind{}, &pgproto3.Execute{})
		exchange(&pgproto3.Execute{Portal: "p", MaxRows: 3})
		exchange(&pgproto3.Execute{Portal: "p"}, &pgproto3.Execute{Portal: "p"})
		exchange(&pgproto3.Bind{DestinationPortal: "q", PreparedStatement: "many"}, &pgproto3.Parse{Query: "COMMIT"}, &pgproto3.Bind{}, &pgproto3.Execute{})
		exchange(&pgproto3.Execute{Portal: "q"}, &pgproto3.Execute{Portal: "q"})                            // one error: the others up to Sync are skipped
		exchange(&pgproto3.Close{ObjectType: 'S', Name: "many"}, &pgproto3.Bind{PreparedStatement: "many"}) // closed
		exchange(&pgproto3.Parse{Query: "SELECT 1; SELECT 2"})
		exchange(&pgproto3.Parse{Name: "many", Query: "many $1"}, &pgproto3.Bind{PreparedStatement: "many", ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{1}, {2}}}, &pgproto3.Execute{})
		want := "1 2 3 suspended T 5 SELECT 1 T 4 5 6 suspended T 7 SELECT 1 SELECT 0 T COMMIT I 34000 I 26000 I 0A000 I 1 2 3 4 5 6 7 SELECT 7 I"
		if all := strings.Join(got, " "); all != want {
			t.Errorf("got  %s\nwant %s", all, want)
		}
	})
}

// What drivers send beside queries works.
func TestLocal(t *testing.T) {
	t.Parallel()
	each(t, script(t, 1), func(t *testing.T, conn *pgx.Conn) {
		exec := func(sql string, args ...any) string {
			t.Helper()
			tag, err := conn.Exec(t.Context(), sql, args...)
			var pg *pgconn.PgError
			if errors.As(err, &pg) {
				return pg.Code
			} else if err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			return tag.String()
		}
		for _, mode := range modes {
			for _, c := range [][2]string{
				{"SET application_name TO x", "SET"},
				{"SET extra_float_digits = 3", "SET"},
				{"SET client_encoding TO 'utf8'", "SET"},
				{"SET client_encoding TO latin1", "0A000"},
				{`SET "statement_timeout" = '5s'`, "0A000"},
				{"SET work_mem TO '1MB'", "42704"},
				{"SET LOCAL application_name TO x", "0A000"},
				{"SET application_name TO DEFAULT", "0A000"},
				{"COMMIT PREPARED 'x'", "42601"}, // the engine's
				{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET"},
				{"RESET ALL", "RESET"},
				{"SELECT 1", "SELECT 1"},
				{"/* a comment */ select 12 AS n; -- another", "SELECT 1"},
				{"SHOW timezone", "SHOW"},
				{"SHOW TRANSACTION ISOLATION LEVEL", "SHOW"},
				{"SHOW nothing", "42704"},
				{"", ""},
				{"-- ping", ""},
				{"COMMIT", "COMMIT"},
				{"SAVEPOINT a", "25P01"},
				{"SELECT 1; SELECT 2", "0A000"},
				{"SELECT relname FROM pg_catalog.pg_class", "0A000"},
				{"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "BEGIN"},
				{"SAVEPOINT a", "SAVEPOINT"},
				{"fails", "22003"},
				{"no SQL [", "25P02"},
				{"SHOW timezone", "25P02"},
				{"BEGIN", "25P02"},
				{"SAVEPOINT b", "25P02"},
				{"", ""},
				{"ROLLBACK WORK TO SAVEPOINT a", "ROLLBACK"},
				{"many", "SELECT 7"},
				{"RELEASE a", "RELEASE"},
				{"fails", "22003"},
				{"COMMIT", "ROLLBACK"},
				{"START TRANSACTION", "BEGIN"},
				{"END", "COMMIT"},
				{"BEGIN", "BEGIN"},
				{"ABORT", "ROLLBACK"},
			} {
				if c[1] == "42601" && mode == pgx.QueryExecModeDescribeExec { // childMain describes everything
					continue
				}
				if c[0] == "fails" && mode == pgx.QueryExecModeDescribeExec {
					c[0] = "fails to describe"
				}
				if got := exec(c[0], mode); got != c[1] {
					t.Errorf("%q, %v: %s, want %s", c[0], mode, got, c[1])
				}
			}
		}
		for _, forget := range []string{"DEALLOCATE s", "DEALLOCATE PREPARE ALL", "DISCARD ALL"} {
			if _, err := conn.PgConn().Prepare(t.Context(), "s", "many", nil); err != nil {
				t.Fatal(err)
			}
			if r := conn.PgConn().ExecPrepared(t.Context(), "s", nil, nil, nil).Read(); r.Err != nil || len(r.Rows) != 7 {
				t.Errorf("%d rows, %v", len(r.Rows), r.Err)
			}
			exec("SET application_name TO other")
			exec(forget, pgx.QueryExecModeSimpleProtocol)
			var pg *pgconn.PgError
			if r := conn.PgConn().ExecPrepared(t.Context(), "s", nil, nil, nil).Read(); !errors.As(r.Err, &pg) || pg.Code != "26000" {
				t.Errorf("after %s: %v", forget, r.Err)
			}
		}
		if name := conn.PgConn().ParameterStatus("application_name"); name != "" { // as at startup
			t.Errorf("after DISCARD ALL: application_name %q", name)
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
	})
}
