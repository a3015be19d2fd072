// Package schedule decides which queries are audited and which audit has the next turn.
//
// It owns the fairness rules: how users and shapes of queries share the places, which audit is evicted for another, and
// the order of turns. It is pure: no clock, no goroutines, no SQL, replays or statistics. In: how often an Audit's
// query is run and the state of its evidence. Out: admissions, evictions, and the next audit to run. docs/scheduling.md
// explains the rules to operators.
package schedule
