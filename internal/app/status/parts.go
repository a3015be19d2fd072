package status

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/proxy"
)

// Part is what a status says about one part of a dpwatch.
type Part struct {
	Name, Text string
	Fault      bool // somebody should look at it
}

// parts describes the parts of a dpwatch.
func (s *Snapshot) parts() (all []Part) {
	add := func(fault bool, name, format string, args ...any) {
		all = append(all, Part{name, fmt.Sprintf(format, args...), fault})
	}
	add(s.Relay.Auditor.PID == 0, "auditor", "%s", s.auditorLine())
	p := s.Relay.Proxy
	add(false, "sessions", "%d open, %d since the start", p.OpenSessions, p.Sessions)
	add(p.QueriesDropped > 0, "statements", "%d captured, %d of them dropped", p.QueriesCaptured, p.QueriesDropped)
	for _, r := range s.Relay.Routes {
		if r.Captured != "yes" {
			add(false, "capture", "%s: %s", r.Name, r.Captured)
		}
	}
	if line := unfollowedLine(p); line != "" {
		add(true, "not followed", "%s", line)
	}
	if a := s.auditor; a != nil {
		add(a.Shadow != "", "shadow", "%s", cmp.Or(a.Shadow, "no fault"))
		if p := a.Production; p != nil {
			add(len(p.Differences) > 0, "production", "%s", productionLine(p))
		}
		if a.Catalog != "" {
			add(true, "catalog", "%s", a.Catalog)
		}
		add(a.Ledger == nil || a.Ledger.Trouble != "" || a.Ledger.OtherConfiguration || a.Ledger.Lost > 0, "ledger", "%s", ledgerLine(a.Ledger))
		if a.Turns != nil && (len(a.Workers) > 0 || a.Turns.Delivered+a.Turns.Dropped > 0) {
			add(false, "workers", "%s", workersLine(a))
		}
	}
	add(s.held(), "pace", "%s", s.paceLine())
	if a := s.auditor; a != nil {
		if a.Budget != nil {
			add(false, "replay budget", "%s", budgetLine(a.Budget))
		}
		c := a.Coverage
		add(false, "coverage", "%.3g %% of %.0f distinct DP queries audited; users with audits: %d", 100*c.AuditedQueries, c.Queries, c.Owners)
	}
	add(false, "skipped", "%s", s.skippedLine())
	if a := s.auditor; a != nil {
		add(false, "audits", "%s", statesLine(a.Audits))
		add(len(s.violations()) > 0, "violations", "%s", violationsLine(s.violations()))
		if f := a.FalseAlarms; f != nil {
			add(f.Excessive(), "false alarms", "%s", falseAlarmsLine(f))
		}
		if a.Alerts != nil {
			add(a.Alerts.Late(), "alerts", "%s", alertsLine(a.Alerts))
		}
		for _, b := range a.PrivacyBudgets {
			add(b.Exceeded > 0, "privacy budget "+b.Name, "analysts: %d, of whom %d exceed it; the largest share is %.3g %% (dpwatch budgets)", b.Analysts, b.Exceeded, 100*b.Spent)
		}
		if a.Faults > 0 {
			add(true, "replay faults", "%d batches could not be replayed", a.Faults)
		}
		if len(a.Evicted) > 0 {
			add(false, "evicted", "%s", sumLine(a.Evicted))
		}
		if a.Panics > 0 {
			add(true, "panics", "%d audits ended by an internal error: see the log", a.Panics)
		}
		for _, warning := range a.Warnings {
			add(true, "warning", "%s", warning)
		}
	}
	return all
}

// productionLine says whether the shadow database is like production.
func productionLine(p *view.Production) string {
	switch {
	case !p.Compared:
		return "not compared with the shadow database: " + p.Why
	case len(p.Differences) > 0:
		return "the shadow database differs: " + strings.Join(p.Differences, ", ")
	}
	return "the shadow database is alike"
}

// unfollowedLine names the open sessions whose statements are not captured at present, except those that replicate.
func unfollowedLine(p proxy.Stats) string {
	n := uint64(0)
	for reason, sessions := range p.Unfollowed {
		if reason != "replication" {
			n += sessions
		}
	}
	if n == 0 {
		return ""
	}
	var named []string
	for _, u := range p.UnfollowedSessions {
		if u.Reason != "replication" {
			named = append(named, fmt.Sprintf("session %d of %s (database %s, %s) since %s: %s", u.Session, u.User, u.Database, cmp.Or(u.Application, "no application name"), show.Moment(u.Since), u.Reason))
		}
	}
	return fmt.Sprintf("the statements of %d open sessions are not captured now: %s", n, strings.Join(named, "; "))
}

// held reports whether replays are held or paused.
func (s *Snapshot) held() bool {
	if s.auditor == nil || s.auditor.Pace == nil {
		return s.Relay.Paused
	}
	return s.auditor.Pace.Held != ""
}
