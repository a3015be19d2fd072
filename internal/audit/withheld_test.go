package audit_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
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
