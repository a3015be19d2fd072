package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// leaving is a version of the engine that ends the session on D1, which has 39 people, while the table leaves has rows.
// The right one does not.
const leaving = `CREATE OR REPLACE FUNCTION rounded(x float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
	IF x = 39 AND EXISTS (SELECT FROM leaves) THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END IF;
	RETURN round((x + laplace(2)) * 1048576) / 1048576; END $$`

// TestEndsOfSessions: a query that ends its session on one copy is found with few trials, here and in a worker, in the
// first turn, in the watch share and after an operator asked again; it does not run again when its statement comes
// again or its copies are replaced, and does when the engine changes.
func TestEndsOfSessions(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"here": 1, "in a worker": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngineRig(t, func(o *audit.Options) { o.Workers, o.WatchShare, o.WatchEvery = workers, 0.5, time.Millisecond })
			pgtest.Exec(t, e.dsn, "CREATE TABLE leaves AS SELECT 1 AS n", leaving)
			pgtest.Exec(t, e.production, "CREATE TABLE leaves AS SELECT 1 AS n", leaving)
			defer e.begin(t)()
			if workers == 0 {
				e.worker(t, "one", nil)
			}
			admin := pgtest.Connect(t, e.dsn)
			killed := func() (n int) {
				if err := admin.QueryRow(t.Context(), "SELECT sessions_killed FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			set := func(times int) { // aside, after so many audits that ended
				t.Helper()
				x := e.wait(t, "the audit is set aside", func(x view.Entry) bool {
					e.mu.Lock()
					defer e.mu.Unlock()
					found := 0
					for _, f := range e.findings {
						if f.Kind == finding.SessionEnds && f.Neighbour == "d1" && strings.Contains(f.Reason, "2 of 2") {
							found++
						}
					}
					return x.State == view.Decided && x.Report.Verdict == analysis.Inconclusive && found == times
				})
				if event := x.Report.Event; !strings.Contains(x.Report.Reason, "ends the session on the copy D1 (2 of 2 trials) and never on D0 (20 trials)") || event == nil || event.Kind != analysis.ErrorEvent || event.Direction != "D1" {
					t.Errorf("%s, event %+v", x.Report.Reason, event)
				}
				eventually.True(t, "the ends of sessions are counted", func() bool { return killed() >= 2*times }, func() any { return killed() })
				if n := killed(); n > 3*times { // sessions run trials at the same time
					t.Errorf("%d sessions ended in %d audits", n, times)
				}
			}
			e.Submit(query(engineQuery))
			set(1)

			pgtest.Exec(t, e.dsn, "CREATE TABLE d1.other AS TABLE d1.people; DROP TABLE d1.people; ALTER TABLE d1.other RENAME TO people")
			before := killed()
			eventually.True(t, "the copies are read again", func() bool {
				e.Submit(query(engineQuery))
				return e.Status().Audits[0].Restarts > 0
			}, func() any { return e.Status() })
			set(1)
			if n := killed(); n != before {
				t.Errorf("%d sessions ended after the copies were replaced", n-before)
			}

			e.deploy(t, "DELETE FROM leaves")
			e.deploy(t, repaired)
			e.wait(t, "the repaired engine is audited", func(x view.Entry) bool {
				return x.State == view.Decided && x.Report.Verdict == analysis.NoEvidence
			})
			e.deploy(t, leaving)
			e.wait(t, "the other engine is audited", func(x view.Entry) bool {
				return x.State == view.Decided && x.Report.Verdict == analysis.NoEvidence && x.EngineRestarts > 1
			})
			pgtest.Exec(t, e.dsn, "INSERT INTO leaves VALUES (1)") // found by trials in the watch share
			set(2)

			store, err := ledger.Open(t.Context(), e.ledger)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := store.Actions.Reaudit(t.Context(), "engine", e.Status().Audits[0].Key, "ann", "why"); err != nil {
				t.Fatal(err)
			}
			set(3)
		})
	}
}

// repaired is the right engine under another definition.
const repaired = `CREATE OR REPLACE FUNCTION rounded(x float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
	RETURN round((x + laplace(2)) * 1048576) / 1048576; END $$`

// TestEndsByOperator: an audit whose sessions an operator ends now and then waits, and has its verdict.
func TestEndsByOperator(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Analysis.MaxTrials = 1500 })
	defer l.begin(t)()
	admin := pgtest.Connect(t, l.dsn)
	l.Submit(query(longQuery))
	for i := range 3 {
		done := 0
		eventually.True(t, fmt.Sprintf("sessions are ended, %d", i), func() bool {
			var n int
			err := admin.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE application_name = 'dpwatch-replay' AND query LIKE '%noisy%' AND datname = current_database()`).Scan(&n)
			done += n
			return err == nil && done > 0
		})
	}
	if e := l.decided(t)[0]; e.Report.Verdict != analysis.NoEvidence || len(l.findings) > 0 {
		t.Errorf("%s: %s, findings %v", e.Report.Verdict, e.Report.Reason, l.findings)
	}
}
