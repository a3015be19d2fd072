package ledger

import "github.com/dpwatch/dpwatch/internal/finding"

// What the words of package finding mean in SQL, for a row a of audits.
const (
	// violates: the audit has a violation, of its present evidence or of an earlier engine, that is not resolved.
	violates = "(a.verdict = 'violation' OR a.violation IS NOT NULL)"
	// decisions has for each query the last action that concerns its acceptance. An acceptance is in force until the
	// time until; if the engine changes before, the auditor adds an action.
	decisions = "(SELECT DISTINCT ON (query) * FROM actions WHERE action NOT IN ('reproduce', 'reaudit') ORDER BY query, id DESC)"
	// accepted are the queries whose violation is accepted, if they have one.
	accepted = "(SELECT d.query FROM " + decisions + " d WHERE d.action = 'accept' AND d.until > now())"
	// violationStatus is the finding.Status of a row a with the row c of accepted, or NULL without a violation.
	violationStatus = "CASE WHEN " + violates + " THEN CASE WHEN c.query IS NULL THEN '" + string(finding.Open) + "' ELSE '" + string(finding.Accepted) + "' END END"
)
