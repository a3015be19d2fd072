package audit_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRestoreTwice: a ledger that is lost after the audits were restored is read again: each audit is there once, with
// the evidence of the second reading, because another process may have gone on with it.
func TestRestoreTwice(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 600, 1 })
	stop := l.begin(t)
	l.Submit(query(longQuery))
	eventually.True(t, "trials", func() bool { return l.Status().Audits[0].Report.Trials.D0 > 50 }, func() any { return l.Status() })
	stop()
	pgtest.Exec(t, l.ledger.DSN, "CREATE TABLE early AS SELECT * FROM dpwatch_ledger.audits")
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	other := l.decided(t)[0].Report
	stop()

	const copyBack = "UPDATE dpwatch_ledger.audits a SET (state, verdict, trials, epsilon_lower, processes, progress) = (SELECT b.state, b.verdict, b.trials, b.epsilon_lower, b.processes, b.progress FROM "
	pgtest.Exec(t, l.ledger.DSN, "CREATE TABLE late AS SELECT * FROM dpwatch_ledger.audits", copyBack+"early b WHERE b.query = a.query)",
		"ALTER TABLE dpwatch_ledger.actions RENAME TO lost")
	l.restart(t, nil)
	defer l.begin(t)()
	eventually.True(t, "the audit is restored, and the ledger is not", func() bool {
		s := l.Status()
		return len(s.Audits) == 1 && s.Audits[0].State == view.Running && strings.Contains(s.Ledger.Trouble, "42P01") && !s.Ledger.Restored
	}, func() any { return l.Status() })
	pgtest.Exec(t, l.ledger.DSN, copyBack+"late b WHERE b.query = a.query)", "ALTER TABLE dpwatch_ledger.lost RENAME TO actions")
	l.restored(t)
	e := l.decided(t)
	if len(e) != 1 {
		t.Fatalf("%d audits", len(e))
	}
	if r := e[0].Report; r.Trials != other.Trials || r.EpsilonEstimate != other.EpsilonEstimate || r.WealthLog != other.WealthLog {
		t.Errorf("%+v; want the evidence of the other process, %+v", r, other)
	}
	l.whole(t, 600)
}
