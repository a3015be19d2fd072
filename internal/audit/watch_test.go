package audit_test

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestWatch: an engine whose noise depends on a table, which no catalog shows, gets worse after its query was decided.
// The watch share finds it without another execution by a client, and a restart in between does not forget the trials
// before it.
//
// Before the change, an alarm would have a probability of at most blocks/1000 if the claim were spent exactly. The true
// epsilon is half of it.
func TestWatch(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.WatchShare, o.WatchEvery = .5, time.Millisecond })
	pgtest.Exec(t, l.dsn, `CREATE TABLE factor AS SELECT 1::float8 AS f;
		CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT round((value + scale * (SELECT f FROM public.factor) * ln((1 - random()) / (1 - random()))) * 1024) / 1024'`)
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	l.decided(t)
	entry := func() view.Entry { return l.Status().Audits[0] }
	watched := func(trials int) func() bool {
		return func() bool { e := entry(); return e.Watch != nil && e.Watch.Trials >= trials }
	}
	eventually.True(t, "the audit is watched", watched(120), func() any { return entry() })
	stop()
	before := entry()
	if before.State != view.Decided || before.Verdict != string(analysis.NoEvidence) || before.Changes != 0 {
		t.Fatalf("%+v; want a decided audit that is watched", before)
	}
	l.restart(t, nil)
	stop = l.begin(t)
	defer stop()
	l.restored(t)
	eventually.True(t, "the detector goes on", func() bool { e := entry(); return e.Watch != nil && e.Watch.Trials > 0 }, func() any { return entry() })
	if e := entry(); e.Watch == nil || e.Watch.Trials <= before.Watch.Trials {
		t.Errorf("%+v after the restart, %d trials before; want the detector to go on", e.Watch, before.Watch.Trials)
	}
	pgtest.Exec(t, l.dsn, "UPDATE factor SET f = 0.05")
	eventually.True(t, "the violation is found", func() bool { return entry().Verdict == string(analysis.Violation) }, func() any { return entry() })
	if e := entry(); e.Changes != 1 || e.Previous != analysis.NoEvidence || e.Seen != 1 || e.Changed.IsZero() {
		t.Errorf("%d changes, %q before, seen %d times; want one, no evidence before, seen once", e.Changes, e.Previous, e.Seen)
	}
	var noted int
	err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT count(*) FROM dpwatch_ledger.events WHERE state = 'changed'").Scan(&noted)
	if err != nil || noted != 1 {
		t.Errorf("%d events of a change, %v; want one", noted, err)
	}
}

// TestWatchRepeat: a watched query is audited again from zero after Options.Repeat, without another execution by a
// client.
func TestWatchRepeat(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.WatchShare, o.WatchEvery, o.Repeat = .5, time.Millisecond, time.Millisecond
		o.Analysis.MaxTrials = 100
	})
	r.Submit(query(honestQuery))
	r.run(t)
	eventually.True(t, "the audit is repeated", func() bool {
		e := r.Status().Audits[0]
		return e.Repeats >= 2 && e.Previous == analysis.NoEvidence && e.Seen == 1
	}, func() any { return r.Status() })
}
