// Package reasons has the reason codes for which a query is not rewritten, as data. Package rewrite, which gives them,
// depends on the SQL parser; what counts or explains them must not.
package reasons

// Reason is the reason code of a refusal, from a fixed list, fit for a metric label.
type Reason string

// All reasons. [All] returns them as a list.
const (
	InvalidEncoding     Reason = "invalid_encoding"     // a NUL byte, text that is not UTF-8, or a client_encoding other than UTF8
	TooLarge            Reason = "too_large"            // too many bytes or tokens
	TooDeep             Reason = "too_deep"             // too many nested levels or comments, or too long a run of operator characters, for the parser
	Unparseable         Reason = "unparseable"          // not a statement of the parser's grammar
	Empty               Reason = "empty"                // no statement
	MultipleStatements  Reason = "multiple_statements"  // more than one statement
	NotSelect           Reason = "not_select"           // neither SELECT, VALUES, TABLE nor a statement that runs one of these; or it ran none
	Explain             Reason = "explain"              // EXPLAIN without ANALYZE runs no query
	Wrapper             Reason = "wrapper"              // a statement whose query is not known, or not one query
	IndirectUse         Reason = "indirect_use"         // runs a DP function on a protected table, and is no query that can be audited
	OtherDatabase       Reason = "other_database"       // the session is connected to another database than that of the protected tables
	SideEffects         Reason = "side_effects"         // writes, locks, sleeps or changes its session
	NoProtectedTable    Reason = "no_protected_table"   // reads no protected table
	SystemCatalogOnly   Reason = "system_catalog_only"  // reads only system catalogs
	SystemCatalog       Reason = "system_catalog"       // reads protected tables and a catalog that describes tables
	SystemColumn        Reason = "system_column"        // tableoid, ctid, xmin, ...: the values differ between any two copies
	SessionDependent    Reason = "session_dependent"    // depends on the user, role, schema or database of the session
	SettingsUncertain   Reason = "settings_uncertain"   // the meaning of a name or claim depends on settings that are not known
	AmbiguousName       Reason = "ambiguous_name"       // a name that may refer to several relations
	TempTable           Reason = "temp_table"           // a temporary table, which a replay cannot see
	UnknownTable        Reason = "unknown_table"        // neither protected nor public
	NoCopy              Reason = "no_copy"              // depends on protected tables, and a neighbour has no correct copy
	ResolvesDifferently Reason = "resolves_differently" // a function, operator or type that refers to another one in the shadow database
	UnknownFunction     Reason = "unknown_function"     // neither built in nor declared safe
	UnsafeFunction      Reason = "unsafe_function"      // built in, but depends on names, catalogs, files or the session
	NameInString        Reason = "name_in_string"       // a string that is used as a name, or may be and contains the name of a protected table
	RowType             Reason = "row_type"             // the row type of a protected table
	Parameter           Reason = "unsupported_param"    // a parameter without a bound value, or of a user-defined or reg* type
	UnsupportedNode     Reason = "unsupported_node"     // syntax that package rewrite does not support
	BadClaim            Reason = "bad_claim"            // a claim that is negative, too large or no expression of constants
	VerifyFailed        Reason = "verify_failed"        // the rewritten text differs from the original by more than the schemas
	Internal            Reason = "internal"             // an internal error of package rewrite
)

// All returns every Reason, in a fixed order, so that metrics can be registered before the first refusal.
func All() []Reason {
	return []Reason{
		InvalidEncoding, TooLarge, TooDeep, Unparseable, Empty, MultipleStatements, NotSelect, Explain, Wrapper,
		IndirectUse, OtherDatabase, SideEffects, NoProtectedTable, SystemCatalogOnly, SystemCatalog,
		SystemColumn, SessionDependent, SettingsUncertain, AmbiguousName, TempTable,
		UnknownTable, NoCopy, ResolvesDifferently, UnknownFunction, UnsafeFunction, NameInString, RowType, Parameter,
		UnsupportedNode, BadClaim, VerifyFailed, Internal,
	}
}

// NotDP reports whether a statement that is refused for a reason is no DP query.
func NotDP(r Reason) bool {
	switch r {
	case NoProtectedTable, SystemCatalogOnly, NotSelect, Explain, Empty:
		return true
	}
	return false
}
