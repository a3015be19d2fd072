package judge

// Reason is the reason code of a refusal, fit for a metric label.
type Reason string

// The reasons of this package; package rewrite explains them.
const (
	ReasonSideEffects         Reason = "side_effects"
	ReasonNoProtectedTable    Reason = "no_protected_table"
	ReasonSystemCatalogOnly   Reason = "system_catalog_only"
	ReasonSystemCatalog       Reason = "system_catalog"
	ReasonSystemColumn        Reason = "system_column"
	ReasonSessionDependent    Reason = "session_dependent"
	ReasonSettingsUncertain   Reason = "settings_uncertain"
	ReasonAmbiguousName       Reason = "ambiguous_name"
	ReasonTempTable           Reason = "temp_table"
	ReasonUnknownTable        Reason = "unknown_table"
	ReasonNoCopy              Reason = "no_copy"
	ReasonResolvesDifferently Reason = "resolves_differently"
	ReasonUnknownFunction     Reason = "unknown_function"
	ReasonUnsafeFunction      Reason = "unsafe_function"
	ReasonNameInString        Reason = "name_in_string"
	ReasonRowType             Reason = "row_type"
	ReasonParameter           Reason = "unsupported_param"
	ReasonUnsupportedNode     Reason = "unsupported_node"
)

// Refusal is why a statement cannot be replayed. No field holds a literal or a parameter.
type Refusal struct {
	Reason Reason
	Node   string // the syntax node; "" for the whole statement
	Detail string // what was found
	Offset int    // byte offset of the node; -1 = not known
	Hint   string // remedy; "" = none

	mayBeProtected bool // the node may refer to a protected table, so the query may be one to audit
}

// usualHints are the hints of refusals without a specific one.
var usualHints = map[Reason]string{
	ReasonSideEffects:     "remove that part: a replay must not write, lock or wait",
	ReasonSystemColumn:    "remove the column: it differs between any two copies of a table",
	ReasonUnsafeFunction:  "remove it, or call it in a separate query: its result differs in a replay",
	ReasonNameInString:    "name the table in FROM, not in a string",
	ReasonRowType:         "use the types of the columns instead: the rows of a copy have another type",
	ReasonTempTable:       "replace the temporary table by its query: a replay cannot see the session's temporary tables",
	ReasonUnsupportedNode: "write the query without it, or report it as a missing feature",
}
