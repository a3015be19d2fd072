package audit_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/replay"
)

// setAside checks that the audits are decided: one that panicked is inconclusive, with a reason, and the other has its
// verdict.
func (l *ledgerRig) setAside(t *testing.T) {
	t.Helper()
	for i, e := range l.decided(t) {
		if broken := strings.Contains(e.Trouble, "internal error"); broken != (i == 0) || broken != (e.Report.Verdict == analysis.Inconclusive) {
			t.Errorf("audit %d is %s: %s (%s)", i, e.Report.Verdict, e.Report.Reason, e.Trouble)
		}
	}
}

// TestPanicWhileHandingOut: a panic while a turn is given to a worker sets the audit aside. The auditor, the worker and
// other audits go on.
func TestPanicWhileHandingOut(t *testing.T) {
	t.Parallel()
	var panicked atomic.Bool
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Workers = 0
		o.Seed = func() uint64 { // called when evidence begins
			if !panicked.Swap(true) {
				panic("planted")
			}
			return 1
		}
	})
	defer l.begin(t)()
	l.restored(t)
	l.worker(t, "w1", nil)
	l.Submit(query(honestQuery))
	l.until(t, "the audit is set aside", func(s view.Status) bool { return s.Audits[0].State == view.Decided })
	l.Submit(query(leakyQuery))
	l.setAside(t)
	if n := l.Status().Panics; n != 1 {
		t.Errorf("%d panics are counted, want 1", n)
	}
}

// startPanics is a Player that panics when the first trials start.
type startPanics struct {
	step.Player
	once atomic.Bool
}

func (p *startPanics) Start(s replay.Statement, seed uint64) (step.Trials, error) {
	if !p.once.Swap(true) {
		panic("planted")
	}
	return p.Player.Start(s, seed)
}

// TestPanicInWorker: a panic of a worker in a turn sets the audit aside, and the worker has the turns of others.
func TestPanicInWorker(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers, o.RetryAfter = 0, time.Hour })
	defer l.begin(t)()
	l.restored(t)
	l.worker(t, "w1", func(o *audit.WorkerOptions) { o.Audit.Player = &startPanics{Player: o.Audit.Player} })
	l.Submit(query(honestQuery))
	l.until(t, "the audit is set aside", func(s view.Status) bool { return s.Audits[0].State == view.Decided })
	l.Submit(query(leakyQuery))
	l.setAside(t)
}

// TestPanicOutsideTurns: a panic of a goroutine that runs no turns does not end the auditor.
func TestPanicOutsideTurns(t *testing.T) {
	t.Parallel()
	p := &faultyPlayer{}
	p.panics.Store(1)
	r := newRig(t, func(o *audit.Options) {
		p.Player, o.Player = o.Player, p
		o.EpochEvery = time.Millisecond
	})
	r.run(t)
	l := &ledgerRig{rig: r}
	l.until(t, "the panic", func(s view.Status) bool { return s.Panics == 1 })
	r.Submit(query(leakyQuery))
	if e := r.decided(t)[0]; e.Report.Verdict != analysis.Violation {
		t.Errorf("%s: %s", e.Report.Verdict, e.Report.Reason)
	}
}
