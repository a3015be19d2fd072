package records

import (
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Class is what became of a statement.
type Class string

// The classes of statements.
const (
	classAudited   Class = "audited"
	classProgress  Class = "in_progress"
	classWaiting   Class = "waiting"
	classNoPlace   Class = "no_place"
	classUnclaimed Class = "no_claim"
	classRefused   Class = "refused"
	classLost      Class = "lost"
	classOther     Class = "not_dp"
)

// Audited reports whether the statements are executions of audited queries.
func (c Class) Audited() bool { return c == classAudited }

func classes() []Class {
	return []Class{classAudited, classProgress, classWaiting, classNoPlace, classUnclaimed, classRefused, classLost, classOther}
}

// Title returns what people read.
func (c Class) Title() string {
	switch c {
	case classAudited:
		return "audited"
	case classProgress:
		return "being audited"
	case classWaiting:
		return "waiting"
	case classNoPlace:
		return "no place for an audit"
	case classUnclaimed:
		return "without a claim"
	case classRefused:
		return "refused"
	case classLost:
		return "not captured or lost"
	case classOther:
		return "not a DP query"
	}
	return string(c)
}

// classOfQuery returns the class of statements whose query has an audit, by its verdict or state.
func classOfQuery(outcome string) Class {
	switch outcome {
	case ledger.Unplaced:
		return classNoPlace
	case ledger.Unclaimed:
		return classUnclaimed
	case ledger.Untestable:
		return classRefused
	case ledger.Untried, string(read.Waiting):
		return classWaiting
	case string(read.Running), string(read.Unconfirmed), string(read.Measuring):
		return classProgress
	}
	return classAudited
}

// classOfReason returns the class of statements that are not audited.
func classOfReason(reason string) Class {
	if reason == reasonUnprotected || reasons.NotDP(reasons.Reason(reason)) {
		return classOther
	}
	switch reason {
	case string(schedule.TooManyAudits), string(schedule.ShapeSampled):
		return classNoPlace
	case "unclaimed_read":
		return classUnclaimed
	case "backlog", "claim_not_evaluated", "client_encoding", "standard_conforming_strings", "too_long", "over_budget", "unknown_statement", "unreadable", "arguments", "function_call",
		ReasonQueueFull, ReasonAuditorEnded, ReasonSetAside, ReasonNotFollowed, keep.NotRecorded:
		return classLost
	}
	return classRefused
}

// Reasons of the relay for which a statement is not sent to the auditor, besides those of status.SkippedStatements.
const (
	reasonUnprotected  = "unprotected" // of status.SkippedStatements
	ReasonQueueFull    = "queue_full"
	ReasonAuditorEnded = "auditor_ended"
	ReasonSetAside     = "set_aside"
	ReasonNotFollowed  = "session_not_followed" // sessions, not statements
)

// remedies returns what to do about statements that are not audited, by reason.
func remedies() map[string]string {
	const clients, manual, bug = "change the client's statement: see the examples", "docs/rewriting.md", "report it as a bug"
	return map[string]string{
		"violation":                         "dpwatch audits list --verdict violation",
		"inconclusive":                      "dpwatch audits list --verdict inconclusive",
		ledger.Untried:                      "wait, or raise audit.workers",
		string(read.Waiting):                "dpwatch audits list --state waiting: why it cannot be replayed; dpwatch doctor",
		ledger.Untestable:                   "dpwatch audits list --verdict inconclusive: the reason; raise audit.max_trials",
		ledger.Unclaimed:                    "give the query a claim: claims.rules, claims.default",
		string(schedule.TooManyAudits):      "raise audit.max_audits and audit.memory",
		string(schedule.ShapeSampled):       "check which user sends so many constants",
		"unclaimed_read":                    "it reads the data itself: privacy.unclaimed_reads",
		"backlog":                           "check which user sends so many different statements",
		ReasonQueueFull:                     "check which user sends so many statements",
		ReasonAuditorEnded:                  "see the log for why the auditor ended",
		ReasonSetAside:                      "see the log: the statement ended the auditor",
		ReasonNotFollowed:                   "sessions, each with an unknown number of statements: see dpwatch status and the log",
		keep.NotRecorded:                    "see ledger in dpwatch status",
		"client_encoding":                   "set client_encoding to UTF8 in the client",
		"standard_conforming_strings":       "set standard_conforming_strings to on in the client",
		"too_long":                          "raise proxy.max_statement",
		"over_budget":                       "send fewer statements before the answers are read",
		"unknown_statement":                 "prepared before the capture began: reconnect the client; a cursor that a function opened: declare it in the client",
		"function_call":                     "call the function in a SELECT (libpq: not by PQfn)",
		"arguments":                         "use plain literals in EXECUTE, and built-in types of parameters",
		string(reasons.TooLarge):            "raise proxy.max_statement",
		string(reasons.IndirectUse):         "call the DP function in a SELECT on the protected table; the examples and the log say how it is used",
		string(reasons.OtherDatabase):       "check privacy.database",
		string(reasons.UnknownTable):        "list the table in privacy.protected or privacy.public; the examples and the log name it",
		string(reasons.UnknownFunction):     "list the function in claims.safe_functions or claims.functions; the examples and the log name it",
		string(reasons.NoCopy):              "create the relation in every copy, or dpwatch neighbours create --replace; the examples and the log name it",
		string(reasons.ResolvesDifferently): "create the same functions and types in the shadow database",
		string(reasons.SettingsUncertain):   "the examples name the setting and what may have changed it: set it again after that, or DISCARD ALL",
		string(reasons.AmbiguousName):       "set privacy.catalog",
		string(reasons.BadClaim):            "correct the claim",
		"claim_not_evaluated":               "the shadow database evaluates claims that are expressions: see shadow in dpwatch status",
		string(reasons.SideEffects):         clients, string(reasons.SystemColumn): clients, string(reasons.UnsafeFunction): clients,
		string(reasons.NameInString): clients, string(reasons.RowType): clients, string(reasons.TempTable): clients,
		string(reasons.SystemCatalog): clients, string(reasons.SessionDependent): clients, string(reasons.Parameter): clients,
		string(reasons.InvalidEncoding): clients, string(reasons.TooDeep): clients, string(reasons.MultipleStatements): clients,
		string(reasons.Wrapper): manual, string(reasons.UnsupportedNode): manual, string(reasons.Unparseable): manual,
		string(reasons.VerifyFailed): bug, string(reasons.Internal): bug, "internal_error": bug, "other": bug, "unreadable": bug,
	}
}
