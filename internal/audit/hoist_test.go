package audit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/throttle"
	"github.com/dpwatch/dpwatch/rewrite"
)

// bulky adds rows to every world, in groups of their own, so that hoisting saves time.
func bulky(t *testing.T, r *rig, rows int) *pgx.Conn {
	t.Helper()
	conn := pgtest.Connect(t, r.dsn)
	for _, schema := range []string{"d0", "d1", "d2"} {
		if _, err := conn.Exec(t.Context(), "INSERT INTO "+schema+".people SELECT g, g % 3 FROM generate_series(1000, 1000 + $1::int) g", rows); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// An audit of several neighbours is hoisted, reports it, and reaches the same verdicts as without hoisting. The honest
// query, which leaks half of its claim, is called a violation with probability below 1e-7.
func TestHoistedAudit(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Hoist, o.D1, o.NoiseFunctions = true, []string{"d1", "d2"}, []string{"noisy"}
		o.Analysis.Confidence = 1 - 1e-7
	})
	bulky(t, r, 20_000)
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	entries := r.decided(t)
	// A machine that is busy with something else during hoisted trials can make them look slow: then with the next
	// query.
	for i := 1; strings.Contains(entries[i].Hoisting.Reason, "as fast") && i < 8; i++ {
		r.Submit(query(fmt.Sprintf("SELECT noisy(count(*), %d) FROM people /*dp_epsilon='0.5'*/", 4+i)))
		entries = r.decided(t)
	}
	broken, honest := entries[0], entries[len(entries)-1]
	if honest.Report.Verdict != analysis.NoEvidence || broken.Report.Verdict != analysis.Violation {
		t.Errorf("%s and %s, want no evidence and a violation", honest.Report.Verdict, broken.Report.Verdict)
	}
	if c := broken.Report.Confirmation; c == nil || c.State != analysis.Confirmed {
		t.Errorf("confirmation %+v; want whole trials that confirm it", c)
	}
	if h := honest.Hoisting; h == nil || !h.Hoisted || h.Pieces != 3 || h.HoistedTrials == 0 || !(h.SpeedUp > 0) || h.MinimalDetectable <= 0.5 {
		t.Errorf("hoisting %+v, want three tables, a measured speed, and what hoisted trials would have shown", honest.Hoisting)
	}
	// The verdict that there is no evidence counts whole trials alone.
	if trials := honest.Report.Trials.D0; trials != 400 {
		t.Errorf("%d trials of %+v, want the budget, all whole", trials, honest.Hoisting)
	}
}

// When data change during a hoisted audit, what hoisted trials showed does not count, and the whole ones go on.
func TestHoistingSpoilt(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Hoist, o.NoiseFunctions, o.Analysis.MaxTrials = true, []string{"noisy"}, 1_000_000
	})
	conn := bulky(t, r, 20_000)
	for _, schema := range []string{"d0", "d1"} { // of copies that are tables, a change in place would end the audit
		pgtest.Exec(t, r.dsn, fmt.Sprintf("CREATE SCHEMA kept_%[1]s; ALTER TABLE %[1]s.people SET SCHEMA kept_%[1]s; CREATE VIEW %[1]s.people AS SELECT * FROM kept_%[1]s.people", schema))
	}
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	// In both worlds in one transaction, so that the query stays honest.
	r.wait(t, "the audit is hoisted", func(e view.Entry) bool { return e.Hoisting.Hoisted && e.Hoisting.HoistedRounds > 0 })
	if _, err := conn.Exec(t.Context(), "DELETE FROM kept_d0.people WHERE id > 19000; DELETE FROM kept_d1.people WHERE id > 19000", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	e := r.wait(t, "hoisting ends, and no hoisted trial counts", func(e view.Entry) bool {
		return e.Hoisting.Reason != "" && e.Hoisting.HoistedTrials == 0 || e.State == view.Decided
	})
	if !strings.Contains(e.Hoisting.Reason, "differ") && !strings.Contains(e.Hoisting.Reason, "another distribution") || e.Hoisting.HoistedTrials != 0 {
		t.Fatalf("%s, %+v, want the difference told, and no hoisted trials left", e.Report.Verdict, e.Hoisting)
	}
	r.wait(t, "whole trials go on", func(now view.Entry) bool { return now.Report.Trials.D0 > e.Report.Trials.D0+100 })
}

// Tables with other rows of one world than its trials read would make an honest query look like a violation. The
// comparison of the laws shows it, or the confirmation on whole trials; none is reported.
func TestHoistingAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Hoist, o.NoiseFunctions, o.Analysis.MaxTrials = true, []string{"noisy"}, 20_000
	})
	conn := bulky(t, r, 20_000)
	// Tables are created in a transaction that may write; trials run in read-only ones.
	if _, err := conn.Exec(t.Context(), `ALTER TABLE d1.people RENAME TO all_people;
		CREATE VIEW d1.people AS SELECT * FROM d1.all_people WHERE current_setting('transaction_read_only') = 'on' OR id > 40`); err != nil {
		t.Fatal(err)
	}
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	e := r.wait(t, "the difference is seen", func(e view.Entry) bool {
		return strings.Contains(e.Hoisting.Reason, "another distribution") || strings.Contains(e.Hoisting.Reason, "did not confirm") || e.State == view.Decided
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.State == view.Decided || len(r.findings) > 0 || e.Hoisting.Hoisted {
		t.Errorf("%s, findings %+v, hoisting %+v; want hoisting given up for a difference", e.Report.Verdict, r.findings, e.Hoisting)
	}
}

// The sessions of hoisted audits stay open between turns, and are closed when replays are paused and when the audit is
// decided.
func TestResting(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	gate := throttle.New(throttle.Options{})
	r := newRig(t, func(o *audit.Options) {
		o.Hoist, o.NoiseFunctions, o.Analysis.MaxTrials, o.Workers, o.Gate = true, []string{"noisy"}, 2_000, 1, gate
		began := time.Now()
		o.Now = func() time.Time { return began.Add(100 * time.Since(began)) } // short turns, so that an audit has many
	})
	conn := bulky(t, r, 20_000)
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT noisy(count(*), 5) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	until := func(what string, reached func(view.Status) bool) {
		t.Helper()
		eventually.True(t, what, func() bool { return reached(r.Status()) }, func() any { return r.Status() })
	}
	until("one rests", func(s view.Status) bool { return s.Resting > 0 })
	gate.Pause(true)
	until("none rests while replays are paused", func(s view.Status) bool { return s.Resting == 0 })
	gate.Pause(false)
	r.decided(t)
	until("none rests when all are decided", func(s view.Status) bool { return s.Resting == 0 })
	eventually.True(t, "all sessions are closed", func() bool {
		var open int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'dpwatch-replay' AND pid <> pg_backend_pid()`).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
}

// TestAnnounce: a worker announces a statement before splitting it, and its end.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	begun, ended := map[string]int{}, map[string]int{}
	r := newRig(t, func(o *audit.Options) {
		o.Hoist = true
		o.Announce = func(sql string) func() {
			mu.Lock()
			defer mu.Unlock()
			begun[sql]++
			return func() {
				mu.Lock()
				defer mu.Unlock()
				ended[sql]++
			}
		}
	})
	q := query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/")
	r.Submit(q)
	r.run(t)
	r.decided(t)
	mu.Lock()
	defer mu.Unlock()
	if begun[q.SQL] == 0 || begun[q.SQL] != ended[q.SQL] || len(begun) != 1 {
		t.Errorf("begun %v, ended %v; want the client's text in both, as often", begun, ended)
	}
}

// A violation that needs more trials than run before hoisting begins is found on hoisted trials, and reported after
// whole trials alone have shown it. The probability that 20,000 trials do not show it, or that eight times as many
// trials as showed it do not confirm it, is below 1e-6.
func TestConfirmed(t *testing.T) {
	longtest.Skip(t) // it opens a thousand sessions
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Hoist, o.NoiseFunctions, o.Analysis.MaxTrials = true, []string{"noisy"}, 20_000
	})
	bulky(t, r, 100_000)                                                            // hoisting must be worth it on a busy machine, too
	r.Submit(query("SELECT noisy(count(*), 2.5) FROM people /*dp_epsilon='0.1'*/")) // epsilon 0.4
	r.run(t)
	r.wait(t, "hoisted trials show a violation", func(e view.Entry) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if e.Confirming && len(r.findings) > 0 {
			t.Error("it is reported before it is confirmed")
		}
		return e.Confirming || e.State == view.Decided
	})
	e := r.decided(t)[0]
	h := e.Hoisting
	c := e.Report.Confirmation
	if e.Report.Verdict != analysis.Violation || h.HoistedRounds == 0 || c == nil || c.State != analysis.Confirmed {
		t.Errorf("%s after %d trials, %+v; want a violation that whole trials confirmed", e.Report.Verdict, e.Report.Trials.D0, h)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) != 1 {
		t.Errorf("%d findings, want one", len(r.findings))
	}
}

// Two identical worlds, and a function that is wrongly declared IMMUTABLE: nothing is hoisted, and nothing is reported.
func TestFalselyImmutable(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Hoist, o.NoiseFunctions, o.Analysis.MaxTrials, o.Analysis.Confidence = true, []string{"noisy"}, 2_000, 1-1e-7
		o.Rewriter = anyFunction(t)
	})
	pgtest.Exec(t, r.dsn, `CREATE FUNCTION fi(x float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x + random() * 0.46; END';
		DROP TABLE d1.people; CREATE TABLE d1.people AS TABLE d0.people`)
	r.Submit(query("SELECT noisy(sum(fi(id)), 10) FROM people /*dp_epsilon='0.1'*/"))
	r.run(t)
	e := r.decided(t)[0]
	if e.Report.Verdict != analysis.NoEvidence || e.Hoisting.HoistedRounds != 0 || !strings.Contains(e.Hoisting.Reason, "differ between two sessions") {
		t.Errorf("%s, %+v; want it not hoisted, for the rows that differ", e.Report.Verdict, e.Hoisting)
	}
}

func anyFunction(t *testing.T) *rewrite.Rewriter {
	t.Helper()
	rewriter, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, AllowFunctions: []string{rewrite.AnyFunction},
		Claims: rewrite.ClaimRules{TrustComment: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rewriter
}
