package rewrite_test

import (
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// reasonTexts returns what each reason means and its remedy, "" if there is none, for the table in the manual.
func reasonTexts() map[rewrite.Reason][2]string {
	return map[rewrite.Reason][2]string{
		reasons.InvalidEncoding:     {"a NUL byte, text that is not UTF-8, or a client_encoding other than UTF8", "set client_encoding to UTF8 in the client"},
		reasons.TooLarge:            {"the statement has too many bytes or tokens", "`proxy.max_statement`"},
		reasons.TooDeep:             {"more than 1,000 nested levels of parentheses, operators, CASE, joins or set operations, 100 nested comments, or 64 operator characters in a row: the parser could take minutes or crash", "use fewer levels"},
		reasons.Unparseable:         {"not a statement of the grammar that the parser supports (PostgreSQL 16)", ""},
		reasons.Empty:               {"the text contains no statement", ""},
		reasons.MultipleStatements:  {"the text contains several statements (the proxy splits those that it captures)", "send them one by one"},
		reasons.NotSelect:           {"neither SELECT, VALUES nor TABLE, nor a statement that runs one of these; or the statement ran none: PREPARE, FETCH, CREATE VIEW, WITH NO DATA, IF NOT EXISTS of a table that exists", "a cursor's query is audited when its rows are read, and a statement that was prepared through the proxy when EXECUTE runs"},
		reasons.Explain:             {"EXPLAIN without ANALYZE runs no query", "plans show estimates from statistics of the true rows: let the engine reject EXPLAIN"},
		reasons.Wrapper:             {"the query that the statement runs is not known, or not one query: EXECUTE of a statement that was not captured, REFRESH MATERIALIZED VIEW without `privacy.catalog`, COPY of a table, an INSERT with a subquery in RETURNING or ON CONFLICT, or with two WITH clauses that cannot be joined", "`privacy.catalog`; write one query"},
		reasons.IndirectUse:         {"the statement runs a declared DP function and reads a protected table, and is no query that can be audited: DO, UPDATE, MERGE, CALL, `query_to_xml('...')`, or through a default, trigger, rule, policy, constraint, index, operator, cast or domain; an INSERT with a query runs more than that query, in RETURNING or so; an expression that EXPLAIN computes", "call the function in a SELECT on the table"},
		reasons.OtherDatabase:       {"the session is connected to another database than that of the protected tables", "`privacy.database`"},
		reasons.SideEffects:         {"the statement writes, locks, sleeps or changes its session: FOR UPDATE, a WITH query that changes data, nextval, advisory locks, dblink, ...", "some functions can be declared in `claims.safe_functions`"},
		reasons.NoProtectedTable:    {"the query reads no protected table, so there is nothing to audit", "`privacy.protected`"},
		reasons.SystemCatalogOnly:   {"the query reads only system catalogs, so there is nothing to audit", ""},
		reasons.SystemCatalog:       {"the query reads protected tables and a catalog that describes tables, whose contents differ in a replay", ""},
		reasons.SystemColumn:        {"ctid, xmin, tableoid, ...: their values differ between any two copies", ""},
		reasons.SessionDependent:    {"the result depends on the user, role, schema or database of the session: current_user, row level security", ""},
		reasons.SettingsUncertain:   {"a name, the claim or a function depends on a setting that the session may have changed unseen, or standard_conforming_strings is off", "set it again after calls of functions that change it; give the claim in a comment or an argument; qualify names with their schema"},
		reasons.AmbiguousName:       {"a name that may refer to several relations", "`privacy.catalog`, or `privacy.database` for names with a database"},
		reasons.TempTable:           {"a temporary table, which a replay cannot see", ""},
		reasons.UnknownTable:        {"a relation that is neither protected nor public", "`privacy.protected`, `privacy.public`"},
		reasons.NoCopy:              {"a view, partition, inheritance child or function over protected tables without a correct copy on every neighbour, a listed relation whose copy reads other schemas, or a column that the engine masks and a copy does not", "create it in `shadow.d0` and each schema of `shadow.d1`, so that it reads only the tables of that schema; for a masked column, put the same security label on its copies"},
		reasons.ResolvesDifferently: {"a function, operator or type whose name refers to another one in the shadow database, or has other overloads there", "create the same ones in the same schemas of the shadow database; `shadow.search_path`"},
		reasons.UnknownFunction:     {"a function, or the function of an operator, type or cast, that is neither declared safe nor in the list of built-in ones that dpwatch knows (those of PostgreSQL 15, and many of 16 to 18)", "`claims.safe_functions`, or `claims.functions` if it takes the epsilon"},
		reasons.UnsafeFunction:      {"a built-in function that depends on names, catalogs, files or the session: currval, pg_relation_size, query_to_xml, ...", ""},
		reasons.NameInString:        {"a string that is used as the name of an object (regclass), or that contains a protected table's name in the arguments of a function", "name the table in FROM"},
		reasons.RowType:             {"the row type of a protected table, used as a type", ""},
		reasons.Parameter:           {"a parameter without a bound value, or with a user-defined or reg* type", "cast it in the statement"},
		reasons.UnsupportedNode:     {"syntax that dpwatch does not support", "report it as a missing feature"},
		reasons.BadClaim:            {"a claim that is negative, too large or not a constant", "correct the claim; `claims.trust`, `claims.functions`"},
		reasons.VerifyFailed:        {"the rewritten text differs from the original by more than the schemas", "report it as a bug"},
		reasons.Internal:            {"an internal error of the rewriter", "report it as a bug"},
	}
}
