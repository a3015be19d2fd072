// Package replay runs one query repeatedly on the neighbouring datasets D0, D1, ...
//
// It owns the sessions to the shadow database, the read-only sandbox, the order in which the datasets (called worlds in
// this package) are queried, and the reading of results. It does not depend on the origin of the query or on the
// meaning of its results. In: a Statement, the text of the query for each world with the client's parameters. Out:
// rounds of one outcome.Outcome for each world.
//
// A trial is one execution in a transaction of its own: the implicit transaction of the statement, which
// default_transaction_read_only makes read-only. The planner evaluates functions that are declared IMMUTABLE and puts
// their results into the plan as constants. If such a function draws noise, a plan that is used again repeats one
// random value. So the first session plans the statement several times: if all plans are equal, sessions prepare the
// statement and reuse its plan; otherwise every trial is parsed and planned again.
//
// With Statement.Hoist, a session first computes the deterministic part of the query in temporary tables, and trials
// run only the random part (package replay/hoist). Some trials still run the whole query, and are compared with the
// others to check that both have the same distribution. See docs/hoisting.md.
//
// An error that the query itself raises, a timeout and an oversized result are outcomes: they may depend on the data.
// Errors of the server or of the connection (Transient), and errors which show that the shadow database does not fit
// the query (SetupError: a missing privilege, table or function, a query that writes), are returned as Go errors and
// give no outcome.
package replay
