// Package replay runs one query again and again on the neighbouring datasets D0 and D1.
//
// It owns the sessions to the shadow database, the read-only sandbox, the interleaving of the two worlds
// and the reading of results. It does not know where the query came from nor what its outcomes mean.
// In: a Statement, which is the query's text for each world with the client's parameters. Out: pairs of
// outcome.Outcome.
//
// A trial is one execution in a transaction of its own (the implicit one, read-only by
// default_transaction_read_only), parsed and planned anew, so that nothing a plan froze is carried over.
// Every outcome counts: an error, a timeout and an oversized result are outcomes, not faults. Faults are what
// says nothing about the query: the database is away (Transient), or the copies are not what the query needs
// (SetupError).
package replay
