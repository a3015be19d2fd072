package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// crew is what is known of the workers. One goroutine uses it; what mu guards any may.
type crew struct {
	opt     *Options
	refused map[string]refusal // by worker

	mu      sync.Mutex // guards the fields below
	workers []view.WorkerState
	slots   int    // turns that workers could take at the last look
	lost    uint64 // turns that were withdrawn
	ended   uint64 // turns that were delivered
}

// refusal is why a worker gets no turns for a while.
type refusal struct {
	reason string
	until  time.Time
}

// worker is a worker that was heard.
type worker struct {
	view.WorkerState
	alive bool
}

// survey returns the workers by id.
func (c *crew) survey(ctx context.Context, engine *ledger.Engine) (map[string]*worker, error) {
	rows, err := engine.Turns.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers := map[string]*worker{}
	for _, w := range rows {
		s := &worker{WorkerState: view.WorkerState{ID: w.ID, Host: w.Host, Version: w.Version, Slots: w.Slots, Since: w.Since, Silent: w.Silent}}
		s.alive = w.Silent < c.opt.RescueAfter
		workers[w.ID] = s
	}
	c.showRefused(workers)
	return workers, nil
}

// showRefused notes which workers take no turns because they refused one.
func (c *crew) showRefused(workers map[string]*worker) {
	for id, r := range c.refused {
		if w := workers[id]; w == nil || !c.opt.Now().Before(r.until) {
			delete(c.refused, id)
		} else {
			w.Refused = r.reason
		}
	}
}

// refuses notes that a worker cannot take turns of an audit: its configuration, version or copies are others.
func (c *crew) refuses(audit string, t ledger.GivenTurn) {
	c.refused[t.Worker] = refusal{t.Outcome.Refused, c.opt.Now().Add(c.opt.RetryAfter)}
	c.opt.Logger.Warn("a worker refused a turn: it gets none for a while, and the audit goes on elsewhere", zap.String("audit", audit),
		zap.String("worker", t.Worker), zap.String("reason", t.Outcome.Refused), zap.Duration("retry_in", c.opt.RetryAfter))
}

// expected reports whether a turn of a worker will end; "" = whether a worker will take one.
func expected(workers map[string]*worker, id string) bool {
	if id != "" {
		w := workers[id]
		return w != nil && w.alive
	}
	for _, w := range workers {
		if w.alive && w.Refused == "" && w.Slots > 0 {
			return true
		}
	}
	return false
}

// free returns how many turns the workers can take, and counts those that they have. A worker that was silent for a
// while may be gone, and one that refused a turn takes none for a while.
func (c *crew) free(workers map[string]*worker, all map[int64]*out) (free int) {
	for _, o := range all {
		if w := workers[o.worker]; w != nil {
			w.Turns++
		} else {
			free-- // it will be taken
		}
	}
	for _, w := range workers {
		if w.Refused == "" && w.Silent < c.opt.RescueAfter/2 {
			free += max(0, w.Slots-w.Turns)
		}
	}
	return free
}

// show publishes the workers and how many turns they can take.
func (c *crew) show(workers map[string]*worker, free int) {
	all := make([]view.WorkerState, 0, len(workers))
	for _, w := range workers {
		if w.alive || w.Turns > 0 {
			all = append(all, w.WorkerState)
		}
	}
	slices.SortFunc(all, func(x, y view.WorkerState) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID)) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers, c.slots = all, free
}

// isFree reports whether a worker could take a turn at the last look.
func (c *crew) isFree() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slots > 0
}

// count counts a turn that was out.
func (c *crew) count(ended bool, worker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ended:
		c.ended++
	case worker != "":
		c.lost++
	}
}

// State returns what the status shows of the workers; nothing without a ledger. The turns that are out are not counted.
func (w *Workers) State() ([]view.WorkerState, *view.Turns) {
	if !w.opt.Keeper.On {
		return nil, nil
	}
	c := &w.crew
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.workers), &view.Turns{Delivered: c.ended, Dropped: c.lost}
}
