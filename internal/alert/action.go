package alert

import (
	"fmt"

	"github.com/dpwatch/dpwatch/internal/finding"
)

// action returns what to do about the finding. docs/alerts.md says more.
func (f *Finding) action() string {
	switch f.Kind {
	case finding.Violation, finding.Deterministic, finding.FloatingPoint:
		first := ""
		if c := f.Change; c != nil && len(c.Functions) > 0 {
			first = "Compare the changed function with its former definition. "
		}
		last := ""
		if f.Resolving > 0 {
			last = fmt.Sprintf(" After a repair the alert ends when %d pairs of trials, or fewer if they would have found the bound, show no evidence.", f.Resolving)
		}
		return first + "Run dpwatch explain " + f.ID + " for the evidence and the probable cause. Stop the query or raise its claim until the engine is repaired; dpwatch audits accept " + f.ID + " silences it." + last
	case finding.Unconfirmed:
		return "No action is needed yet: another message follows if fresh trials confirm it."
	case finding.CopiesDiffer:
		return "Run dpwatch explain " + f.ID + " for what differs, and dpwatch neighbours verify. Find what holds noise that was drawn once for each copy (a materialised view, a table, a cache), and audit the query that draws it."
	case finding.SessionEnds:
		return "Find in the engine's functions what terminates or crashes the backend, and on which rows it depends; the server's log has the crash. The query is audited again when its functions change, or when you ask for it on its page."
	case finding.EngineDrift:
		return "Install production's definition of " + f.Function + " in the shadow database."
	case finding.BudgetExceeded:
		return "Run dpwatch budgets to see who received what, and find out why the engine did not stop."
	case finding.UnclaimedRead:
		return "Revoke the user's right to read the table, route the client through the engine, or add a rule to privacy.unclaimed_reads."
	case finding.CoverageLow:
		return "Run dpwatch coverage to see why queries are not audited; raise audit.max_audits, audit.memory, the budget of replays, or the number of workers."
	case finding.AuditorUnhealthy:
		return "Run dpwatch status; the log has the cause. Traffic is not affected, but violations are not found meanwhile."
	}
	return ""
}

// page returns the path of the page that shows the finding.
func (f *Finding) page() string {
	switch {
	case f.ID != "":
		return "/queries/" + f.ID
	case f.Kind == finding.BudgetExceeded:
		return "/budgets"
	case f.Kind == finding.UnclaimedRead, f.Kind == finding.CoverageLow:
		return "/coverage"
	}
	return "/"
}
