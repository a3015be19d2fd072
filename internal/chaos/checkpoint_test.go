//go:build linux

package chaos_test

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/eventually"
)

// checkpoint compares what the ledger has with what the engine and the clients have counted, when an auditor has ended
// and the next one has not begun.
func (r *rig) checkpoint(t *testing.T) {
	t.Helper()
	if r.down { // what its last transactions left; the next auditor begins without it
		r.ledger.restart(t)
		defer r.ledger.crash(t)
	}
	ledger := connect(t, r.ledger.DSN("postgres"))
	defer ledger.Close(t.Context()) //nolint:errcheck // nothing to be done about it
	gone(t, r.engine, "dpwatch-replay")
	gone(t, ledger, "dpwatch ledger")
	called, trials, recorded := r.calls.read(t, r.engine), r.trialsOf(t, ledger), executionsOf(t, ledger)
	complete, began := 0, 0
	for q := range queries {
		if trials[q] == 0 { // the auditor ended before or in the first turn
			r.firsts[q]++
		}
		saved := trials[q] - r.trials[q]
		for _, rows := range []int{50, 49} {
			if ran := called[call{q, rows}] - r.called[call{q, rows}]; saved < 0 || saved > ran {
				t.Errorf("life %d, query %d: the ledger has %d more trials, and %d were executed on the copy of %d rows", r.lives, q, saved, ran, rows)
			}
		}
		complete += saved
		began += called[call{q, 50}] - r.called[call{q, 50}]
		if recorded[q] < r.recorded[q] || recorded[q] > int(r.load.began[q].Load()) {
			t.Errorf("life %d, query %d: the ledger has %d executions, %d before, and clients began %d", r.lives, q, recorded[q], r.recorded[q], r.load.began[q].Load())
		}
	}
	// Turns have at least 200 rounds or 20 seconds, except the first and the last one of every query, and those that
	// ended early.
	turns := complete/200 + (workers+remoteWorkers)*int(time.Since(r.at)/(20*time.Second)) + 2*queries + r.early
	most := workers*longestTurn + r.lost*longestRemoteTurn + turns*largestBatch
	if lost := began - complete; !r.away && lost > most {
		t.Errorf("life %d: %d rounds were executed and %d are in the ledger, though it was never away; %d turns, and %d that workers lost, can lack %d at most", r.lives, began, complete, turns, r.lost, most)
	} else {
		t.Logf("life %d: %d rounds, %d of them not in the ledger, ledger away: %v", r.lives, began, lost, r.away)
	}
	r.called, r.trials, r.recorded, r.at = called, trials, recorded, time.Now()
	r.lost, r.early = 0, 0
	r.began = counts(&r.load.failed)
	for q, n := range counts(&r.load.began) {
		r.began[q] = n - r.began[q]
	}
	r.lives++
	r.away = r.down
}

// recovered waits until the ledger has all executions since the last checkpoint and the auditor's evidence, and audits
// go on.
func (r *rig) recovered(t *testing.T) {
	t.Helper()
	ledger := connect(t, r.ledger.DSN("postgres"))
	defer ledger.Close(t.Context()) //nolint:errcheck // nothing to be done about it
	due := counts(&r.load.complete)
	eventually.True(t, "all executions since the last checkpoint are in the ledger", func() bool {
		recorded, lack := executionsOf(t, ledger), 0
		for q := range queries {
			lack += max(0, due[q]-r.began[q]-(recorded[q]-r.recorded[q]))
		}
		return lack <= r.sidecar.missed(t)-r.missed || t.Failed()
	}, func() any { return executionsOf(t, ledger) })
	now := time.Now()
	eventually.True(t, "all evidence is in the ledger", func() bool { return r.settled(t, now) || t.Failed() }, func() any { return r.get(t, "/api/status") })
	r.away = false
	before := r.trialsOf(t, ledger)
	eventually.True(t, "audits go on", func() bool {
		now, more := r.trialsOf(t, ledger), 0
		for q := range queries {
			more += now[q] - before[q]
		}
		return more > 0 || t.Failed()
	})
}

// gone waits until no session of an application is left.
func gone(t *testing.T, conn *pgx.Conn, application string) {
	t.Helper()
	eventually.True(t, "the sessions of the ended auditor are gone", func() bool {
		n := 0
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", application).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// trialsOf returns the trials of each query. An audit that began again, though it had trials in the ledger when its
// auditor ended, or whose progress was set aside, fails the test.
func (r *rig) trialsOf(t *testing.T, ledger *pgx.Conn) (out [queries]int) {
	t.Helper()
	for q, row := range rowsOf(t, ledger, "SELECT q.statement, a.trials, a.processes, (SELECT count(*) FROM dpwatch_ledger.set_aside) FROM dpwatch_ledger.audits a JOIN dpwatch_ledger.queries q ON q.id = a.query") {
		if out[q] = row[0]; row[1] > 1+r.firsts[q] || row[2] > 0 {
			t.Errorf("query %d: its evidence began %d times, and the progress of %d audits was set aside", q, row[1], row[2])
		}
	}
	return out
}

func executionsOf(t *testing.T, ledger *pgx.Conn) (out [queries]int) {
	t.Helper()
	for q, row := range rowsOf(t, ledger, "SELECT q.statement, (SELECT sum(u.executions) FROM dpwatch_ledger.query_users u WHERE u.query = q.id)::bigint, q.executions, 0::bigint FROM dpwatch_ledger.queries q") {
		if out[q] = row[0]; row[0] != row[1] {
			t.Errorf("query %d: %d executions by user, %d in all", q, row[0], row[1])
		}
	}
	return out
}

var queryNumber = regexp.MustCompile(`noisy\(([0-9]+),`)

// rowsOf returns rows of three numbers by query, whose number is in its statement. Before the ledger is created, and
// before the audit of a query begins, there is none.
func rowsOf(t *testing.T, ledger *pgx.Conn, text string) map[int][3]int {
	t.Helper()
	out := map[int][3]int{}
	rows, err := ledger.Query(t.Context(), text)
	if err == nil {
		var statement []byte
		var row [3]int
		_, err = pgx.ForEachRow(rows, []any{&statement, &row[0], &row[1], &row[2]}, func() error {
			if m := queryNumber.FindSubmatch(statement); m != nil {
				out[number(m[1])] = row
			}
			return nil
		})
	}
	var missing *pgconn.PgError
	if err != nil && !(errors.As(err, &missing) && missing.Code == "42P01") {
		t.Fatal(err)
	}
	return out
}
