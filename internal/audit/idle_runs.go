package audit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/replay"
)

// Bounds of the cache of idle replays, which hold open sessions and the tables of a hoisted query between the turns of
// their audits: their number, and the time of each.
const (
	maxIdleRuns = 8
	maxIdleTime = 30 * time.Second
)

// idleRuns is the cache of idle replays.
type idleRuns struct {
	mu     sync.Mutex // guards the fields below
	runs   []*idleRun // longest idle first
	closed bool

	recovered func(r any) // reports a panic; set once
}

// idleRun is an idle replay between two turns.
type idleRun struct {
	job   *job
	hoist *replay.Hoisting // its Hoisting: an audit that begins again gets another
	run   trial.Trials
	timer *time.Timer
}

// run returns the replay of a job: the idle one, or a new one.
func (a *Auditor) run(j *job) (trial.Trials, error) {
	if r := a.idle.take(j); r != nil {
		return r, nil
	}
	return a.opt.Player.Start(j.statement(a.opt.VaryText), j.orderSeed())
}

// orderSeed returns the seed of the order of the trials of a replay that starts in the present turn. Reports have the
// seed of the evidence, so that a reader can see that the order was drawn independently of the answers.
func (j *job) orderSeed() uint64 { return j.seed + uint64(j.Turns()) }

// remove removes the idle replay that matches and stops its timer; it returns nil if there is none.
func (k *idleRuns) remove(matches func(*idleRun) bool) *idleRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.runs, matches)
	if i < 0 {
		return nil
	}
	r := k.runs[i]
	k.runs = slices.Delete(k.runs, i, i+1)
	r.timer.Stop()
	return r
}

// take returns the idle replay of a job, or nil. The caller has the job's turn.
func (k *idleRuns) take(j *job) trial.Trials {
	r := k.remove(func(r *idleRun) bool { return r.job == j })
	if r == nil {
		return nil
	}
	if r.hoist != j.hoist {
		r.run.Close()
		return nil
	}
	return r.run
}

// drop closes the idle replay of a job, if there is one. The caller has the job's turn.
func (k *idleRuns) drop(j *job) {
	if r := k.remove(func(r *idleRun) bool { return r.job == j }); r != nil {
		r.run.Close()
	}
}

// hand gives the idle replay of a job, if there is one, to another job with the same statement and Hoisting. The caller
// has the turns of both.
func (k *idleRuns) hand(from, to *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.runs {
		if r.job == from {
			r.job = to
		}
	}
}

// put stores an idle replay if may is set and it holds tables, and closes it otherwise. The caller has the job's turn.
func (k *idleRuns) put(j *job, run trial.Trials, may bool) {
	if !may || !run.Rest() {
		run.Close()
		return
	}
	r := &idleRun{job: j, hoist: j.hoist, run: run}
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		run.Close()
		return
	}
	r.timer = time.AfterFunc(maxIdleTime, func() {
		defer func() {
			if fault := recover(); fault != nil {
				k.recovered(fault)
			}
		}()
		k.end(r)
	})
	k.runs = append(k.runs, r)
	var oldest *idleRun
	if len(k.runs) > maxIdleRuns {
		oldest = k.runs[0]
	}
	k.mu.Unlock()
	if oldest != nil {
		k.end(oldest)
	}
}

// end closes a replay if it is still idle.
func (k *idleRuns) end(r *idleRun) {
	if k.remove(func(o *idleRun) bool { return o == r }) != nil {
		r.run.Close()
	}
}

func (k *idleRuns) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.runs)
}

// clear closes all idle replays.
func (k *idleRuns) clear() {
	k.mu.Lock()
	runs := k.runs
	k.runs = nil
	k.mu.Unlock()
	for _, r := range runs {
		r.timer.Stop()
		r.run.Close()
	}
}

// closeIdleRuns closes the idle replays when replays are held, and for good when ctx is done.
func (a *Auditor) closeIdleRuns(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			a.idle.mu.Lock()
			a.idle.closed = true
			a.idle.mu.Unlock()
			a.idle.clear()
			return
		case <-tick.C:
			if a.opt.Gate != nil && a.opt.Gate.State().Held != "" {
				a.idle.clear()
			}
		}
	}
}
