package audit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// remake replaces the copies like a refresh, in one transaction: d0 gets the given number of people, d1 lacks the given
// number of them.
func (r *rig) remake(t *testing.T, people, missing int) {
	t.Helper()
	conn := pgtest.Connect(t, r.dsn)
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"BEGIN", nil},
		{"DROP TABLE d0.people, d1.people", nil},
		{"CREATE TABLE d0.people (id int, grp int)", nil},
		{"INSERT INTO d0.people SELECT g, g % 3 FROM generate_series(1, $1::int) g", []any{people}},
		{"CREATE TABLE d1.people (id int, grp int)", nil},
		{"INSERT INTO d1.people SELECT * FROM d0.people WHERE id > $1", []any{missing}},
		{"COMMIT", nil},
	} {
		if _, err := conn.Exec(t.Context(), step.sql, step.args...); err != nil {
			t.Fatalf("%s: %v", step.sql, err)
		}
	}
}

// wait polls the only audit until a condition holds.
func (r *rig) wait(t *testing.T, what string, ok func(view.Entry) bool) view.Entry {
	t.Helper()
	var e view.Entry
	eventually.True(t, what, func() bool {
		e = r.Status().Audits[0]
		return ok(e)
	}, func() any { return e })
	return e
}

// TestDecidedAuditOfOldCopies: a query that is run again after the copies were replaced is audited on the new ones.
func TestDecidedAuditOfOldCopies(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.EpochEvery = 20 * time.Millisecond })
	q := query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/")
	r.Submit(q)
	r.run(t)
	if e := r.decided(t)[0]; e.Report.Verdict != analysis.NoEvidence || e.Restarts != 0 {
		t.Fatalf("%s after %d restarts, want no evidence and none", e.Report.Verdict, e.Restarts)
	}
	r.remake(t, 200, 100) // not neighbours at all: the count differs visibly
	e := r.wait(t, "the audit begins anew", func(e view.Entry) bool { r.Submit(q); return e.Restarts == 1 })
	if e.ID != r.Status().Audits[0].ID || len(r.Status().Audits) != 1 {
		t.Errorf("%d audits, want the same one", len(r.Status().Audits))
	}
	e = r.decided(t)[0]
	if e.Report.Verdict != analysis.Violation {
		t.Errorf("%s on the new copies, want a violation: %+v", e.Report.Verdict, e.Report)
	}
	// Evidence that begins again has its share of the error rate, so that the whole audit stays within it.
	if got, want := 1-e.Report.Confidence, 1e-6*multiplicity.RestartShare(1); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("after a restart the error rate is %.3g, want %.3g", got, want)
	}
}

// TestCopiesChangeUnderAnAudit: evidence of two pairs of datasets is not mixed. The new copies are identical, so that
// only a mixture could look like a leak.
func TestCopiesChangeUnderAnAudit(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 1_000_000, 1 })
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	r.wait(t, "trials", func(e view.Entry) bool { return e.Report.Trials.D0 > 300 })
	r.remake(t, 200, 0)
	after := r.wait(t, "the evidence is dropped", func(e view.Entry) bool { return e.Restarts == 1 })
	if after.State == view.Decided || after.Report.Verdict == analysis.Violation {
		t.Errorf("%s, %s", after.State, after.Report.Verdict)
	}
	grown := r.wait(t, "new trials", func(e view.Entry) bool { return e.Report.Trials.D0 > 100 })
	if grown.Restarts != 1 || grown.Report.Verdict == analysis.Violation {
		t.Errorf("%d restarts, %s", grown.Restarts, grown.Report.Verdict)
	}
	pgtest.Exec(t, r.dsn, "INSERT INTO d0.people SELECT g, 0 FROM generate_series(1000, 1040) g") // they are neighbours no more
	changed := r.wait(t, "the audit waits for other copies", func(e view.Entry) bool {
		return strings.Contains(e.Trouble, "their rows have changed in place") || e.Verdict == string(analysis.Violation)
	})
	if changed.Verdict == string(analysis.Violation) {
		t.Errorf("an honest query is accused: %+v", changed.Report)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) != 0 {
		t.Errorf("alerts: %+v", r.findings)
	}
}

// TestPanicInAnAudit: a panic is recovered and counted, ends only that audit, and the others continue.
func TestPanicInAnAudit(t *testing.T) {
	t.Parallel()
	first := make(chan struct{}, 1)
	first <- struct{}{}
	r := newRig(t, func(o *audit.Options) {
		o.Workers = 1
		o.Seed = func() uint64 {
			select {
			case <-first:
				panic("planted")
			default:
				return 1
			}
		}
	})
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT noisy(count(*), 0.3) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	entries := r.decided(t)
	if v := entries[0].Report.Verdict; v != analysis.Inconclusive || entries[0].Trouble == "" {
		t.Errorf("the audit that panicked: %s, trouble %q", v, entries[0].Trouble)
	}
	if v := entries[1].Report.Verdict; v != analysis.Violation {
		t.Errorf("the other audit: %s", v)
	}
	if n := r.Status().Panics; n != 1 {
		t.Errorf("%d panics counted, want 1", n)
	}
}
