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
	ledger := s.keeper.State()
	var all view.Status
	var waiting *desk.Waiting
	out := 0
	s.use(func(d *desk.Desk) {
		all, waiting = d.Overview.Show()
		out = d.Overview.Out()
	})
	all.Audits = s.entries(waiting, s.commonWait(ledger, shadow))
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

// entriesAtOnce is the number of audits that are shown in one use of the desk, so that others do not wait for long.
const entriesAtOnce = 100

// entries returns what the status shows of all audits, those that were seen first first.
func (s *statuses) entries(w *desk.Waiting, common string) []view.Entry {
	w.Sort()
	all := make([]view.Entry, 0, len(w.Keys))
	for keys := range slices.Chunk(w.Keys, entriesAtOnce) {
		s.use(func(d *desk.Desk) { all = append(all, d.Overview.Entries(keys, w, common)...) })
	}
	slices.SortStableFunc(all, func(x, y view.Entry) int { return x.FirstSeen.Compare(y.FirstSeen) })
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
