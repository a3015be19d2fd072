package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Intervals of looking for turns that have ended and for turns to give. A notification of the ledger ends a wait
// early.
const (
	lookEvery = time.Second
	giveEvery = 100 * time.Millisecond // if a worker has a free slot
)

// Workers gives turns to workers on other machines, through the ledger. One goroutine calls Run; State may be called by
// any.
type Workers struct {
	*turns
	out     map[int64]*out // turns that workers have, by number
	crew    crew
	trouble string         // why the last look failed; "" = it did not
	watches sync.WaitGroup // turns in the watch share that run here
}

// out is a turn that a worker has or may take.
type out struct {
	desk.Given
	id      int64
	worker  string // its id; "" = none has taken it
	hurried bool   // the worker was asked to end it soon
}

func newWorkers(t *turns) *Workers {
	return &Workers{turns: t, out: map[int64]*out{}, crew: crew{opt: t.opt, refused: map[string]refusal{}}}
}

// Run gives turns to the workers and takes their results until ctx is done. It returns an error if another process
// takes over the engine's audits in the ledger.
func (w *Workers) Run(ctx context.Context) error {
	if w.opt.Keeper.Wait(ctx) != nil {
		return nil
	}
	engine := w.opt.Keeper.Engine.Load()
	if engine == nil {
		return nil
	}
	defer w.watches.Wait()
	for failures := 0; ctx.Err() == nil; {
		err := w.opt.Guard.Contain("exchange turns", func() error { return w.exchange(ctx, engine) })
		switch {
		case errors.Is(err, ledger.ErrReplaced):
			return err
		case err != nil && ctx.Err() == nil:
			failures++
			// While the ledger is away, the keeper says so, once for everything.
			if text := w.opt.Say(err); text != w.trouble && failures > 2 && w.opt.Keeper.State().Trouble == "" {
				w.trouble = text
				w.opt.Logger.Error("turns cannot be handed out to workers now", zap.String("error", text))
			}
		default:
			failures, w.trouble = 0, ""
		}
		w.wait(ctx, engine)
	}
	return nil
}

// wait returns when a turn has ended, when a turn can be given, or after lookEvery.
func (w *Workers) wait(ctx context.Context, engine *ledger.Engine) {
	for wait := lookEvery; wait > 0 && ctx.Err() == nil; wait -= giveEvery {
		if engine.WaitForTurn(ctx, giveEvery) || w.canGive() || w.mustHurry() != nil {
			return
		}
	}
}

// canGive reports whether an audit waits and a worker has a free slot, as far as was known at the last look.
func (w *Workers) canGive() bool {
	due := false
	w.opt.Use(func(d *desk.Desk) { due = d.Turns.Due() })
	return due && w.crew.isFree()
}

// exchange takes the results of turns that have ended, withdraws those of workers that are gone, and gives turns.
func (w *Workers) exchange(ctx context.Context, engine *ledger.Engine) error {
	workers, err := w.crew.survey(ctx, engine)
	if err != nil {
		return err
	}
	turns, err := engine.Turns.Current(ctx)
	if err != nil {
		return err
	}
	seen := map[int64]bool{}
	var ended []int64
	for _, t := range turns {
		seen[t.ID] = true
		over, err := w.settle(ctx, engine, workers, t)
		if err != nil {
			return err
		}
		if over {
			ended = append(ended, t.ID)
		}
	}
	for id, o := range w.out {
		if seen[id] {
			continue
		}
		if err := w.land(ctx, engine, o, ledger.GivenTurn{ID: id, Key: o.Key, Worker: o.worker, Lost: true}); err != nil {
			return err
		}
	}
	if err := w.giveAll(ctx, engine, workers); err != nil {
		return err
	}
	if len(ended) > 0 { // after giveAll: a worker waits for its next turn. Without it, the next look does it
		if err := engine.Turns.Forget(ctx, ended...); err != nil {
			return err
		}
	}
	return w.hurry(ctx, engine)
}

// settle takes the result of a turn that has ended, and withdraws one that no worker will end. It reports whether the
// turn is over and the ledger can forget it.
func (w *Workers) settle(ctx context.Context, engine *ledger.Engine, workers map[string]*worker, t ledger.GivenTurn) (over bool, err error) {
	o := w.out[t.ID]
	if o != nil && o.worker != t.Worker {
		o.worker = t.Worker
		w.opt.Use(func(d *desk.Desk) { d.Workers.Taken(o.Key, t.Worker) })
	}
	if !t.Done && !t.Lost && o != nil && expected(workers, t.Worker) {
		return false, nil
	}
	if !t.Done {
		withdrawn, err := engine.Turns.Withdraw(ctx, t.ID)
		if err != nil || !withdrawn { // it has ended just now: the next look sees its result
			return false, err
		}
		t.Lost = true
	}
	if o != nil {
		if err := w.land(ctx, engine, o, t); err != nil {
			return false, err
		}
	}
	return t.Done, nil
}

// giveAll gives turns while workers have free slots. No more turns are out than there are slots, so that the order of
// turns stays that of the desk.
func (w *Workers) giveAll(ctx context.Context, engine *ledger.Engine, workers map[string]*worker) error {
	w.crew.showRefused(workers)
	free := w.crew.free(workers, w.out)
	defer func() { w.crew.show(workers, free) }()
	for free > 0 && ctx.Err() == nil && (w.opt.Gate == nil || w.opt.Gate.State().Held == "") {
		g, ok, _ := w.next()
		if !ok {
			return nil
		}
		given, err := w.give(ctx, engine, g)
		if err != nil {
			return err
		}
		if given {
			free--
		}
	}
	return nil
}

// Adopt takes over the turns that workers were given by an earlier process. It is called before Run gives any.
func (w *Workers) Adopt(ctx context.Context, engine *ledger.Engine) error {
	turns, err := engine.Turns.Current(ctx)
	if err != nil {
		return err
	}
	for _, t := range turns {
		mine := false
		w.opt.Use(func(d *desk.Desk) { mine = d.Workers.Adopt(t.Key) })
		if mine {
			w.sent(&out{Given: desk.Given{Key: t.Key, ID: desk.ShortID(t.Key)}, id: t.ID, worker: t.Worker})
		} // otherwise settle withdraws it
	}
	return nil
}

// mustHurry returns the turns of workers that must end soon and whose workers do not know it.
func (w *Workers) mustHurry() (ids []int64) {
	if !w.pressing() {
		return nil
	}
	for id, o := range w.out {
		if !o.hurried {
			ids = append(ids, id)
		}
	}
	return ids
}

// hurry asks workers to end their turns soon if a new query waits for its first turn, as turns in this process do.
// Turns with a free worker were given before.
func (w *Workers) hurry(ctx context.Context, engine *ledger.Engine) error {
	ids := w.mustHurry()
	if ids == nil {
		return nil
	}
	if err := engine.Turns.Hurry(ctx, ids); err != nil {
		return err
	}
	for _, id := range ids {
		w.out[id].hurried = true
	}
	return nil
}

// give gives a turn to the workers. It returns false if the turn has ended here. The error is that of the ledger, and
// the audit waits again.
func (w *Workers) give(ctx context.Context, engine *ledger.Engine, g desk.Given) (given bool, err error) {
	if !w.within(g, func() { given, err = w.giveTurn(ctx, engine, g) }) {
		w.unlist(g.Key)
	}
	return given, err
}

// unlist forgets the turn of an audit that was set aside. The next look withdraws it.
func (w *Workers) unlist(key string) {
	for id, o := range w.out {
		if o.Key == key {
			delete(w.out, id)
		}
	}
}

// giveTurn is give without protection against panics. The ledger gets the state that the turn begins with first, and
// this process keeps no evidence meanwhile.
func (w *Workers) giveTurn(ctx context.Context, engine *ledger.Engine, g desk.Given) (bool, error) {
	if g.Kind == step.Watching || g.Control { // few, and in the watch share
		w.watches.Go(func() { w.turn(ctx, g) })
		return false, nil
	}
	ready, err := w.prepare(ctx, g)
	switch {
	case err != nil:
		w.finish(ctx, g.Key, desk.Outcome{Trouble: err})
		return false, nil
	case !ready:
		w.save(ctx, g.Key)
		return false, nil
	}
	if err := w.store(ctx, g.Key); err != nil {
		w.giveBack(g.Key)
		return false, err
	}
	args := ledger.TurnArgs{Key: g.Key}
	w.opt.Use(func(d *desk.Desk) { args.Turns, args.Used = d.Workers.Had(g.Key) })
	id, err := engine.Turns.Give(ctx, args)
	if err != nil && id == 0 {
		w.giveBack(g.Key)
		return false, err
	}
	w.sent(&out{Given: g, id: id}) // with an error it may be given: the next look at the ledger shows it
	return true, err
}

// store writes the evidence of an audit, unless the ledger has it.
func (w *Workers) store(ctx context.Context, key string) error {
	lacks := false
	if w.opt.Use(func(d *desk.Desk) { lacks = d.Workers.Put(key) }); !lacks {
		return nil
	}
	err := w.opt.Keeper.Write(ctx, key)
	if err == nil {
		w.opt.Use(func(d *desk.Desk) { d.Workers.Stored(key) })
	}
	return err
}

// giveBack ends the turn of an audit that could not be given.
func (w *Workers) giveBack(key string) {
	w.opt.Use(func(d *desk.Desk) { d.Turns.GiveBack(key) })
}

// sent notes that a turn was given to the workers.
func (w *Workers) sent(o *out) {
	w.opt.Slots.Drop(o.Key)
	w.out[o.id] = o
	w.opt.Use(func(d *desk.Desk) { d.Workers.Sent(o.Key, o.worker) })
}

// land ends a turn that a worker had: it takes the evidence from the ledger. The error is that of the ledger; then the
// turn is still out.
func (w *Workers) land(ctx context.Context, engine *ledger.Engine, o *out, t ledger.GivenTurn) error {
	row, found, err := engine.Audits.Find(ctx, o.Key)
	if err != nil {
		return err
	}
	delete(w.out, t.ID)
	if !w.within(o.Given, func() { w.landTurn(ctx, o, t, &row, found) }) {
		w.unlist(o.Key)
	}
	return nil
}

// landTurn ends a turn with the evidence that the ledger has.
func (w *Workers) landTurn(ctx context.Context, o *out, t ledger.GivenTurn, row *ledger.Audit, found bool) {
	var l desk.Landed
	var fault error
	w.opt.Use(func(d *desk.Desk) { l, fault = d.Workers.Land(o.Key, row, found) })
	if fault != nil {
		SetAside(ctx, w.opt.Keeper, w.opt.Logger, w.opt.Say, o.Key, fault)
	}
	w.opt.Budget.Charge(l.Trials, sessionsPerTurn*t.Outcome.Took.Seconds())
	ended := !t.Lost && t.Outcome.Refused == ""
	w.crew.count(ended, t.Worker)
	switch {
	case t.Lost && t.Worker == "": // no worker had taken it
	case t.Lost:
		w.opt.Logger.Warn("a worker ended or was cut off during a turn: the turn's trials are dropped, and the audit goes on", zap.String("audit", o.ID), zap.String("worker", t.Worker))
	case t.Outcome.Refused != "":
		w.crew.refuses(o.ID, t)
	}
	if !ended || !l.Evidence {
		w.giveBack(o.Key)
		return
	}
	w.take(ctx, o.Key, l, t.Outcome)
}

// take ends a turn whose evidence a worker has delivered, as if it had been run here.
func (w *Workers) take(ctx context.Context, key string, l desk.Landed, d ledger.Outcome) {
	var now *environment.Environment
	var trouble error
	if !l.Measuring && !d.Early && d.Broken == "" && d.Stop == "" && d.Trouble == "" {
		now, trouble = w.opt.Environment.Read(ctx) // the engine may have changed during the turn
	}
	var o desk.Outcome
	w.opt.Use(func(desk *desk.Desk) { o = desk.Workers.Delivered(key, d, now, trouble) })
	w.finish(ctx, key, o)
}

// sessionsPerTurn is the number of sessions of one turn: see replay.Options.
const sessionsPerTurn = 2
