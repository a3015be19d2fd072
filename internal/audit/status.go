package audit

import (
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// Status returns a copy of the present state.
func (a *Auditor) Status() view.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := view.Status{
		At: a.opt.Now(), Captured: a.captured, Skipped: maps.Clone(a.skipped), Evicted: maps.Clone(a.evictions),
		Faults: a.faults, Panics: a.guard.panics.Load(), Shadow: a.shadow, Catalog: a.catalog, Warnings: a.warnings,
		Resting: a.runner.Resting(), Observe: a.opt.Observe,
		Memory:  view.Memory{Audits: a.roster.Bytes(), Budget: a.opt.Memory},
		Records: a.records.list(),
		Audits:  make([]view.Entry, len(a.order)),
	}
	s.Ledger, s.Budget = a.keeper.State(), a.budgetState()
	s.PrivacyBudgets = slices.Clone(a.budgets)
	s.Workers, s.Turns = a.remoteState()
	s.Coverage.Queries, s.Coverage.AuditedQueries = a.covered()
	s.Coverage.Owners = a.roster.Owners()
	if a.opt.Gate != nil {
		state := a.opt.Gate.State()
		s.Pace = &state
	}
	waiting := a.waiting(s.At)
	for i, j := range a.order {
		s.Audits[i] = a.entry(j)
		s.Audits[i].WaitingFor = waiting[j.Key]
	}
	a.acceptances(&s)
	slices.SortStableFunc(s.Audits, func(x, y view.Entry) int { return x.FirstSeen.Compare(y.FirstSeen) })
	return s
}

// entry returns what the status shows of a job; little if that panics, which is logged once. The caller holds
// Auditor.mu.
func (a *Auditor) entry(j *job) (e view.Entry) {
	if !j.unshown {
		j.unshown = a.contain("show audit "+j.id, func() error { e = j.entry(&a.opt); return nil }) != nil
	}
	if j.unshown {
		r := a.emptyReport(j.plan, turn.ErrInternal.Error())
		e = view.Entry{ID: j.id, Key: j.Key, Route: j.Owner.Route, State: j.state(), Trouble: turn.ErrInternal.Error(), Verdict: string(r.Verdict), Report: &r, FirstSeen: j.firstSeen, LastSeen: j.LastSeen}
	}
	return e
}
