package audit

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Intervals of looking for turns that have ended and for turns to hand out. A notification of the ledger ends a wait
// early.
const (
	remoteEvery = time.Second
	handEvery   = 100 * time.Millisecond // if a worker has a free slot
)

// defaultRescueAfter is how long a worker may be silent before its turns are withdrawn.
const defaultRescueAfter = time.Minute

// remote is what the auditor knows of the workers on other machines. Its goroutine alone uses the fields that
// Auditor.mu does not guard.
type remote struct {
	out     map[int64]*job     // turns that workers have, by number
	refused map[string]refusal // by worker
	trouble string             // why the last look failed; "" = it did not
	workers []knownWorker      // guarded by Auditor.mu
	free    int                // turns that workers could take at the last look; guarded by Auditor.mu
	watches sync.WaitGroup     // watch turns, which run here
	lost    uint64             // turns that were withdrawn; guarded by Auditor.mu
	ended   uint64             // turns that were delivered; guarded by Auditor.mu
}

// givenTurn is a turn that a worker has or may take.
type givenTurn struct {
	id      int64
	worker  string // its id; "" = none has taken it
	before  int    // executions of the audit before the turn
	hurried bool   // the worker was asked to end it soon
}

// refusal is why a worker gets no turns for a while.
type refusal struct {
	reason string
	until  time.Time
}

// knownWorker is a worker that was heard.
type knownWorker struct {
	view.WorkerState
	alive bool
}

// shareTurns hands out turns to the workers and takes their results until ctx is done. It returns an error if another
// process takes over the engine's audits in the ledger.
func (a *Auditor) shareTurns(ctx context.Context) error {
	if a.keeper.Wait(ctx) != nil {
		return nil
	}
	engine := a.keeper.Engine.Load()
	if engine == nil {
		return nil
	}
	defer a.remote.watches.Wait()
	for failures := 0; ctx.Err() == nil; {
		err := a.contain("exchange turns", func() error { return a.exchange(ctx, engine) })
		switch {
		case errors.Is(err, ledger.ErrReplaced):
			return err
		case err != nil && ctx.Err() == nil:
			failures++
			// While the ledger is away, the keeper says so, once for everything.
			if text := a.say(err); text != a.remote.trouble && failures > 2 && a.keeper.State().Trouble == "" {
				a.remote.trouble = text
				a.opt.Logger.Error("turns cannot be handed out to workers now", zap.String("error", text))
			}
		default:
			failures, a.remote.trouble = 0, ""
		}
		a.remoteWait(ctx, engine)
	}
	return nil
}

// remoteWait returns when a turn has ended, when a turn can be handed out, or after remoteEvery.
func (a *Auditor) remoteWait(ctx context.Context, engine *ledger.Engine) {
	for wait := remoteEvery; wait > 0 && ctx.Err() == nil; wait -= handEvery {
		if engine.WaitForTurn(ctx, handEvery) || a.canHandOut() || a.mustHurry() != nil {
			return
		}
	}
}

// canHandOut reports whether an audit waits and a worker has a free slot, as far as was known at the last look.
func (a *Auditor) canHandOut() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.remote.free > 0 && a.roster.Due(a.opt.Now())
}

// exchange takes the results of turns that have ended, withdraws those of workers that are gone, and hands out turns.
func (a *Auditor) exchange(ctx context.Context, engine *ledger.Engine) error {
	workers, err := a.surveyWorkers(ctx, engine)
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
		over, err := a.settle(ctx, engine, workers, t)
		if err != nil {
			return err
		}
		if over {
			ended = append(ended, t.ID)
		}
	}
	for id, j := range a.remote.out {
		if seen[id] {
			continue
		}
		if err := a.land(ctx, engine, j, ledger.GivenTurn{ID: id, Key: j.Key, Worker: j.given.worker, Lost: true}); err != nil {
			return err
		}
	}
	if err := a.handOut(ctx, engine, workers); err != nil {
		return err
	}
	if len(ended) > 0 { // after handOut: a worker waits for its next turn. Without it, the next look does it
		if err := engine.Turns.Forget(ctx, ended...); err != nil {
			return err
		}
	}
	return a.hurry(ctx, engine)
}

// surveyWorkers returns the workers by id, and publishes them.
func (a *Auditor) surveyWorkers(ctx context.Context, engine *ledger.Engine) (map[string]*knownWorker, error) {
	rows, err := engine.Turns.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers := map[string]*knownWorker{}
	for _, w := range rows {
		s := &knownWorker{WorkerState: view.WorkerState{ID: w.ID, Host: w.Host, Version: w.Version, Slots: w.Slots, Since: w.Since, Silent: w.Silent}}
		s.alive = w.Silent < a.opt.RescueAfter
		workers[w.ID] = s
	}
	a.showRefused(workers)
	return workers, nil
}

// showRefused notes which workers take no turns because they refused one.
func (a *Auditor) showRefused(workers map[string]*knownWorker) {
	for id, r := range a.remote.refused {
		if w := workers[id]; w == nil || !a.opt.Now().Before(r.until) {
			delete(a.remote.refused, id)
		} else {
			w.Refused = r.reason
		}
	}
}

// settle takes the result of a turn that has ended, and withdraws one that no worker will end. It reports whether the
// turn is over and the ledger can forget it.
func (a *Auditor) settle(ctx context.Context, engine *ledger.Engine, workers map[string]*knownWorker, t ledger.GivenTurn) (over bool, err error) {
	j := a.remote.out[t.ID]
	if j != nil {
		a.locked(func() { j.given.worker = t.Worker })
	}
	if !t.Done && !t.Lost && j != nil && expected(workers, t.Worker) {
		return false, nil
	}
	if !t.Done {
		withdrawn, err := engine.Turns.Withdraw(ctx, t.ID)
		if err != nil || !withdrawn { // it has ended just now: the next look sees its result
			return false, err
		}
		t.Lost = true
	}
	if j != nil {
		if err := a.land(ctx, engine, j, t); err != nil {
			return false, err
		}
	}
	return t.Done, nil
}

// expected reports whether a turn of a worker will end; "" = whether a worker will take one.
func expected(workers map[string]*knownWorker, worker string) bool {
	if worker != "" {
		w := workers[worker]
		return w != nil && w.alive
	}
	for _, w := range workers {
		if w.alive && w.Refused == "" && w.Slots > 0 {
			return true
		}
	}
	return false
}

// handOut gives turns while workers have free slots. No more turns are out than there are slots, so that the order of
// turns stays that of the roster.
func (a *Auditor) handOut(ctx context.Context, engine *ledger.Engine, workers map[string]*knownWorker) error {
	a.showRefused(workers)
	free := a.freeSlots(workers)
	defer func() {
		a.locked(func() { a.remote.free = free })
		a.showWorkers(workers)
	}()
	for free > 0 && ctx.Err() == nil && (a.opt.Gate == nil || a.opt.Gate.State().Held == "") {
		j, _ := a.next()
		if j == nil {
			return nil
		}
		given, err := a.give(ctx, engine, j)
		if err != nil {
			return err
		}
		if given {
			free--
		}
	}
	return nil
}

// freeSlots returns how many turns the workers can take, and counts those that they have. A worker that was silent for
// a while may be gone, and one that refused a turn takes none for a while.
func (a *Auditor) freeSlots(workers map[string]*knownWorker) (free int) {
	for _, j := range a.remote.out {
		if w := workers[j.given.worker]; w != nil {
			w.Turns++
		} else {
			free-- // it will be taken
		}
	}
	for _, w := range workers {
		if w.Refused == "" && w.Silent < a.opt.RescueAfter/2 {
			free += max(0, w.Slots-w.Turns)
		}
	}
	return free
}

// showWorkers publishes the workers for the status.
func (a *Auditor) showWorkers(workers map[string]*knownWorker) {
	all := make([]knownWorker, 0, len(workers))
	for _, w := range workers {
		if w.alive || w.Turns > 0 {
			all = append(all, *w)
		}
	}
	sortWorkers(all)
	a.mu.Lock()
	a.remote.workers = all
	a.mu.Unlock()
}

// remoteState returns what the status shows of the workers. The caller holds Auditor.mu.
func (a *Auditor) remoteState() ([]view.WorkerState, *view.Turns) {
	if !a.keeper.On {
		return nil, nil
	}
	t := &view.Turns{Delivered: a.remote.ended, Dropped: a.remote.lost}
	for _, j := range a.order {
		if j.given != nil {
			t.Out++
		}
	}
	var all []view.WorkerState
	for _, w := range a.remote.workers {
		all = append(all, w.WorkerState)
	}
	return all, t
}
