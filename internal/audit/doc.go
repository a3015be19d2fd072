// Package audit is the one place that sees every stage: it takes captured queries, asks rewrite what they claim
// and how they read on the neighbours, replays them, hands the outcomes to analysis, and reports what was found.
//
// It owns which queries are audited, in what order, and what is told about them. It does no statistics, no SQL and
// no protocol of its own. In: capture.Query values (Submit). Out: Status at any time, an alert.Finding a violation.
//
// Posture: closed for verdicts. What could not be audited is counted by reason and shown, never called safe.
package audit
