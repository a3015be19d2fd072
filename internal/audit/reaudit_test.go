package audit_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// TestReaudit: an audit begins again because an operator asked for it, once, even if the process ends before the first
// trial of the new beginning.
func TestReaudit(t *testing.T) {
	t.Parallel()
	gate := throttle.New(throttle.Options{})
	l := newLedgerRigOn(t, replay.Options{Pace: gate}, func(o *audit.Options) { o.Gate, o.Workers = gate, 1 })
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	key := l.decided(t)[0].Key
	eventually.True(t, "the verdict is in the ledger", func() bool { return l.Status().Ledger.Unsaved == 0 }, func() any { return l.Status() })
	gate.Pause(true)
	l.Submit(query(longQuery)) // takes the only worker, so that the first turn of the new beginning waits
	eventually.True(t, "a turn that waits for the gate", func() bool { a := l.Status().Audits; return len(a) == 2 && a[1].State == view.Running }, func() any { return l.Status() })
	store, err := ledger.Open(t.Context(), l.ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Actions.Reaudit(t.Context(), "engine", key, "ann", "why"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the audit waits for its turn", func() bool { return l.Status().Audits[0].State != view.Decided }, func() any { return l.Status() })
	stop()
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	gate.Pause(false)
	conn := pgtest.Connect(t, l.ledger.DSN)
	var begun, noted int
	eventually.True(t, "a new verdict", func() bool {
		err := conn.QueryRow(t.Context(), `SELECT (SELECT processes FROM dpwatch_ledger.audits WHERE verdict = 'no_evidence' AND query = (SELECT id FROM dpwatch_ledger.queries WHERE key = $1)), (SELECT count(*) FROM dpwatch_ledger.events WHERE state = 'reaudit')`, key).Scan(&begun, &noted)
		return err == nil && begun == 2 && noted > 0
	}, func() any { return l.Status() })
	if e := l.decided(t)[0]; e.Report.Verdict != analysis.NoEvidence || noted != 1 {
		t.Errorf("%s, noted %d times", e.Report.Verdict, noted)
	}
	if err := store.Actions.Reaudit(t.Context(), "engine", "none", "ann", "why"); err == nil {
		t.Error("a query that is not there begins again")
	}
	stop()
}
