// Package finding decides what is said of a finding everywhere: its kind, its severity, and whether a violation is
// open.
//
// The log, metrics, messages to receivers, pages, the configuration and the ledger use these words. It imports nothing
// of this module.
package finding

import "math"

// Kind is what a finding reports.
type Kind string

// The kinds of findings.
const (
	Violation        Kind = "violation"         // a query leaks more than it claims
	FloatingPoint    Kind = "floating_point"    // a violation that nothing but the lowest bits of numbers shows
	Unconfirmed      Kind = "unconfirmed"       // trials show a violation, which fresh trials have not confirmed yet
	Deterministic    Kind = "deterministic"     // a violation without any epsilon: the answers never vary, and differ between neighbouring datasets
	CopiesDiffer     Kind = "copies_differ"     // answers differ between D0 and its twin, so that a violation has no verdict
	SessionEnds      Kind = "session_ends"      // trials end their session on one copy alone, which more of them would not confirm without harm
	EngineDrift      Kind = "engine_drift"      // production has another definition of a function than the shadow database
	BudgetExceeded   Kind = "budget_exceeded"   // the answers to an analyst claim more than a budget of the configuration
	UnclaimedRead    Kind = "unclaimed_read"    // a client reads a protected table without a claim and without a DP function
	CoverageLow      Kind = "coverage_low"      // few of the distinct DP queries have an audit
	AuditorUnhealthy Kind = "auditor_unhealthy" // the ledger, the shadow database or the workers are away
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Violation, Unconfirmed, Deterministic, FloatingPoint, CopiesDiffer, SessionEnds, EngineDrift, BudgetExceeded, UnclaimedRead, CoverageLow, AuditorUnhealthy}
}

// OfViolation returns the kind of a violation with a lower bound: Deterministic if that is NaN. floating reports that
// nothing but the lowest bits of numbers shows it.
func OfViolation(lower float64, floating bool) Kind {
	switch {
	case math.IsNaN(lower):
		return Deterministic
	case floating:
		return FloatingPoint
	}
	return Violation
}

// IsViolation reports whether k is one of the kinds of violations.
func (k Kind) IsViolation() bool { return k == Violation || k == Deterministic || k == FloatingPoint }

// Passing reports whether findings of the kind are about single events: no finding ends them.
func (k Kind) Passing() bool {
	return k == CopiesDiffer || k == SessionEnds || k == EngineDrift || k == BudgetExceeded || k == UnclaimedRead
}

// Severity returns the severity of all findings of the kind; "" for those whose severity depends on their size: see
// Scale. That of FloatingPoint does not: an attacker needs the answer with all of its digits, whatever the bound.
func (k Kind) Severity() Severity {
	switch k {
	case Violation, Deterministic:
		return ""
	case Unconfirmed:
		return Info
	case BudgetExceeded:
		return Error
	case AuditorUnhealthy:
		return Critical
	}
	return Warning
}

// Status is the status of a violation.
type Status string

// The statuses of a violation. SQL has the same words: see internal/ledger/violation.go.
const (
	None     Status = ""         // there is no violation
	Open     Status = "open"     // it sends alerts
	Accepted Status = "accepted" // an operator accepts it until a date or another engine
	Resolved Status = "resolved" // a later engine does not have it any more
)

// StatusOf returns the status of a violation that there is, that was resolved, or that there never was, and whose
// acceptance is in force or not.
func StatusOf(violation, resolved, accepted bool) Status {
	switch {
	case violation && accepted:
		return Accepted
	case violation:
		return Open
	case resolved:
		return Resolved
	}
	return None
}
