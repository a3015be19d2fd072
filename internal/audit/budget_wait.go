package audit

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// budgetCalm is how long no turn must have been refused until the budget counts as sufficient.
const budgetCalm = 10 * time.Minute

// shortage describes how long audits have been waiting for the budget. Its fields are guarded by Auditor.mu.
type shortage struct{ since, refused time.Time }

// withinBudget returns 0 if a turn may begin, otherwise how long to wait. It logs when audits begin to wait for the
// budget, and when they no longer do. The caller holds Auditor.mu.
func (a *Auditor) withinBudget(now time.Time) time.Duration {
	wait := a.opt.Budget.Wait()
	if a.opt.Budget == nil {
		return 0
	}
	waiting := len(a.roster.Order(now))
	switch s := &a.short; {
	case wait > 0 && waiting > 0:
		if s.refused = now; s.since.IsZero() {
			s.since = now
			l, _ := a.opt.Budget.Use()
			a.opt.Logger.Warn("the budget of replays per hour is used: audits wait (audit.budget)", zap.Int("audits", waiting),
				zap.Int("trials_per_hour", l.Trials), zap.Float64("database_seconds_per_hour", l.Seconds))
		}
	case !s.since.IsZero() && (now.Sub(s.refused) >= budgetCalm || waiting == 0 && !a.running()):
		a.opt.Logger.Info("audits no longer wait for the budget of replays", zap.Duration("after", now.Sub(s.since)))
		*s = shortage{}
	}
	return min(wait, time.Second) // sessions that leave give back what they did not use
}

// running reports whether an audit that is not decided has a turn.
func (d *desk) running() bool {
	for _, j := range d.order {
		if j.Phase() == schedule.Running || j.Measuring {
			return true
		}
	}
	return false
}

// startBudget fills the budget if the ledger has no use in the last hour.
func (a *Auditor) startBudget(ctx context.Context, engine *ledger.Engine) error {
	if a.opt.Budget == nil {
		return nil
	}
	s, err := engine.SpentSince(ctx, a.opt.Now().Add(-time.Hour))
	if err == nil && s.Trials == 0 && s.Seconds == 0 {
		a.opt.Budget.Fill()
	}
	return err
}

// saveSpent writes the use of the budget to the ledger. The end of ctx does not interrupt it: a write that was
// interrupted may have been completed, and would be repeated.
func (a *Auditor) saveSpent(ctx context.Context) error {
	all := a.opt.Budget.Take()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opt.CloseTimeout)
	defer cancel()
	err := a.keeper.Engine.Load().Spend(ctx, all)
	if a.keeper.Wrote(err); err != nil {
		a.opt.Budget.GiveBack(all)
	}
	return err
}

// budgetState returns what the status shows; nil without a budget. The caller holds Auditor.mu.
func (a *Auditor) budgetState() *view.BudgetState {
	b := a.opt.Budget
	if b == nil {
		return nil
	}
	limits, used := b.Use()
	s := &view.BudgetState{
		TrialsPerHour: limits.Trials, SecondsPerHour: limits.Seconds, Trials: used.Trials, Seconds: used.Seconds, Since: a.short.since,
	}
	if !s.Since.IsZero() {
		s.Waiting = len(a.roster.Order(a.opt.Now()))
	}
	return s
}

// Reasons why an audit waits, besides its turn.
const (
	waitsForTurn    = "turn"
	waitsForBudget  = "budget"
	waitsForLedger  = "ledger"
	waitsForShadow  = "shadow_database"
	waitsForGate    = "replays_held" // paused, outside the hours, or load
	waitsForShare   = "watch_share"
	waitsForRetries = "retry" // its replays failed
)

// waiting returns why audits wait, by key. The caller holds Auditor.mu.
func (a *Auditor) waiting(now time.Time) map[string]*view.WaitingFor {
	order := a.roster.Order(now)
	position := map[string]int{}
	for i, seat := range order {
		position[seat.Key] = i + 1
	}
	common := a.commonWait()
	all := map[string]*view.WaitingFor{}
	for _, j := range a.order {
		if j.Phase() != schedule.Queued {
			continue
		}
		w := &view.WaitingFor{Reason: waitsForTurn, Since: j.Since(), Position: position[j.Key], Of: len(order)}
		switch {
		case j.NotBefore.After(now):
			if w.Reason = waitsForRetries; j.ledgerAway {
				w.Reason = waitsForLedger
			} else if !a.shadowUp {
				w.Reason = waitsForShadow
			}
			w.Until = j.NotBefore
		case common != "":
			w.Reason = common
		case j.Background:
			w.Reason = waitsForShare
		}
		if w.Reason != waitsForTurn && w.Reason != waitsForBudget {
			w.Position, w.Of = 0, 0
		}
		all[j.Key] = w
	}
	return all
}

// commonWait returns why all audits wait; "" = for their turns alone. The caller holds Auditor.mu.
func (a *Auditor) commonWait() string {
	switch l := a.keeper.State(); {
	case l != nil && !l.Restored:
		return waitsForLedger
	case a.shadow != "":
		return waitsForShadow
	case a.opt.Gate != nil && a.opt.Gate.State().Held != "":
		return waitsForGate
	case !a.short.since.IsZero():
		return waitsForBudget
	}
	return ""
}
