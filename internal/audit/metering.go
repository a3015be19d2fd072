package audit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
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

// metering compares privacy budgets with what analysts received.
type metering struct {
	opt       *Options
	keeper    *keep.Keeper
	overspent map[overspent]bool // reported, and not yet noted in the ledger

	mu     sync.Mutex // guards states
	states []view.PrivacyBudgetState
}

// mostSpent bounds the share of a budget that is shown: a JSON number is finite.
const mostSpent = 1000

// run compares the budgets with what analysts received until ctx is done.
func (m *metering) run(ctx context.Context) {
	if len(m.opt.Budgets) == 0 || m.keeper.Wait(ctx) != nil {
		return
	}
	tick := time.NewTicker(meterEvery)
	defer tick.Stop()
	for said := ""; ; {
		text := ""
		if err := m.now(ctx); err != nil && ctx.Err() == nil {
			if text = m.opt.say(err); text != said {
				m.opt.Logger.Warn("the privacy budgets cannot be compared with the answers", zap.String("error", text), zap.Duration("retry_in", meterEvery))
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

// now compares every budget.
func (m *metering) now(ctx context.Context) error {
	engine := m.keeper.Engine.Load()
	if engine == nil { // the process ends
		return nil
	}
	var states []view.PrivacyBudgetState
	var faults error
	for i := range m.opt.Budgets { // a fault of one does not keep the others from being compared
		s, err := m.compareBudget(ctx, engine, &m.opt.Budgets[i])
		if faults = errors.Join(faults, err); err == nil {
			states = append(states, s)
		}
	}
	m.mu.Lock()
	m.states = states
	m.mu.Unlock()
	return faults
}

// compareBudget reports the analysts who have exceeded a budget since the last time. The ledger remembers them after
// the report, so that none is lost.
func (m *metering) compareBudget(ctx context.Context, engine *ledger.Engine, b *ledger.PrivacyBudget) (view.PrivacyBudgetState, error) {
	s := view.PrivacyBudgetState{Name: b.Name}
	all, err := engine.Received(ctx, b.Window(m.opt.Now()))
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
		if m.opt.OnFinding != nil && !m.overspent[who] {
			m.overspent[who] = true
			m.opt.OnFinding(alert.Finding{Kind: finding.BudgetExceeded, Budget: overspending(b, r)})
		}
		if err := engine.SetExceeded(ctx, b.Name, r.Analyst, true); err != nil {
			return s, err
		}
		delete(m.overspent, who)
	}
	for analyst := range before { // their answers became older than the period, or the budget was raised
		if err := engine.SetExceeded(ctx, b.Name, analyst, false); err != nil {
			return s, err
		}
		m.opt.Logger.Info("a privacy budget is not exceeded any more", zap.String("dp.budget.name", b.Name), zap.String("db.user", analyst.User), zap.String("db.namespace", analyst.Database))
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

// state returns the budgets as they were compared the last time.
func (m *metering) state() []view.PrivacyBudgetState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.states)
}
