package turn

import (
	"context"
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/replay"
)

// Lengths of turns. A turn ends after a batch and has at least one.
const (
	firstRounds = 50          // of a first turn, which is short: it is enough for a badly broken query
	firstBatch  = 5           // batch size at the start of a first turn
	Short       = time.Second // maximum of a first turn, minimum of another one, which may begin with opening sessions
	Longest     = 20 * time.Second
)

// Runner runs turns, several at a time. Its exported fields are set before the first one.
type Runner struct {
	Player      trial.Player
	Environment func(context.Context) (*environment.Environment, error) // reads the present one
	Budget      *budget.Budget                                          // nil = no limit
	Now         func() time.Time
	Seed        func() uint64 // for the order of the trials of a Watch
	Hoisting    func(sql string) *replay.Hoisting
	VaryText    bool // the trials of a confirmation differ in a comment: see replay.Separation
	Batch       int  // minimal number of rounds per batch; fewer in first turns and for large results
	Rounds      int  // approximate number of rounds per turn
	// Counted is called with every batch and the worlds whose trials in it do not count.
	Counted   func(b replay.Batch, skipped []bool)
	Recovered func(where string, r any) // takes a panic

	sessions sessions
}

// Run runs a turn until there is a verdict, its share of trials is used, it cannot be replayed, or ctx is done. A panic
// ends this turn alone.
func (r *Runner) Run(ctx context.Context, t Turn, h Hooks) (o Outcome) {
	began := r.Now()
	defer func() {
		if p := recover(); p != nil {
			r.Recovered("audit "+t.ID, p)
			o = Outcome{Broken: ErrInternal}
		}
		o.Took = r.Now().Sub(began)
	}()
	if t.Kind == Watch {
		return r.watch(ctx, &t)
	}
	p := play{Runner: r, t: &t, h: h, s: r.sessions.take(&t, r.Hoisting)}
	if t.Kind == Measure {
		return p.measure(ctx)
	}
	return p.trials(ctx)
}

// over reports whether a turn that takes at least the given time, unless a new query waits for its first turn, ends
// after this many rounds and this time.
func (r *Runner) over(kind Kind, rounds int, took time.Duration, h *Hooks) bool {
	switch {
	case r.Budget.Spent():
		return true
	case kind == First || kind == Watch:
		return rounds >= firstRounds || took >= Short
	}
	return took >= Longest || took >= h.Least && rounds >= r.Rounds || took >= Short && h.Pressing()
}

// play is a turn in progress.
type play struct {
	*Runner
	t *Turn
	h Hooks
	s *session
	// suspected is the wealth to be confirmed.
	suspected float64
	hasTwin   bool // as of the last call of current
}

// advance returns the present results, with reports or without.
func (p *play) advance(reports bool) Advance {
	a := Advance{Confirming: p.t.Evidence.Stage() != evidence.Searching, Suspected: p.suspected}
	if reports {
		a.Reports = Reports(p.t.Evidence, p.t.Source, true)
	}
	if p.s.hoist != nil {
		report := p.t.Evidence.Hoisting(p.s.hoist.Report(), evidence.Worst(a.Reports))
		a.Hoisting = &report
	}
	return a
}

// publish passes the present results on.
func (p *play) publish() {
	if p.h.Advanced != nil {
		p.h.Advanced(p.advance(true))
	}
}

// end returns the outcome of a turn with its evidence. With an error what the evidence shows is not verified.
func (p *play) end(trouble error) Outcome {
	return Outcome{Evidence: p.t.Evidence, Advance: p.advance(trouble == nil), Fresh: trouble == nil, Trouble: trouble}
}

// errRestart ends the trials of a turn whose evidence must not be used.
type errRestart struct{ Restart }

func (*errRestart) Error() string { return "the evidence must not be used" }

// current returns an errRestart if the evidence does not belong to the present copies and the present engine: one audit
// must not mix two pairs of datasets.
func (p *play) current(ctx context.Context) error {
	e, err := p.Environment(ctx)
	if err == nil && !p.t.same(e) {
		err = &errRestart{Restart{Environment: e}}
	}
	if err == nil {
		p.hasTwin = p.t.controlled(e)
	}
	return err
}

// trials runs the trials of an audit without a verdict.
func (p *play) trials(ctx context.Context) Outcome {
	err := p.rounds(ctx)
	if errors.As(err, new(*replay.ReadsError)) || errors.As(err, new(*replay.EndsError)) { // unless the copies were created again meanwhile
		if e := p.current(ctx); e != nil {
			err = e
		}
	}
	if err == nil {
		err = p.current(ctx) // the copies may have changed during the turn
	}
	if again := (*errRestart)(nil); errors.As(err, &again) {
		return Outcome{Restart: &again.Restart}
	}
	return p.end(err)
}

// rounds runs the rounds of one turn.
func (p *play) rounds(ctx context.Context) error {
	run, err := p.start()
	if err != nil {
		return err
	}
	keep, stage := false, p.t.Evidence.Stage()
	defer func() { p.sessions.rest(p.s, run, keep, p.Recovered) }()
	if _, err := trial.Reads(ctx, run, p.t.Evidence); err != nil {
		return err
	}
	if err := p.stream(ctx, run); err != nil {
		return err
	}
	e := p.t.Evidence
	if e.Questionable() { // do not report what two versions of the copies may have shown
		if err := p.current(ctx); err != nil {
			return err
		}
	}
	if e.Found() || e.Decided() { // counters of what changes rows come late
		trial.Look(p.Player)
	}
	if e.Found() {
		if !e.Confirming() {
			return p.proceed()
		}
		p.publish()
	}
	keep = !e.Decided() && e.Stage() == stage // trials of another stage have other sessions
	return nil
}

// start returns the replay that rests since the last turn, or a new one.
func (p *play) start() (trial.Trials, error) {
	if run := p.s.wake(); run != nil {
		return run, nil
	}
	return p.Player.Start(p.t.statement(p.s.hoist, p.VaryText), p.t.Seed+uint64(p.t.Number)) //nolint:gosec // positive
}

// stream processes the rounds of one turn, and publishes the results until a violation must be reported.
func (p *play) stream(ctx context.Context, run trial.Trials) error {
	began, ran, batchRounds := p.Now(), 0, p.Batch
	if p.t.Kind == First {
		batchRounds = min(batchRounds, firstBatch)
	}
	e := p.t.Evidence
	return trial.Gather(ctx, run, batchRounds, e, func(batch replay.Batch) bool {
		p.Counted(batch, e.Settled())
		if e.Found() {
			return false
		}
		p.publish()
		ran += len(batch.All())
		return !p.over(p.t.Kind, ran, p.Now().Sub(began), &p.h)
	})
}

// proceed begins the control of a violation that trials show on the twin of D0, or its confirmation, before it is
// reported: on new trials of the whole query, so that no assumption of hoisting matters.
func (p *play) proceed() error {
	p.suspected = p.t.Evidence.Wealth()
	if err := p.t.Evidence.Proceed(p.hasTwin); err != nil {
		return err
	}
	p.publish()
	return nil
}

// measure runs the trials of a measurement. They count only if the copies and the engine are the same at its end.
func (p *play) measure(ctx context.Context) Outcome {
	run, err := p.start()
	if err != nil {
		return p.end(err)
	}
	defer run.Close()
	began, ran, e := p.Now(), 0, p.t.Evidence
	err = trial.Gather(ctx, run, p.Batch, e, func(batch replay.Batch) bool {
		p.Counted(batch, e.Settled())
		ran += len(batch.Rounds)
		return !p.over(Measure, ran, p.Now().Sub(began), &p.h)
	})
	if err == nil {
		trial.Look(p.Player)
		err = p.current(ctx)
	}
	if errors.As(err, new(*errRestart)) {
		return Outcome{Stop: errReplaced}
	}
	return p.end(err)
}

// watch runs a few trials of the whole query for a change detector.
func (r *Runner) watch(ctx context.Context, t *Turn) (o Outcome) {
	w := evidence.NewWatch(t.Claim, t.Terms, len(t.Worlds))
	var reset error
	if t.State != nil {
		if reset = w.UnmarshalBinary(t.State); reset != nil {
			w = evidence.NewWatch(t.Claim, t.Terms, len(t.Worlds))
		}
	}
	if o.Trouble = r.watchRounds(ctx, t, w); o.Trouble != nil {
		return o
	}
	if w.Alarm() { // trials on two versions of the copies or the engine show nothing
		trial.Look(r.Player)
		e, err := r.Environment(ctx)
		if err != nil {
			return Outcome{Trouble: err}
		}
		if !t.same(e) {
			return Outcome{Restart: &Restart{Environment: e}}
		}
	}
	state, err := w.MarshalBinary()
	if err != nil {
		return Outcome{Trouble: err}
	}
	o.Watch = &Watched{State: state, Rounds: w.Rounds(), Evidence: w.Evidence(), Alarm: w.Alarm(), Reset: reset}
	return o
}

// watchRounds adds the rounds of a Watch, which is as long as a first turn.
func (r *Runner) watchRounds(ctx context.Context, t *Turn, w *evidence.Watch) error {
	run, err := r.Player.Start(t.statement(nil, false), r.Seed())
	if err != nil {
		return err
	}
	defer run.Close()
	began, ran := r.Now(), 0
	for batch, err := range run.Stream(ctx, min(r.Batch, firstBatch)) {
		if err != nil {
			return err
		}
		for _, round := range batch.Rounds {
			if err := w.Add(round); err != nil {
				return err
			}
		}
		ran += len(batch.Rounds)
		r.Counted(batch, nil)
		if w.Alarm() || r.over(Watch, ran, r.Now().Sub(began), nil) {
			break
		}
	}
	return nil
}
