package audit

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Worker runs turns that the auditor of an engine hands out through the ledger, with the same step.Slots as the
// auditor. It captures nothing and reports no findings: its results are evidence in the ledger.
type Worker struct {
	opt     WorkerOptions
	guard   guard.Guard
	stages  fleet.Stages
	shadow  atomic.Pointer[string] // fault of the shadow database; nil = not known yet, "" = none
	trouble atomic.Pointer[string] // of the ledger

	turns   *prometheus.CounterVec
	seconds prometheus.Counter
	up      prometheus.Gauge
}

// WorkerOptions configure a Worker.
type WorkerOptions struct {
	// Audit are the options of the auditor's stages; those of captured queries, places, findings and the ledger are not
	// used.
	Audit  Options
	Ledger func(context.Context) (*ledger.Ledger, error)
	Worker ledger.Worker
	// Heartbeat is the interval at which the worker tells the ledger that it is alive.
	Heartbeat time.Duration
}

// Outcomes of turns, fit for a metric label.
const (
	turnDelivered = "delivered"
	turnRefused   = "refused"
	turnLost      = "lost" // it was outdated
)

// NewWorker returns a Worker. Run starts it.
func NewWorker(opt WorkerOptions) (*Worker, error) {
	o := &opt.Audit
	if err := o.complete(); err != nil {
		return nil, err
	}
	o.ShowValues = false
	w := &Worker{
		opt: opt, guard: guard.Guard{Log: o.Logger, Say: say},
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dpwatch_worker_turns_total", Help: "Turns of audits that this worker was given, by outcome: delivered, refused, or lost because the auditor had withdrawn the turn.",
		}, []string{"outcome"}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{Name: "dpwatch_worker_turn_seconds_total", Help: "Duration of the turns of this worker."}),
		up:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "dpwatch_ledger_up", Help: "1 if the last use of the ledger succeeded, else 0."}),
	}
	w.trouble.Store(new(string))
	for _, outcome := range []string{turnDelivered, turnRefused, turnLost} {
		w.turns.WithLabelValues(outcome)
	}
	m := newReplayMetrics()
	for _, c := range append(m.all(), w.turns, w.seconds, w.up) {
		if err := o.Metrics.Register(c); err != nil {
			return nil, err
		}
	}
	w.stages = newStages(&w.opt.Audit, &w.guard, m, w.environmentChanged)
	return w, nil
}

// environmentChanged takes another reading of the copies or the engine. The auditor notices what follows from it.
func (w *Worker) environmentChanged(before, after *environment.Environment) {
	w.stages.Slots.Clear()
	if before.Shadow != after.Shadow {
		w.stages.Catalogs.Need(after.ShadowRead)
	}
}

// Run takes turns until ctx is done; turns in progress end early and are delivered.
func (w *Worker) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(w.guard.Loop(ctx, "check the shadow database", func(ctx context.Context) {
		checkShadow(ctx, &w.opt.Audit, func(_ []string, fault string) { w.shadow.Store(&fault) })
	}))
	runStages(ctx, &w.stages, group, &w.opt.Audit, &w.guard)
	group.Go(w.guard.Loop(ctx, "take turns", w.work))
	return group.Wait()
}

// Ready returns nil if the worker can take turns, or why it cannot, in words that anyone may read.
func (w *Worker) Ready() error {
	if *w.trouble.Load() != "" {
		return errors.New("the ledger cannot be used: see the log")
	}
	if fault := w.shadow.Load(); fault != nil && *fault != "" {
		return errors.New("the shadow database is not ready for replays: see the log")
	}
	return nil
}

// work takes turns; if the ledger cannot be reached at the start, it tries again.
func (w *Worker) work(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-w.stages.Catalogs.Informed():
	}
	for ctx.Err() == nil {
		err := w.session(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		w.heard(err)
		select {
		case <-ctx.Done():
		case <-time.After(w.opt.Audit.RetryAfter):
		}
	}
}

func (w *Worker) session(ctx context.Context) error {
	store, err := w.opt.Ledger(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	log := w.opt.Audit.Logger
	log.Info("waiting for turns", zap.String("worker", w.opt.Worker.ID), zap.String("engine", w.opt.Worker.Engine), zap.Int("slots", w.opt.Worker.Slots))
	w.heard(nil)
	return store.Workers.Work(ctx, ledger.WorkOptions{Worker: w.opt.Worker, Every: w.opt.Heartbeat, Logger: log, Run: w.turn, Heard: w.heard})
}

// heard notes the result of a use of the ledger.
func (w *Worker) heard(err error) {
	text, up := "", 1.0
	if err != nil {
		text, up = say(err), 0
	}
	if before := w.trouble.Swap(&text); text != "" && *before != text {
		w.opt.Audit.Logger.Error("the ledger cannot be used: the worker takes no turns", zap.String("error", text), zap.Duration("retry_in", w.opt.Audit.RetryAfter))
	}
	w.up.Set(up)
}

// turn runs one turn and delivers its evidence.
func (w *Worker) turn(ctx context.Context, t *ledger.Turn) error {
	now := w.opt.Audit.Now
	began := now()
	state, outcome, err := w.play(ctx, t)
	if refused := (*errRefused)(nil); errors.As(err, &refused) {
		w.opt.Audit.Logger.Warn("a turn is refused", zap.String("audit", desk.ShortID(t.Key)), zap.String("reason", refused.reason))
		state, outcome = nil, ledger.Outcome{Refused: refused.reason}
	} else if err != nil {
		return w.dropped(t, err)
	}
	outcome.Took = now().Sub(began)
	w.seconds.Add(outcome.Took.Seconds())
	switch err = w.deliver(ctx, t, state, outcome); {
	case err != nil:
		w.stages.Slots.Drop(t.Key)
	case outcome.Refused != "":
		w.rest(ctx)
	}
	return err
}

// rest keeps the slot of a turn that was refused, so that the worker does not take and refuse the audit's next turn at
// once. The auditor gives no turn to it meanwhile.
func (w *Worker) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(w.opt.Audit.RetryAfter):
	}
}

// deliver stores the state of an audit, if there is one, and ends the turn. It tries again until the ledger answers: an
// answer of the queue alone would lose the turn's trials.
func (w *Worker) deliver(ctx context.Context, t *ledger.Turn, state *ledger.Audit, o ledger.Outcome) error {
	done := ctx.Done()
	ctx = context.WithoutCancel(ctx)
	for tries := 0; ; tries++ {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := t.Complete(attempt, state, o)
		cancel()
		switch {
		case err == nil:
			w.turns.WithLabelValues(label(o)).Inc()
			return nil
		case errors.Is(err, ledger.ErrTurnLost):
			return w.dropped(t, err)
		}
		w.heard(err)
		select {
		case <-done:
			if tries >= 5 {
				return w.dropped(t, err)
			}
			time.Sleep(time.Second)
		case <-time.After(time.Second):
		}
	}
}

func label(o ledger.Outcome) string {
	if o.Refused != "" {
		return turnRefused
	}
	return turnDelivered
}

// dropped notes that the trials of a turn are dropped.
func (w *Worker) dropped(t *ledger.Turn, err error) error {
	text := say(err)
	w.opt.Audit.Logger.Warn("the trials of a turn are dropped", zap.String("audit", desk.ShortID(t.Key)), zap.String("reason", text))
	w.turns.WithLabelValues(turnLost).Inc()
	return errors.New(text) // the queue stores it
}
