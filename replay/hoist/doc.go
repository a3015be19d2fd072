// Package hoist splits a query into a deterministic part, which gives the same result in every trial, and a random part.
//
// In: one world's SQL, already rewritten to a neighbour's schema, and Knowledge of the functions, operators and relations
// of its database. Out: a Plan, which holds queries to materialise once (Pieces) and the query that reads their tables
// (Rest); or the reason why there is nothing to gain. The package is pure: it sends no queries to a database.
//
// # What is materialised
//
// A unit is a CTE, a subquery in FROM, or a subquery in an expression. It is stable if it calls no volatile function,
// samples no table, locks no row and reads no volatile CTE or relation. The largest stable units that the volatile part
// reads become pieces; what only pieces read is computed within them. In a query that draws noise above an aggregation,
//
//	SELECT g, sum(x) + laplace(1) FROM t GROUP BY g
//
// everything below the volatile calls is a piece (SELECT g, sum(x) FROM t GROUP BY g), and the rest applies the volatile
// expressions to its rows. The result is the same if every volatile function is a plain one, neither an aggregate nor
// set-returning, and occurs only above the aggregation.
//
// # What it assumes
//
// A function counts as volatile if Knowledge declares it so or does not contain it, or if it returns the time. A subquery
// in an expression may read columns of the enclosing query; the syntax tree does not show it. Such a plan is marked Unsure:
// it is correct if every piece is a valid query when it stands alone, because names are resolved inside first. The server
// decides that. The order of rows that no ORDER BY fixes is not part of a query's meaning: a piece may return another
// order.
//
// SQL text is deparsed from the changed tree, parsed again and compared with the tree; a text that differs is rejected.
package hoist
