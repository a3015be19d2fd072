package audit

import (
	"slices"

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
	all, snapshot, out := s.snapshot()
	ledger := s.keeper.State() // after the snapshot: it counts what the ledger lacks of that
	all.Audits = snapshot.Entries(s.commonWait(ledger, shadow))
	all.Panics, all.Shadow, all.Catalog, all.Warnings = s.guard.Panics(), shadow, catalog, warnings
	if !all.Observe {
		all.Production = s.surroundings.comparison()
	}
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

// refreshedAtOnce is the number of audits that are looked at in one use of the desk, so that others do not wait for
// long.
const refreshedAtOnce = 100

// snapshot returns what the status shows of all audits at one time, and how many turns workers have. What has changed
// is made anew before that, in several uses of the desk.
func (s *statuses) snapshot() (all view.Status, snapshot *desk.Snapshot, out int) {
	var keys []string
	s.use(func(d *desk.Desk) { keys = d.Overview.Keys() })
	for some := range slices.Chunk(keys, refreshedAtOnce) {
		s.use(func(d *desk.Desk) { d.Overview.Refresh(some) })
	}
	s.use(func(d *desk.Desk) {
		all, snapshot = d.Overview.Show()
		out = d.Overview.Out()
	})
	return all, snapshot, out
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
