package audit

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// budgetCalm is how long no turn must have been refused until the budget counts as sufficient.
const budgetCalm = 10 * time.Minute

// pace is the budget of replays, and how long audits have been waiting for it.
type pace struct {
	opt    *Options
	use    useDesk
	keeper *keep.Keeper

	mu             sync.Mutex // guards the fields below
	since, refused time.Time  // audits began to wait; a turn was refused last
}

// wait returns 0 if a turn may begin, otherwise how long to wait. It logs when audits begin to wait for the budget, and
// when they no longer do.
func (p *pace) wait() time.Duration {
	if p.opt.Budget == nil {
		return 0
	}
	wait, now := p.opt.Budget.Wait(), p.opt.Now()
	waiting, running := 0, false
	p.use(func(d *desk.Desk) { waiting, running = d.Turns.Waiting() })
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case wait > 0 && waiting > 0:
		if p.refused = now; p.since.IsZero() {
			p.since = now
			l, _ := p.opt.Budget.Use()
			p.opt.Logger.Warn("the budget of replays per hour is used: audits wait (audit.budget)", zap.Int("audits", waiting),
				zap.Int("trials_per_hour", l.Trials), zap.Float64("database_seconds_per_hour", l.Seconds))
		}
	case !p.since.IsZero() && (now.Sub(p.refused) >= budgetCalm || waiting == 0 && !running):
		p.opt.Logger.Info("audits no longer wait for the budget of replays", zap.Duration("after", now.Sub(p.since)))
		p.since, p.refused = time.Time{}, time.Time{}
	}
	return min(wait, time.Second) // sessions that leave give back what they did not use
}

// short returns since when audits have been waiting for the budget; zero = none does.
func (p *pace) short() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since
}

// start fills the budget if the ledger has no use in the last hour.
func (p *pace) start(ctx context.Context, engine *ledger.Engine) error {
	if p.opt.Budget == nil {
		return nil
	}
	s, err := engine.SpentSince(ctx, p.opt.Now().Add(-time.Hour))
	if err == nil && s.Trials == 0 && s.Seconds == 0 {
		p.opt.Budget.Fill()
	}
	return err
}

// save writes the use of the budget to the ledger. The end of ctx does not interrupt it: a write that was
// interrupted may have been completed, and would be repeated.
func (p *pace) save(ctx context.Context) error {
	all := p.opt.Budget.Take()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.CloseTimeout)
	defer cancel()
	err := p.keeper.Engine.Load().Spend(ctx, all)
	if p.keeper.Wrote(err); err != nil {
		p.opt.Budget.GiveBack(all)
	}
	return err
}

// state returns what the status shows; nil without a budget.
func (p *pace) state() *view.BudgetState {
	b := p.opt.Budget
	if b == nil {
		return nil
	}
	limits, used := b.Use()
	s := &view.BudgetState{
		TrialsPerHour: limits.Trials, SecondsPerHour: limits.Seconds, Trials: used.Trials, Seconds: used.Seconds, Since: p.short(),
	}
	if !s.Since.IsZero() {
		p.use(func(d *desk.Desk) { s.Waiting, _ = d.Turns.Waiting() })
	}
	return s
}
