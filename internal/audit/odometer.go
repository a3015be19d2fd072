package audit

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// meterEvery is the interval at which the budgets are compared with what analysts received.
const meterEvery = time.Minute

// overspent is an analyst who was reported to exceed a budget.
type overspent struct {
	budget string
	ledger.Analyst
}

// mostSpent bounds the share of a budget that is shown: a JSON number is finite.
const mostSpent = 1000

// meter compares the budgets with what analysts received until ctx is done.
func (a *Auditor) meter(ctx context.Context) {
	if len(a.opt.Budgets) == 0 || a.keeper.Wait(ctx) != nil {
		return
	}
	tick := time.NewTicker(meterEvery)
	defer tick.Stop()
	for said := ""; ; {
		text := ""
		if err := a.meterNow(ctx); err != nil && ctx.Err() == nil {
			if text = a.say(err); text != said {
				a.opt.Logger.Warn("the privacy budgets cannot be compared with the answers", zap.String("error", text), zap.Duration("retry_in", meterEvery))
			}
		}
		said = text
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// meterNow compares every budget now.
func (a *Auditor) meterNow(ctx context.Context) error {
	engine := a.keeper.Engine.Load()
	if engine == nil { // the process ends
		return nil
	}
	var states []view.PrivacyBudgetState
	var faults error
	for i := range a.opt.Budgets { // a fault of one does not keep the others from being compared
		s, err := a.compareBudget(ctx, engine, &a.opt.Budgets[i])
		if faults = errors.Join(faults, err); err == nil {
			states = append(states, s)
		}
	}
	a.mu.Lock()
	a.budgets = states
	a.mu.Unlock()
	return faults
}

// compareBudget reports the analysts who have exceeded a budget since the last time. The ledger remembers them after
// the report, so that none is lost.
func (a *Auditor) compareBudget(ctx context.Context, engine *ledger.Engine, b *ledger.PrivacyBudget) (view.PrivacyBudgetState, error) {
	s := view.PrivacyBudgetState{Name: b.Name}
	all, err := engine.Received(ctx, b.Window(a.opt.Now()))
	if err != nil {
		return s, err
	}
	before, err := engine.Exceeded(ctx, b.Name)
	if err != nil {
		return s, err
	}
	s.Analysts = len(all)
	for _, r := range all {
		s.Spent = max(s.Spent, min(mostSpent, r.Spent.Loss(b.Composition, b.Delta)/b.Epsilon))
		if !b.Exceeded(r.Spent) {
			continue
		}
		s.Exceeded++
		if _, reported := before[r.Analyst]; reported {
			delete(before, r.Analyst)
			continue
		}
		who := overspent{b.Name, r.Analyst}
		if a.opt.OnFinding != nil && !a.overspent[who] {
			a.overspent[who] = true
			a.opt.OnFinding(alert.Finding{Kind: finding.BudgetExceeded, Budget: overspending(b, r)})
		}
		if err := engine.SetExceeded(ctx, b.Name, r.Analyst, true); err != nil {
			return s, err
		}
		delete(a.overspent, who)
	}
	for analyst := range before { // their answers became older than the period, or the budget was raised
		if err := engine.SetExceeded(ctx, b.Name, analyst, false); err != nil {
			return s, err
		}
		a.opt.Logger.Info("a privacy budget is not exceeded any more", zap.String("dp.budget.name", b.Name), zap.String("db.user", analyst.User), zap.String("db.namespace", analyst.Database))
	}
	return s, nil
}

// overspending returns the budget and what an analyst received as an alert has them.
func overspending(b *ledger.PrivacyBudget, r ledger.Received) alert.Budget {
	return alert.Budget{
		Name: b.Name, User: r.Analyst.User, Database: r.Analyst.Database, Application: r.Analyst.Application, Answers: r.Spent.Answers,
		Epsilon: b.Epsilon, Delta: b.Delta, Spent: r.Spent.Loss(b.Composition, b.Delta), Composition: string(b.Composition), Period: b.Period,
	}
}
