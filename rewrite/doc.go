// Package rewrite turns a captured query into the same query on a neighbouring copy of the data, or refuses it.
//
// In: a capture.Query, and Options that name the protected tables, the public ones and where claims come from.
// Out: a Plan, which holds what the query claims, what identifies its audit, which protected tables it reads, and the
// SQL for any neighbour schema; or an *UnsupportedError with a Reason fit for a metric label, the syntax node, the byte
// offset and what an operator may do about it.
//
// It owns: parsing with pg_query, the resolution of names as the server would do it, the rules for what may be
// replayed, and the reading of claims. It does not own the neighbour schemas, connections or the decision whether a
// query is worth an audit. It is pure: no I/O, clock, logger or chance; a Rewriter may be used by many goroutines.
//
// # How a name is rewritten
//
// Only the schema of a relation changes, never its name, so that t.x, whole-row t and (t).x keep their meaning. The
// schema is spliced into the client's own text at the byte offsets that the syntax tree gives: comments and hints
// stay, and faults of a deparser cannot enter. The result is then parsed again and compared with the tree of the original in
// which just those names are changed; any other difference is refused (verify_failed).
//
//	FROM transactions         -> FROM "d0".transactions
//	public.transactions.spent -> "d0".transactions.spent
//	FROM stores (public)      -> FROM "public".stores
//	public.headcount()        -> "d0".headcount(), when it reads transactions and every neighbour has a right copy
//
// The scope of WITH follows PostgreSQL: only an unqualified name can mean a CTE; without RECURSIVE a CTE sees its
// earlier siblings and the outer levels, with RECURSIVE all siblings and itself; an inner WITH shadows an outer one.
//
// # What is known and what is assumed
//
// The query within COPY (query) TO STDOUT and DECLARE CURSOR FOR query is taken for the statement.
//
// Functions, operators and types keep their names and are found by Plan.SearchPath; with both catalogs each is looked up in either
// database, and refused where it means something else in the shadow database.
//
// Options.Source and Options.Shadow are catalogs, as data; a reader elsewhere does the I/O. With them, names are resolved as
// the server would, and views, partitions and functions over protected tables are judged by what they and their copies
// read. Without, Options.Protected, Public and Others are taken to be all relations of every schema that they mention,
// the schema called like the user to hold none of these unless it is listed, an unqualified built-in function to be the
// built-in one, x.f to be a column of x, not a call of a user's function f(x), and copies to read their own schema alone. In
// either case a session is taken to have no temporary table unless capture.Query.SettingsUncertain says so. Plan.Assumed says which of these a plan rests on. Where that is not enough to be sure, the query is refused.
//
// # Hostile input
//
// Text that is not UTF-8, too long or of too many tokens is refused before the parser sees it: libpg_query can end the
// process on some statements of many thousand terms, which no recover stops. Analyze belongs in a process that may die.
package rewrite
