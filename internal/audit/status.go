package audit

import (
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// statuses collects the status of an auditor.
type statuses struct {
	opt          *Options
	use          useDesk
	guard        *guard.Guard
	keeper       *keep.Keeper
	fleet        *fleet.Fleet
	surroundings *surroundings
	pace         *pace
	budgets      *metering
	resting      func() int
}

// now returns the present status.
func (s *statuses) now() view.Status {
	catalog, shadow, warnings := s.surroundings.trouble()
	ledger := s.keeper.State()
	common := s.commonWait(ledger, shadow)
	var all view.Status
	out := 0
	s.use(func(d *desk.Desk) { all, out = d.Overview.Show(common), d.Overview.Out() })
	all.Panics, all.Shadow, all.Catalog, all.Warnings = s.guard.Panics(), shadow, catalog, warnings
	all.Resting = s.resting()
	all.Ledger, all.Budget, all.PrivacyBudgets = ledger, s.pace.state(), s.budgets.state()
	if all.Workers, all.Turns = s.fleet.Workers.State(); all.Turns != nil {
		all.Turns.Out = out
	}
	if s.opt.Gate != nil {
		state := s.opt.Gate.State()
		all.Pace = &state
	}
	return all
}

// commonWait returns why all audits wait; "" = for their turns alone.
func (s *statuses) commonWait(l *view.LedgerState, shadow string) string {
	switch {
	case l != nil && !l.Restored:
		return desk.WaitsForLedger
	case shadow != "":
		return desk.WaitsForShadow
	case s.opt.Gate != nil && s.opt.Gate.State().Held != "":
		return desk.WaitsForGate
	case !s.pace.short().IsZero():
		return desk.WaitsForBudget
	}
	return ""
}
