// Package hoist splits a query into what every trial would compute alike and what draws chance.
//
// In: one world's SQL, already rewritten to a neighbour's schema, and Knowledge of the functions, operators and relations
// of the database that it runs in. Out: a Plan, which holds queries to materialise once (Pieces) and the query that
// reads their tables (Rest); or a reason why there is nothing to gain. It is pure: it asks no database itself.
//
// # What is materialised
//
// A unit is a CTE, a sub-query in FROM, or a sub-query in an expression. It is stable when it calls no volatile function, samples no
// table, locks no row and reads no volatile CTE or relation. The largest stable units that the volatile part reads become
// pieces; what only pieces read is computed within them. In a query that draws noise above an aggregation,
//
//	SELECT g, sum(x) + laplace(1) FROM t GROUP BY g
//
// everything below the volatile calls is a piece (SELECT g, sum(x) FROM t GROUP BY g) and the rest applies the volatile
// expressions to its rows. That is the same where every volatile function is a plain one, neither an aggregate nor
// set-returning, and occurs only above the aggregation.
//
// # What it rests on
//
// A function counts as volatile when Knowledge says so, when Knowledge does not know it, or when it tells the time. A
// sub-query in an expression may read columns of the query around it; the tree cannot tell. Such a plan is marked Unsure: it holds
// if every piece is a valid query by itself, since names are looked up inside first. The server says whether it is.
// The order of rows that no ORDER BY fixes is not part of a query's meaning: a piece may give another one.
//
// Texts are written from the changed tree, parsed again and compared with it; a text that differs is refused.
package hoist
