// Package replay runs one query repeatedly on the neighbouring datasets D0, D1, ...
//
// It owns the sessions to the shadow database, the read-only sandbox, the interleaving of the datasets (called worlds in
// this package) and the reading of results. It has no information about the origin of the query or the meaning of its
// outcomes. In: a Statement, the text of the query for each world with the client's parameters. Out: rounds of one
// outcome.Outcome for each world.
//
// A trial is one execution in a transaction of its own (the implicit one; default_transaction_read_only makes it
// read-only). A session reuses the plan for its next trial if planning again gives the same plan. Otherwise every trial is
// parsed and planned again, so that no random value frozen in a plan is reused. With Statement.Hoist a session first
// computes, in temporary tables, the part that is the same in every trial, and trials run only the rest (package
// replay/hoist). A sample of whole trials checks that both have the same distribution. See docs/hoisting.md.
//
// Every outcome counts: an error, a timeout and an oversized result are outcomes, not faults. A fault carries no
// information about the query: the database is unavailable (Transient), or the copies do not fit the query (SetupError).
package replay
