package rewrite_test

import "github.com/dpwatch/dpwatch/rewrite"

// reasonTexts returns what each reason means and its remedy, "" if there is none, for the table in the manual.
func reasonTexts() map[rewrite.Reason][2]string {
	return map[rewrite.Reason][2]string{
		rewrite.ReasonInvalidEncoding:     {"a NUL byte, text that is not UTF-8, or a client_encoding other than UTF8", "let clients use client_encoding UTF8"},
		rewrite.ReasonTooLarge:            {"too many bytes or tokens", "`proxy.max_statement`, `audit.max_tokens`"},
		rewrite.ReasonTooDeep:             {"more than 1,000 levels of parentheses, operators, CASE, joins or set operations within each other, 100 comments within comments, or 64 operator characters in a row: the parser could take minutes or end its process", "write it with fewer levels"},
		rewrite.ReasonUnparseable:         {"not a statement of PostgreSQL's grammar as the parser knows it", ""},
		rewrite.ReasonEmpty:               {"no statement", ""},
		rewrite.ReasonMultipleStatements:  {"several statements in one text; the proxy splits what it captures", "send them one by one"},
		rewrite.ReasonNotSelect:           {"neither SELECT, VALUES nor TABLE, nor one of these in COPY (query) TO STDOUT or DECLARE CURSOR", ""},
		rewrite.ReasonExplain:             {"EXPLAIN: the client got a plan, not an answer", "an engine that answers it shows true row counts: forbid it there"},
		rewrite.ReasonWrapper:             {"FETCH, PREPARE, EXECUTE, CREATE TABLE AS, another form of COPY: not the whole answer of a query", "a cursor's query is audited when DECLARE runs; EXECUTE of what was prepared through the proxy is captured as the inner statement"},
		rewrite.ReasonOtherDatabase:       {"the session is in another database than the protected tables", "`privacy.database`"},
		rewrite.ReasonSideEffects:         {"writes, locks, sleeps or changes its session: SELECT INTO, FOR UPDATE, a WITH query that changes data, nextval, advisory locks, dblink, ...", "some functions can be declared in `claims.safe_functions`"},
		rewrite.ReasonNoProtectedTable:    {"reads nothing that the neighbours hold: not audited", "`privacy.protected`"},
		rewrite.ReasonSystemCatalogOnly:   {"reads only system catalogs: not audited", ""},
		rewrite.ReasonSystemCatalog:       {"reads protected tables and a catalog that describes tables, which differs in a replay", ""},
		rewrite.ReasonSystemColumn:        {"ctid, xmin, tableoid, ...: differ between any two copies", ""},
		rewrite.ReasonSessionDependent:    {"depends on the user, role, schema or database of its session: current_user, row level security", ""},
		rewrite.ReasonSettingsUncertain:   {"a name or claim depends on settings that could not be followed, or standard_conforming_strings is off", "qualify names with their schema"},
		rewrite.ReasonAmbiguousName:       {"a name that may mean several relations", "`privacy.catalog`, or `privacy.database` for names with a database"},
		rewrite.ReasonTempTable:           {"a temporary table, which a replay cannot see", ""},
		rewrite.ReasonUnknownTable:        {"a relation that is neither protected nor public", "`privacy.protected`, `privacy.public`"},
		rewrite.ReasonNoCopy:              {"a view, partition, inheritance child or function over protected tables without right copies on every neighbour, or a listed relation whose copy reads elsewhere", "create it in `shadow.d0` and each schema of `shadow.d1`, over that schema's tables alone"},
		rewrite.ReasonResolvesDifferently: {"a function, operator or type whose name means another one in the shadow database, or has other overloads there", "give the shadow database the same ones in the same schemas; `shadow.search_path`"},
		rewrite.ReasonUnknownFunction:     {"a function, or one behind an operator, type or cast, that is neither PostgreSQL's own nor declared safe", "`claims.safe_functions`, or `claims.functions` when it takes the epsilon"},
		rewrite.ReasonUnsafeFunction:      {"PostgreSQL's own, but reads names, catalogs, files or the session: currval, pg_relation_size, query_to_xml, ...", ""},
		rewrite.ReasonNameInString:        {"a string that becomes the name of an object: regclass, or a protected table's name among a function's arguments", "name the table in FROM"},
		rewrite.ReasonRowType:             {"the row type of a protected table, used as a type", ""},
		rewrite.ReasonParameter:           {"a parameter without a value, or of a user-defined or reg* type", "cast it in the statement"},
		rewrite.ReasonUnsupportedNode:     {"syntax that is not known to be safe to replay", "report it"},
		rewrite.ReasonBadClaim:            {"a claim that is negative, absurd or no constant", "correct the claim; `claims.trust`, `claims.functions`"},
		rewrite.ReasonVerifyFailed:        {"the rewritten text does not mean what it should", "report it as a bug"},
		rewrite.ReasonInternal:            {"a fault of the rewriter, caught", "report it as a bug"},
	}
}
