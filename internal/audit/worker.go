package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Worker runs turns that the auditor of an engine hands out through the ledger, with the same code as the auditor. It
// captures nothing and reports no findings: its results are evidence in the ledger.
type Worker struct {
	auditor *Auditor // without its own ledger; its roster stays empty
	served  served
	opt     WorkerOptions
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
	registry := opt.Audit.Metrics
	opt.Audit.OnFinding, opt.Audit.Ledger, opt.Audit.Memory, opt.Audit.ShowValues = nil, nil, 0, false
	opt.Audit.Metrics = prometheus.NewRegistry() // most metrics of an auditor have no meaning here
	a, err := New(opt.Audit)
	if err != nil {
		return nil, err
	}
	a.keeper = keep.New(true, ledger.Process{}, nil, a.say, opt.Audit.Logger) // keeps the states that deliver stores
	a.keeper.Release()
	w := &Worker{
		auditor: a, opt: opt, served: served{idle: &a.idle},
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dpwatch_worker_turns_total", Help: "Turns of audits that this worker was given, by outcome: delivered, refused, or lost because the auditor had withdrawn the turn.",
		}, []string{"outcome"}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{Name: "dpwatch_worker_turn_seconds_total", Help: "Duration of the turns of this worker."}),
		up:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "dpwatch_ledger_up", Help: "1 if the last use of the ledger succeeded, else 0."}),
	}
	for _, outcome := range []string{turnDelivered, turnRefused, turnLost} {
		w.turns.WithLabelValues(outcome)
	}
	for _, c := range []prometheus.Collector{w.turns, w.seconds, w.up, a.metrics.replays, a.metrics.duration, a.metrics.faults} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Run takes turns until ctx is done; turns in progress end early and are delivered.
func (w *Worker) Run(ctx context.Context) error {
	a := w.auditor
	group, ctx := errgroup.WithContext(ctx)
	group.Go(a.loop(ctx, "check the shadow database", a.checkShadow))
	a.runShared(ctx, group)
	group.Go(a.loop(ctx, "take turns", w.work))
	return group.Wait()
}

// Ready returns nil if the worker can take turns, or why it cannot, in words that anyone may read.
func (w *Worker) Ready() error {
	a := w.auditor
	if s := a.keeper.State(); s.Trouble != "" {
		return errors.New("the ledger cannot be used: see the log")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shadow != "" {
		return errors.New("the shadow database is not ready for replays: see the log")
	}
	return nil
}

// work takes turns; if the ledger cannot be reached at the start, it tries again.
func (w *Worker) work(ctx context.Context) {
	a := w.auditor
	select {
	case <-ctx.Done():
		return
	case <-a.informed:
	}
	for ctx.Err() == nil {
		err := w.session(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		w.heard(err)
		select {
		case <-ctx.Done():
		case <-time.After(a.opt.RetryAfter):
		}
	}
}

func (w *Worker) session(ctx context.Context) error {
	store, err := w.opt.Ledger(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	w.auditor.opt.Logger.Info("waiting for turns", zap.String("worker", w.opt.Worker.ID), zap.String("engine", w.opt.Worker.Engine), zap.Int("slots", w.opt.Worker.Slots))
	w.heard(nil)
	return store.Work(ctx, ledger.WorkOptions{Worker: w.opt.Worker, Every: w.opt.Heartbeat, Logger: w.auditor.opt.Logger, Run: w.turn, Heard: w.heard})
}

// heard notes the result of a use of the ledger.
func (w *Worker) heard(err error) {
	a := w.auditor
	text, up := "", 1.0
	if err != nil {
		text, up = a.say(err), 0
	}
	if before := a.keeper.State().Trouble; text != "" && before != text {
		a.opt.Logger.Error("the ledger cannot be used: the worker takes no turns", zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
	}
	a.keeper.SetTrouble(text)
	w.up.Set(up)
}

// errRefused is wrapped by the reasons why a worker cannot run a turn: another one may.
type errRefused struct{ reason string }

func (e *errRefused) Error() string { return e.reason }

func refuse(format string, args ...any) error { return &errRefused{fmt.Sprintf(format, args...)} }

// turn runs one turn and delivers its evidence.
func (w *Worker) turn(ctx context.Context, t *ledger.Turn) error {
	a := w.auditor
	began := a.opt.Now()
	j, outcome, err := w.play(ctx, t)
	if refused := (*errRefused)(nil); errors.As(err, &refused) {
		a.opt.Logger.Warn("a turn is refused", zap.String("audit", shortID(t.Key)), zap.String("reason", refused.reason))
		j, outcome = nil, ledger.Outcome{Refused: refused.reason}
	} else if err != nil {
		return w.dropped(t, err)
	}
	outcome.Took = a.opt.Now().Sub(began)
	w.seconds.Add(outcome.Took.Seconds())
	err = w.deliver(ctx, t, j, outcome)
	switch {
	case outcome.Refused != "" && err == nil:
		w.rest(ctx)
	case j == nil:
	case err != nil:
		a.idle.drop(j)
	default:
		w.served.keep(j, a.shadowNow())
	}
	return err
}

// rest keeps the slot of a turn that was refused, so that the worker does not take and refuse the audit's next turn at
// once. The auditor gives no turn to it meanwhile.
func (w *Worker) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(w.auditor.opt.RetryAfter):
	}
}

// play runs the trials of a turn. The error is an errRefused or that of the ledger. A panic is the fault of the audit,
// not of this worker: the auditor sets the audit aside.
func (w *Worker) play(ctx context.Context, t *ledger.Turn) (j *job, o ledger.Outcome, err error) {
	a := w.auditor
	defer func() {
		if r := recover(); r != nil {
			a.recovered("audit "+shortID(t.Key), r)
			j, o, err = nil, ledger.Outcome{Broken: "internal error: see the log of the worker"}, nil
		}
	}()
	if j, err = w.load(ctx, t); ctx.Err() != nil {
		return nil, ledger.Outcome{Early: true}, nil // the worker ends before the first trial: nothing is lost
	} else if err != nil {
		return nil, o, err
	}
	w.served.resume(j, a.shadowNow())
	var fault error
	if j.Measuring {
		fault = a.measureTrials(ctx, j)
	} else {
		o.Fresh, fault = a.trials(ctx, j)
	}
	switch stop := (*endOfMeasurement)(nil); {
	case fault == nil:
	case errors.As(fault, &stop):
		o.Stop = a.say(stop)
		return nil, o, nil // the state before the turn is valid
	case ctx.Err() != nil:
		o.Early = true
	default:
		o.Trouble = a.say(fault)
	}
	return j, o, nil
}

// deliver stores the state of a job, if there is one, and ends the turn. It tries again until the ledger answers: an
// answer of the queue alone would lose the turn's trials.
func (w *Worker) deliver(ctx context.Context, t *ledger.Turn, j *job, o ledger.Outcome) error {
	state, err := w.state(j)
	if err != nil {
		return err
	}
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
	a := w.auditor
	text := a.say(err)
	a.opt.Logger.Warn("the trials of a turn are dropped", zap.String("audit", shortID(t.Key)), zap.String("reason", text))
	w.turns.WithLabelValues(turnLost).Inc()
	return errors.New(text) // the queue stores it
}

// state returns the form of a job in the ledger; nil if there is no job or no evidence to store.
func (w *Worker) state(j *job) (*ledger.Audit, error) {
	if j == nil {
		return nil, nil
	}
	a := w.auditor
	progress := a.progress(j)
	if progress == nil {
		return nil, nil
	}
	var row ledger.Audit
	var err error
	a.locked(func() { row, err = stored(j, progress) })
	if err != nil {
		return nil, err
	}
	row.Progress = ledger.Seal(row.Progress)
	return &row, nil
}

// load returns the audit of a turn with its texts, after checks that this worker would run the same audit on the same
// copies. The error is an errRefused or that of the ledger.
func (w *Worker) load(ctx context.Context, t *ledger.Turn) (*job, error) {
	a := w.auditor
	row, found, err := t.Find(ctx, t.Key)
	switch {
	case err != nil:
		return nil, err
	case t.TurnArgs.Engine != w.opt.Worker.Engine:
		return nil, refuse("the turn is one of engine %s, this worker's is %s", t.TurnArgs.Engine, w.opt.Worker.Engine)
	case !found || row.Progress == nil:
		return nil, refuse("the ledger has no evidence of the audit")
	}
	p, e, err := a.unpack(&row)
	switch {
	case errors.Is(err, errNeighbours):
		return nil, refuse("shadow.d1 of this worker (%s) lists other neighbours than that of the auditor", strings.Join(a.opt.D1, ", "))
	case err != nil:
		return nil, refuse("%s", a.say(err))
	case e == nil:
		return nil, refuse("the ledger has no evidence of the audit")
	}
	epoch, err := a.readNow(ctx)
	switch {
	case err != nil:
		return nil, refuse("shadow database: %s", a.say(err))
	case epoch != row.DataEpoch:
		return nil, refuse("the copies in the shadow database of this worker are not those of the audit: shadow.dsn differs from that of the auditor, or the copies were just replaced")
	}
	j, err := w.parse(ctx, t, &row)
	if err != nil {
		return nil, err
	}
	seats := schedule.New(schedule.Limits{Audits: 1, PerShape: 1})
	a.mu.Lock()
	defer a.mu.Unlock()
	seats.Admit(&j.Audit, a.opt.Now())
	j.hoist = a.hoisting(j.query.SQL)
	texts := j.worlds
	j.goOn(a, &row, p, e)
	for i := range j.worlds {
		j.worlds[i].sql = texts[i].sql
	}
	seats.Resume(&j.Audit, t.TurnArgs.Turns, t.Used)
	if p.Decided {
		seats.Decide(&j.Audit, true, 0)
	}
	j.Measuring = p.Measuring
	seats.Take(&j.Audit)
	j.hurried = hurriedBy(ctx, t, a.opt.Now)
	return j, nil
}

// parse returns the job of a stored audit with the texts of this worker's rewriting, without evidence.
func (w *Worker) parse(ctx context.Context, t *ledger.Turn, row *ledger.Audit) (*job, error) {
	a := w.auditor
	if err := row.Query.Unreadable; err != nil {
		return nil, refuse("the statement in the ledger cannot be read: %v", err)
	}
	q, err := capture.DecodeBinary(row.Query.Statement)
	if err != nil {
		return nil, refuse("the statement was captured by another version of dpwatch")
	}
	plan, edition, err := a.parseStored(ctx, t.Engine, t.Key, q)
	switch unsupported := (*rewrite.UnsupportedError)(nil); {
	case errors.As(err, &unsupported):
		return nil, refuse("this worker cannot rewrite the statement: %s", unsupported.Reason)
	case errors.Is(err, recognize.ErrPanic):
		return nil, refuse("this worker cannot rewrite the statement: internal error")
	case recognize.ReasonOf(err) == recognize.SkippedUnevaluated:
		return nil, refuse("%s", a.say(err))
	case err != nil:
		return nil, err
	}
	key, route := a.identity(q, plan.Key)
	if key != t.Key {
		return nil, refuse("the statement is another audit here: claims, privacy, shadow.d0 and shadow.d1 must be those of the auditor, and the catalogs the same")
	}
	j := &job{
		Audit: schedule.Audit{Key: key, Shape: plan.Shape, Owner: schedule.Owner{User: q.User, Database: q.Database, Route: route}, LastSeen: row.Query.LastSeen},
		id:    shortID(key), plan: plan, edition: edition, query: q, firstSeen: row.Query.FirstSeen, recalled: true, processes: row.Processes, writes: t.Engine,
	}
	j.recallLife(row)
	if err := a.recent(j); err != nil {
		return nil, refuse("%s", a.say(err))
	}
	if j.worlds, err = a.worlds(j); err != nil {
		return nil, refuse("this worker cannot rewrite the statement: %s", a.say(err))
	}
	j.plan = summaryOf(plan)
	return j, nil
}
