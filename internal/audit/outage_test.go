package audit_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestEngineChangesWhileLedgerAway: what had a verdict is audited again, and found, when the engine turns bad while the
// ledger is away, in the process that had the verdicts and after it. An audit that begins again and cannot record that
// has no texts until it can.
func TestEngineChangesWhileLedgerAway(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.ErrorLevel)
	e := newEngineRig(t, func(o *audit.Options) { o.Logger, o.WatchShare = zap.New(core), 0.5 })
	stop := e.begin(t)
	defer func() { stop() }()
	queries := []string{engineQuery, "SELECT p_count(count(*)) FROM people WHERE id < 30 /*dp_epsilon='1'*/", "SELECT p_count(count(*)) FROM people WHERE grp < 9 /*dp_epsilon='1'*/"}
	for _, sql := range queries {
		e.Submit(query(sql))
	}
	all := func(verdict analysis.Verdict, restarts int) {
		t.Helper()
		eventually.True(t, "the verdicts are "+string(verdict), func() bool {
			n := 0
			for _, x := range e.Status().Audits {
				if x.State == view.Decided && x.Report.Verdict == verdict && x.EngineRestarts >= restarts {
					n++
				}
			}
			return n == len(queries)
		}, func() any { return e.Status() })
	}
	away := func(sql string) { // until several turns have tried to begin
		t.Helper()
		pgtest.Exec(t, e.ledger.DSN, "ALTER SCHEMA dpwatch_ledger RENAME TO away")
		e.deploy(t, sql)
		since := time.Now()
		eventually.True(t, "the audits wait for the ledger", func() bool {
			for _, x := range e.Status().Audits {
				if x.State != view.Waiting {
					return false
				}
			}
			return time.Since(since) > time.Second
		}, func() any { return e.Status() })
		pgtest.Exec(t, e.ledger.DSN, "ALTER SCHEMA away RENAME TO dpwatch_ledger")
	}
	all(analysis.NoEvidence, 0)
	away(brokenNoise)
	all(analysis.Violation, 1)
	stop()
	e.restart(t, nil) // restored audits, too
	stop = e.begin(t)
	e.restored(t)
	away(rightNoise)
	all(analysis.NoEvidence, 2)
	if n := logs.FilterMessageSnippet("panic").Len(); n > 0 {
		t.Errorf("%d panics", n)
	}
}
