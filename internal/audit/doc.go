// Package audit connects all stages: it takes captured queries, calls rewrite for their claims and their text on the
// neighbours, replays them, passes the outcomes to analysis, and reports the results.
//
// It owns which queries are audited, in what order, and what is reported about them. It contains no statistics, no SQL
// and no protocol code. In: capture.Query values (Submit). Out: Status at any time, and an alert.Finding for each
// violation.
//
// It fails closed for verdicts: queries that could not be audited are counted by reason and shown, never called safe.
package audit
