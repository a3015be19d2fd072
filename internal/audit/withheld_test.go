package audit_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestStatements: with its statement, an audit is restored after a restart. If statements are withheld, it goes on with
// its evidence when its query is captured again; then it is decided after the budget of all its processes together.
func TestStatements(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for name, withhold := range map[string]bool{"plain": false, "withheld": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedgerRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 600, 1 })
			l.ledger.Withhold = withhold
			stop := l.begin(t)
			l.Submit(query(longQuery))
			eventually.True(t, "trials", func() bool { return l.Status().Audits[0].Report.Trials.D0 > 50 }, func() any { return l.Status() })
			stop()
			l.restart(t, nil)
			defer l.begin(t)()
			l.restored(t)
			if n := len(l.Status().Audits); (n == 0) != withhold {
				t.Fatalf("%d audits are restored", n)
			}
			l.Submit(query(longQuery))
			l.whole(t, 600)
		})
	}
}

// TestWithheldWhileLedgerAway: statements that may not be written to the disk wait in memory until the ledger can be
// opened, and are audited then. What waits at the end of the process is counted as skipped.
func TestWithheldWhileLedgerAway(t *testing.T) {
	t.Parallel()
	l, dir, up := spooled(t, 64<<20)
	l.ledger.Withhold = true
	withheld := func(o *audit.Options) {
		o.Spool = func() (*ledger.Spool, error) { return ledger.OpenSpool(dir, 64<<20, true) }
	}
	l.restart(t, withheld)
	stop := l.begin(t)
	l.offer(t, 200)
	time.Sleep(3 * time.Second / 2) // longer than the interval at which the inbox is spooled
	if s := l.Status(); s.Skipped["backlog"] != 0 || l.InboxLen() != 200 {
		t.Errorf("%d are skipped and %d wait", s.Skipped["backlog"], l.InboxLen())
	}
	up.Store(true)
	l.restored(t)
	conn := pgtest.Connect(t, l.ledger.DSN)
	eventually.True(t, "all are counted", func() bool { n, skipped := l.counted(t, conn); return n == 200 && skipped == 0 },
		func() any { n, skipped := l.counted(t, conn); return []int{n, skipped} })
	if files, _ := filepath.Glob(filepath.Join(dir, "*.queries")); len(files) != 0 {
		t.Errorf("statements on the disk: %v", files)
	}
	stop()
	up.Store(false)
	l.restart(t, withheld)
	stop = l.begin(t)
	l.offer(t, 20)
	stop()
	if n := l.Status().Skipped["backlog"]; n != 20 {
		t.Errorf("%d are skipped at the end, want 20", n)
	}
}
