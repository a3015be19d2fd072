// Package hoist splits a query into a deterministic part, which gives the same result in every trial, and a random
// part.
//
// In: one world's SQL, already rewritten to a neighbour's schema, and Knowledge of the functions, operators and
// relations of its database. Out: a Plan, which holds queries to materialize once (Pieces) and the query that reads
// their tables (Rest); or the reason why nothing can be hoisted. The package is pure: it sends no queries to a
// database.
//
// # Terms
//
// A query, a part of one, or a relation varies if its result may differ between two trials; otherwise it is
// deterministic. It is volatile if its result may differ between two evaluations within one statement, like a function
// that is declared VOLATILE. random() varies and is volatile; now() varies and is not volatile.
//
// # What is materialized
//
// CTEs, subqueries in FROM, and subqueries in expressions can be hoisted. One that calls a function that varies,
// samples a table without REPEATABLE, locks rows, or reads a CTE or relation that varies is left in the random part.
// The largest deterministic ones that the random part reads become pieces; the CTEs that only pieces read are computed
// within them. In a query that adds noise to the result of an aggregation,
//
//	SELECT g, sum(x) + laplace(1) FROM t GROUP BY g
//
// everything below the noise is a piece (SELECT g, sum(x) FROM t GROUP BY g), and the rest evaluates the random
// expressions for each of its rows. The result is the same if no function that varies is an aggregate or set-returning,
// and all of them are called above the aggregation.
//
// # Assumptions
//
// A function is taken to vary if Knowledge declares it volatile or does not contain it, or if it returns the current
// time.
//
// A subquery in an expression may read columns of the enclosing query; the syntax tree does not show which. The plan
// then has MayCorrelate set. It is correct if the server accepts every piece as a query: inner names are resolved
// before outer ones, so that a name which is valid alone has the same meaning in the subquery.
//
// Split does not know how the server executes a query. Before a plan is used, Shape.Difference compares what the server
// does with volatile functions in the whole query and in the random part.
//
// The order of rows without ORDER BY is not part of a query's meaning: a piece may return its rows in another order.
//
// SQL text is deparsed from the changed tree, parsed again and compared with the tree; if the trees differ, Split
// returns an error.
package hoist
