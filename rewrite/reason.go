package rewrite

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/rewrite/internal/judge"
)

// Reason is the reason code of a refusal, from a fixed list, fit for a metric label.
type Reason = judge.Reason

// All reasons. Reasons returns them as a list.
const (
	ReasonInvalidEncoding     Reason = "invalid_encoding"              // a NUL byte, text that is not UTF-8, or a client_encoding other than UTF8
	ReasonTooLarge            Reason = "too_large"                     // too many bytes or tokens
	ReasonTooDeep             Reason = "too_deep"                      // too many nested levels or comments, or too long a run of operator characters, for the parser
	ReasonUnparseable         Reason = "unparseable"                   // not a statement of the parser's grammar
	ReasonEmpty               Reason = "empty"                         // no statement
	ReasonMultipleStatements  Reason = "multiple_statements"           // more than one statement
	ReasonNotSelect           Reason = "not_select"                    // neither SELECT, VALUES, TABLE nor a statement that runs one of these; or it ran none
	ReasonExplain             Reason = "explain"                       // EXPLAIN without ANALYZE runs no query
	ReasonWrapper             Reason = "wrapper"                       // a statement whose query is not known, or not one query
	ReasonOtherDatabase       Reason = "other_database"                // the session is connected to another database than that of the protected tables
	ReasonSideEffects                = judge.ReasonSideEffects         // writes, locks, sleeps or changes its session
	ReasonNoProtectedTable           = judge.ReasonNoProtectedTable    // reads no protected table
	ReasonSystemCatalogOnly          = judge.ReasonSystemCatalogOnly   // reads only system catalogs
	ReasonSystemCatalog              = judge.ReasonSystemCatalog       // reads protected tables and a catalog that describes tables
	ReasonSystemColumn               = judge.ReasonSystemColumn        // tableoid, ctid, xmin, ...: the values differ between any two copies
	ReasonSessionDependent           = judge.ReasonSessionDependent    // depends on the user, role, schema or database of the session
	ReasonSettingsUncertain          = judge.ReasonSettingsUncertain   // the meaning of a name or claim depends on settings that are not known
	ReasonAmbiguousName              = judge.ReasonAmbiguousName       // a name that may refer to several relations
	ReasonTempTable                  = judge.ReasonTempTable           // a temporary table, which a replay cannot see
	ReasonUnknownTable               = judge.ReasonUnknownTable        // neither protected nor public
	ReasonNoCopy                     = judge.ReasonNoCopy              // depends on protected tables, and a neighbour has no correct copy
	ReasonResolvesDifferently        = judge.ReasonResolvesDifferently // a function, operator or type that refers to another one in the shadow database
	ReasonUnknownFunction            = judge.ReasonUnknownFunction     // neither built in nor declared safe
	ReasonUnsafeFunction             = judge.ReasonUnsafeFunction      // built in, but depends on names, catalogs, files or the session
	ReasonNameInString               = judge.ReasonNameInString        // a string that is used as a name, or may be and contains the name of a protected table
	ReasonRowType                    = judge.ReasonRowType             // the row type of a protected table
	ReasonParameter                  = judge.ReasonParameter           // a parameter without a bound value, or of a user-defined or reg* type
	ReasonUnsupportedNode            = judge.ReasonUnsupportedNode     // syntax that this package does not support
	ReasonBadClaim            Reason = "bad_claim"                     // a claim that is negative, too large or no expression of constants
	ReasonVerifyFailed        Reason = "verify_failed"                 // the rewritten text differs from the original by more than the schemas
	ReasonInternal            Reason = "internal"                      // an internal error of this package
)

// Reasons returns every Reason, in a fixed order, so that metrics can be registered before the first refusal.
func Reasons() []Reason {
	return []Reason{
		ReasonInvalidEncoding, ReasonTooLarge, ReasonTooDeep, ReasonUnparseable, ReasonEmpty, ReasonMultipleStatements, ReasonNotSelect, ReasonExplain, ReasonWrapper,
		ReasonOtherDatabase, ReasonSideEffects, ReasonNoProtectedTable, ReasonSystemCatalogOnly, ReasonSystemCatalog,
		ReasonSystemColumn, ReasonSessionDependent, ReasonSettingsUncertain, ReasonAmbiguousName, ReasonTempTable,
		ReasonUnknownTable, ReasonNoCopy, ReasonResolvesDifferently, ReasonUnknownFunction, ReasonUnsafeFunction, ReasonNameInString, ReasonRowType, ReasonParameter,
		ReasonUnsupportedNode, ReasonBadClaim, ReasonVerifyFailed, ReasonInternal,
	}
}

// UnsupportedError is the refusal of a query. No field holds a literal or a parameter of the query; fields may hold
// identifiers (tables, functions, columns).
type UnsupportedError struct {
	Reason Reason
	Node   string // the syntax node ("RangeVar", "FuncCall"); "" for the whole text
	Detail string // what was found
	Offset int    // byte offset in capture.Query.SQL, 0-based; -1 = not known
	Hint   string // remedy for the client or the operator; "" = none

	expression string
}

// Expression returns the SQL text of a claim that is an expression of constants and parameters, if the query was
// refused because its value is not known; otherwise "". It reads nothing and calls immutable built-in functions.
// AnalyzeWith takes its value.
func (e *UnsupportedError) Expression() string { return e.expression }

// Error returns all fields in one line.
func (e *UnsupportedError) Error() string {
	var b strings.Builder
	b.WriteString("query refused: ")
	b.WriteString(string(e.Reason))
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	switch {
	case e.Node != "" && e.Offset >= 0:
		fmt.Fprintf(&b, " (%s at byte %d)", e.Node, e.Offset)
	case e.Node != "":
		fmt.Fprintf(&b, " (%s)", e.Node)
	case e.Offset >= 0:
		fmt.Fprintf(&b, " (at byte %d)", e.Offset)
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// reportBug is the hint of a refusal that is a fault of this package.
const reportBug = "report this as a bug"

// refuse returns a refusal of the whole text.
func refuse(reason Reason, detail, hint string) *UnsupportedError {
	return &UnsupportedError{Reason: reason, Detail: detail, Offset: -1, Hint: hint}
}
