package audit_test

import (
	"bytes"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// TestStatements: with the key of its statement, an audit is restored after a restart. Without the key, and if
// statements are withheld, it goes on with its evidence when its query is captured again; then it is decided after the
// budget of all its processes together.
func TestStatements(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	key := func(b byte) *ledger.Protection {
		p, err := ledger.NewProtection(ledger.Encrypted, bytes.Repeat([]byte{b}, ledger.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	withheld, err := ledger.NewProtection(ledger.Withheld)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		before, after *ledger.Protection
		restored      int
	}{
		{"key", key(1), key(1), 1},
		{"another_key", key(1), key(2), 0},
		{"withheld", withheld, withheld, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLedgerRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 600, 1 })
			l.ledger.Statements = c.before
			stop := l.begin(t)
			l.Submit(query(longQuery))
			eventually.True(t, "trials", func() bool { return l.Status().Audits[0].Report.Trials.D0 > 50 }, func() any { return l.Status() })
			stop()
			l.ledger.Statements = c.after
			l.restart(t, nil)
			defer l.begin(t)()
			l.restored(t)
			if n := len(l.Status().Audits); n != c.restored {
				t.Fatalf("%d audits are restored, want %d", n, c.restored)
			}
			l.Submit(query(longQuery))
			l.whole(t, 600)
		})
	}
}
