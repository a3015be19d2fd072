// Package rewrite turns a captured query into the same query on a neighbouring copy of the data, or refuses it.
//
// In: a capture.Query, and Options that name the protected tables, the public ones and the sources of claims. Out: a
// Plan, which holds the query's claim, the identity of its audit, the protected tables that it reads, and the SQL for
// any neighbour schema; or an *UnsupportedError with a Reason fit for a metric label, the syntax node, the byte offset
// and a remedy.
//
// The package owns parsing with pg_query, the walk over the tree, the identity of queries, and the rewritten text. Its
// inner packages own the resolution of names as on the server (resolve), the rules for what may be replayed (judge),
// and the reading of claims (claim). It does not own the neighbour schemas, connections or the decision whether a query
// is audited. It is pure: no I/O, clock, logger or randomness. A Rewriter is safe for concurrent use.
//
// # How a name is rewritten
//
// Only the schema of a relation changes, never its name, so that t.x, whole-row t and (t).x keep their meaning. The
// schema is spliced into the client's own text at the byte offsets of the syntax tree: comments and hints stay, and no
// deparser can introduce errors. The result is parsed again and compared with the tree of the original in which exactly
// those names are changed; any other difference is refused (verify_failed).
//
//	FROM transactions         -> FROM "d0".transactions
//	public.transactions.spent -> "d0".transactions.spent
//	FROM stores (public)      -> FROM "public".stores
//	public.headcount()        -> "d0".headcount(), if it reads transactions and every neighbour has a correct copy
//
// The scope of WITH is that of PostgreSQL: only an unqualified name can refer to a CTE; without RECURSIVE a CTE sees
// its earlier siblings and the outer levels, with RECURSIVE all siblings and itself; an inner WITH shadows an outer
// one.
//
// # What is known and what is assumed
//
// The query within COPY (query) TO STDOUT and DECLARE CURSOR FOR query is treated as the statement.
//
// Functions, operators and types keep their names and are found by Plan.SearchPath. With both catalogs each is looked
// up in both databases, and refused if it refers to something else in the shadow database.
//
// Options.Source and Options.Shadow are catalogs, as data; a reader elsewhere does the I/O. With them, names are
// resolved as on the server, and views, partitions and functions over protected tables are checked by what they and
// their copies read. Without them, the assumptions are: Options.Protected, Public and Others are all relations of every
// schema that they mention; the schema with the user's name holds none of these unless it is listed; an unqualified
// built-in function is the built-in one; x.f is a column of x, not a call of a user-defined function f(x); and copies
// read only their own schema. In either case a session is assumed to have no temporary table unless capture.Query.Doubt
// says otherwise. Plan.Assumed lists the assumptions of a plan. If they are not enough to resolve a query, it is
// refused.
//
// # Hostile input
//
// Text that is not UTF-8, too long or of too many tokens is refused before it is parsed: libpg_query can crash on some
// statements of many thousand terms, and recover does not help. Run Analyze in a process that may crash.
package rewrite
