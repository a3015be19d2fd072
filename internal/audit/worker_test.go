package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// open opens the rig's ledger as a worker does.
func (l *ledgerRig) open(ctx context.Context) (*ledger.Ledger, error) {
	o := l.ledger
	o.Connections = 4
	return ledger.Open(ctx, o)
}

// worker runs a worker until the returned function is called, or the test ends.
func (l *ledgerRig) worker(t *testing.T, id string, change func(*audit.WorkerOptions)) (stop func()) {
	t.Helper()
	o := audit.WorkerOptions{
		Audit: l.opt, Ledger: l.open, Heartbeat: 100 * time.Millisecond,
		Worker: ledger.Worker{ID: id, Engine: "engine", Host: "host", Version: "test", Slots: 2},
	}
	o.Audit.Metrics = prometheus.NewRegistry()
	if change != nil {
		change(&o)
	}
	w, err := audit.NewWorker(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// until waits for a state of the auditor.
func (l *ledgerRig) until(t *testing.T, what string, is func(view.Status) bool) {
	t.Helper()
	eventually.True(t, what, func() bool { return is(l.Status()) }, func() any { return fmt.Sprintf("%+v", l.Status()) })
}

// TestWorkers: two workers run all turns of an auditor without workers of its own; the verdicts are those of an auditor
// alone, the violation is measured, and it is reported once. A worker that ends delivers its turns.
func TestWorkers(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers, o.MeasureTrials, o.D1 = 0, 300, []string{"d1", "d2"} })
	stop := l.begin(t)
	for _, sql := range []string{leakyQuery, honestQuery, longQuery} {
		l.Submit(query(sql))
	}
	calm := func(o *audit.WorkerOptions) { o.Heartbeat = 10 * time.Second } // none is cut off because the machine is busy
	first := l.worker(t, "one", calm)
	l.worker(t, "two", calm)
	l.until(t, "two workers", func(s view.Status) bool { return len(s.Workers) == 2 })
	l.until(t, "turns", func(s view.Status) bool { return s.Turns.Delivered > 0 })
	first()
	l.until(t, "one worker", func(s view.Status) bool { return len(s.Workers) == 1 && s.Workers[0].ID == "two" })
	entries := l.decided(t)
	stop()
	for i, want := range []analysis.Verdict{analysis.Violation, analysis.NoEvidence, analysis.NoEvidence} {
		if r := entries[i].Report; r.Verdict != want {
			t.Errorf("audit %d: %s after %d pairs, want %s", i, r.Verdict, r.Trials.D0, want)
		}
	}
	if m := entries[0].Report.Measurement; m == nil {
		t.Error("the violation was not measured")
	}
	if s := l.Status(); s.Turns.Dropped != 0 || s.Turns.Out != 0 {
		t.Errorf("%+v; no turn was lost", s.Turns)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]int{} // both neighbours may be confirmed by the same batch
	for _, f := range l.findings {
		found[f.Neighbour]++
	}
	if len(found) == 0 || len(found) != len(l.findings) {
		t.Errorf("findings by neighbour %v; want one or two, each once", found)
	}
}

// TestWorkerWithOtherNeighbours: it refuses its turns with the reason, and takes no others meanwhile.
func TestWorkerWithOtherNeighbours(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers, o.RetryAfter = 0, time.Hour })
	stop := l.begin(t)
	l.Submit(query(leakyQuery))
	l.restored(t) // a worker that finds no ledger waits for RetryAfter
	registry := prometheus.NewRegistry()
	l.worker(t, "other", func(o *audit.WorkerOptions) { o.Audit.D1, o.Audit.Metrics = []string{"d2"}, registry })
	l.until(t, "the refusal", func(s view.Status) bool {
		return len(s.Workers) == 1 && strings.Contains(s.Workers[0].Refused, "shadow.d1 of this worker (d2)") && s.Turns.Dropped == 1 && s.Turns.Out == 0
	})
	l.worker(t, "same", nil)
	if e := l.decided(t)[0]; e.Report.Verdict != analysis.Violation {
		t.Errorf("%s, want a violation", e.Report.Verdict)
	}
	stop()
	if n := counted(t, registry, "dpwatch_worker_turns_total", "refused"); n < 1 || n > 2 {
		t.Errorf("%v turns were refused; want one for each slot at most", n)
	}
}

// TestWorkerEndsBeforeTheFirstTrial: a worker that is stopped when it has just been given a turn delivers it without
// trials.
func TestWorkerEndsBeforeTheFirstTrial(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers = 0 })
	stop := l.begin(t)
	l.Submit(query(leakyQuery))
	o := audit.WorkerOptions{Audit: l.opt, Ledger: l.open, Worker: ledger.Worker{ID: "ending", Engine: "engine", Slots: 1}}
	o.Audit.Metrics = prometheus.NewRegistry()
	w, err := audit.NewWorker(o)
	if err != nil {
		t.Fatal(err)
	}
	store, err := l.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- store.Workers.Work(ctx, ledger.WorkOptions{
			Worker: o.Worker, Every: 100 * time.Millisecond, Logger: l.opt.Logger, Heard: func(error) {},
			Run: func(turnCtx context.Context, turn *ledger.Turn) error {
				stopped, stopTurn := context.WithCancel(turnCtx)
				stopTurn()
				return w.Turn(stopped, turn)
			},
		})
	}()
	l.until(t, "a turn", func(s view.Status) bool { return s.Turns.Delivered+s.Turns.Dropped > 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	stop()
	if s := l.Status(); s.Turns.Dropped != 0 {
		t.Errorf("%+v; no turn was lost", s.Turns)
	}
}

// TestTurnOfAnotherEngine: a worker gets turns of its engine alone.
func TestTurnOfAnotherEngine(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, nil)
	stop := l.begin(t)
	l.worker(t, "elsewhere", func(o *audit.WorkerOptions) { o.Worker.Engine = "another" })
	l.Submit(query(leakyQuery))
	l.decided(t)
	stop()
	if s := l.Status(); len(s.Workers) != 0 || s.Turns.Delivered+s.Turns.Dropped != 0 {
		t.Errorf("workers %+v, turns %+v; want none", s.Workers, s.Turns)
	}
}

// TestWorkerCutOff: the turns of a worker that is silent are withdrawn, and what it delivers later is refused, so that
// no trial counts twice. Another auditor takes over the turns that are out.
func TestWorkerCutOff(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers, o.RescueAfter = 0, 20*time.Minute })
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	store, err := l.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	taken, late := make(chan *ledger.Turn, 1), make(chan error, 1)
	deliver := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	silent := ledger.Worker{ID: "silent", Engine: "engine", Slots: 1}
	go func() {
		ended <- store.Workers.Work(ctx, ledger.WorkOptions{
			Worker: silent, Every: time.Hour, Logger: l.opt.Logger, Heard: func(error) {},
			Run: func(ctx context.Context, turn *ledger.Turn) error {
				taken <- turn
				<-deliver
				row, _, err := turn.Audits.Find(ctx, turn.Key)
				if err == nil {
					row.Trials += 1000
					err = turn.Complete(context.WithoutCancel(ctx), &row, ledger.Outcome{Fresh: true})
				}
				late <- err
				return err
			},
		})
	}()
	var key string
	eventually.True(t, "the turn", func() bool {
		_ = store.Workers.Heartbeat(t.Context(), silent) // until it has the turn
		select {
		case turn := <-taken:
			key = turn.Key
		default:
		}
		return key != ""
	}, func() any { return l.Status() })
	stop()
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	if s := l.Status(); s.Turns.Out != 1 || s.Audits[0].Worker != "silent" {
		t.Errorf("turns %+v, the audit is with %q; want the turn that is out", s.Turns, s.Audits[0].Worker)
	}
	pgtest.Exec(t, l.ledger.DSN, "UPDATE dpwatch_ledger.workers SET heartbeat = heartbeat - interval '30 minutes' WHERE id = 'silent'")
	l.until(t, "the turn is withdrawn", func(s view.Status) bool { return s.Turns.Dropped == 1 && s.Turns.Out == 0 })
	close(deliver)
	if err := <-late; !errors.Is(err, ledger.ErrTurnLost) {
		t.Errorf("a late delivery: %v, want ErrTurnLost", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l.worker(t, "alive", nil)
	e := l.decided(t)[0]
	if e.Key != key || e.Report.Verdict != analysis.NoEvidence || e.Report.Trials.D0 != l.opt.Analysis.MaxTrials {
		t.Errorf("%s after %d pairs, want no evidence after %d", e.Report.Verdict, e.Report.Trials.D0, l.opt.Analysis.MaxTrials)
	}
	stop()
}
