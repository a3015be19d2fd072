// Package schedule decides which queries are audited and which audit has the next turn.
//
// It owns the fairness rules: how places among the audits are shared by users and by shapes of queries, which audit is
// evicted for another, and the order of turns. It is pure: it has no clock, no goroutines and no knowledge of SQL,
// replays or statistics. In: what an Audit is asked for and what its evidence looks like. Out: admissions, evictions,
// and the next audit to run. docs/scheduling.md explains the rules to operators.
package schedule
