// Package replay runs one query again and again on the neighbouring datasets D0, D1, ...
//
// It owns the sessions to the shadow database, the read-only sandbox, the interleaving of the worlds
// and the reading of results. It does not know where the query came from nor what its outcomes mean.
// In: a Statement, which is the query's text for each world with the client's parameters. Out: rounds, one
// outcome.Outcome a world.
//
// A trial is one execution in a transaction of its own (the implicit one, read-only by
// default_transaction_read_only). Its plan is kept for the next trial of the session where planning again gives the
// same plan; else every trial is parsed and planned anew, so that nothing a plan froze is carried over.
// With Statement.Hoist a session first computes, in temporary tables, what every trial would compute alike, and trials run
// on the rest (package rewrite/hoist); a sample of whole trials proves that the law is the same. See docs/hoisting.md.
//
// Every outcome counts: an error, a timeout and an oversized result are outcomes, not faults. Faults are what
// says nothing about the query: the database is away (Transient), or the copies are not what the query needs
// (SetupError).
package replay
