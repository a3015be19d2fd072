package rewrite_test

import "github.com/dpwatch/dpwatch/rewrite"

// reasonTexts returns what each reason means and its remedy, "" if there is none, for the table in the manual.
func reasonTexts() map[rewrite.Reason][2]string {
	return map[rewrite.Reason][2]string{
		rewrite.ReasonInvalidEncoding:     {"a NUL byte, text that is not UTF-8, or a client_encoding other than UTF8", "set client_encoding to UTF8 in the client"},
		rewrite.ReasonTooLarge:            {"the statement has too many bytes or tokens", "`proxy.max_statement`"},
		rewrite.ReasonTooDeep:             {"more than 1,000 nested levels of parentheses, operators, CASE, joins or set operations, 100 nested comments, or 64 operator characters in a row: the parser could take minutes or crash", "use fewer levels"},
		rewrite.ReasonUnparseable:         {"not a statement of the grammar that the parser supports (PostgreSQL 16)", ""},
		rewrite.ReasonEmpty:               {"the text contains no statement", ""},
		rewrite.ReasonMultipleStatements:  {"the text contains several statements (the proxy splits those that it captures)", "send them one by one"},
		rewrite.ReasonNotSelect:           {"neither SELECT, VALUES nor TABLE, nor a statement that runs one of these; or the statement ran none: PREPARE, FETCH, CREATE VIEW, WITH NO DATA, IF NOT EXISTS of a table that exists", "a cursor's query is audited when DECLARE runs, and a statement that was prepared through the proxy when EXECUTE runs"},
		rewrite.ReasonExplain:             {"EXPLAIN without ANALYZE runs no query", "plans show estimates from statistics of the true rows: let the engine reject EXPLAIN"},
		rewrite.ReasonWrapper:             {"the query that the statement runs is not known, or not one query: EXECUTE of a statement that was not captured, REFRESH MATERIALIZED VIEW without `privacy.catalog`, COPY of a table, an INSERT with a subquery in RETURNING or ON CONFLICT, or with two WITH clauses that cannot be joined", "`privacy.catalog`; write one query"},
		rewrite.ReasonOtherDatabase:       {"the session is connected to another database than that of the protected tables", "`privacy.database`"},
		rewrite.ReasonSideEffects:         {"the statement writes, locks, sleeps or changes its session: FOR UPDATE, a WITH query that changes data, nextval, advisory locks, dblink, ...", "some functions can be declared in `claims.safe_functions`"},
		rewrite.ReasonNoProtectedTable:    {"the query reads no protected table, so there is nothing to audit", "`privacy.protected`"},
		rewrite.ReasonSystemCatalogOnly:   {"the query reads only system catalogs, so there is nothing to audit", ""},
		rewrite.ReasonSystemCatalog:       {"the query reads protected tables and a catalog that describes tables, whose contents differ in a replay", ""},
		rewrite.ReasonSystemColumn:        {"ctid, xmin, tableoid, ...: their values differ between any two copies", ""},
		rewrite.ReasonSessionDependent:    {"the result depends on the user, role, schema or database of the session: current_user, row level security", ""},
		rewrite.ReasonSettingsUncertain:   {"a name, the claim or a function depends on a setting that the session may have changed unseen, or standard_conforming_strings is off", "set it again after calls of functions that change it; give the claim in a comment or an argument; qualify names with their schema"},
		rewrite.ReasonAmbiguousName:       {"a name that may refer to several relations", "`privacy.catalog`, or `privacy.database` for names with a database"},
		rewrite.ReasonTempTable:           {"a temporary table, which a replay cannot see", ""},
		rewrite.ReasonUnknownTable:        {"a relation that is neither protected nor public", "`privacy.protected`, `privacy.public`"},
		rewrite.ReasonNoCopy:              {"a view, partition, inheritance child or function over protected tables without a correct copy on every neighbour, a listed relation whose copy reads other schemas, or a column that the engine masks and a copy does not", "create it in `shadow.d0` and each schema of `shadow.d1`, so that it reads only the tables of that schema; for a masked column, put the same security label on its copies"},
		rewrite.ReasonResolvesDifferently: {"a function, operator or type whose name refers to another one in the shadow database, or has other overloads there", "create the same ones in the same schemas of the shadow database; `shadow.search_path`"},
		rewrite.ReasonUnknownFunction:     {"a function, or the function of an operator, type or cast, that is neither declared safe nor in the list of built-in ones that dpwatch knows (those of PostgreSQL 15, and many of 16 to 18)", "`claims.safe_functions`, or `claims.functions` if it takes the epsilon"},
		rewrite.ReasonUnsafeFunction:      {"a built-in function that depends on names, catalogs, files or the session: currval, pg_relation_size, query_to_xml, ...", ""},
		rewrite.ReasonNameInString:        {"a string that is used as the name of an object (regclass), or that contains a protected table's name in the arguments of a function", "name the table in FROM"},
		rewrite.ReasonRowType:             {"the row type of a protected table, used as a type", ""},
		rewrite.ReasonParameter:           {"a parameter without a bound value, or with a user-defined or reg* type", "cast it in the statement"},
		rewrite.ReasonUnsupportedNode:     {"syntax that dpwatch does not support", "report it as a missing feature"},
		rewrite.ReasonBadClaim:            {"a claim that is negative, too large or not a constant", "correct the claim; `claims.trust`, `claims.functions`"},
		rewrite.ReasonVerifyFailed:        {"the rewritten text differs from the original by more than the schemas", "report it as a bug"},
		rewrite.ReasonInternal:            {"an internal error of the rewriter", "report it as a bug"},
	}
}
