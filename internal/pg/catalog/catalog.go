// Package catalog is a model of a PostgreSQL database's catalog: relations, functions, operators, types, settings and
// privileges. It is plain data and pure; package read fills it from a server.
package catalog

import "github.com/dpwatch/dpwatch/internal/pg/ident"

// Table is the name of a relation, function or type.
type Table = ident.Table

// Catalog holds what a query's meaning depends on. Its relations, functions, operators and schemas are not those of
// pg_catalog, information_schema and temporary schemas. It must not be modified while an Index of it is in use.
type Catalog struct {
	Database  string     // the database's name
	Schemas   []string   // every ordinary schema, also without relations
	Relations []Relation // of ordinary schemas
	Functions []Function // of ordinary schemas; one entry for each overload
	Operators []Operator // of ordinary schemas
	Types     []Type     // types whose values are converted by functions outside pg_catalog
	// Casts are those with a function outside pg_catalog.
	Casts []Cast
	// ImplicitCasts are the functions outside pg_catalog of implicit casts.
	ImplicitCasts []Table
	Coercions     []Coercion // implicit casts to types outside pg_catalog
	Defaults      []Default  // the initial settings of a session, in increasing precedence
	Denied        []Denial   // schemas that a role may not use, so that its search_path ignores them
	Labels        []Label    // SECURITY LABELs on columns of ordinary schemas and on roles
	System        []string   // the relations of pg_catalog, by name
	Unlisted      []Unlisted // the functions of pg_catalog of which nothing else is known
	EventTriggers []EventTrigger
}

// RelationKind is pg_class.relkind.
type RelationKind string

// The kinds of relations. Partitions and inheritance children are tables in the Reads of another relation.
const (
	KindTable        RelationKind = "r"
	KindPartitioned  RelationKind = "p"
	KindView         RelationKind = "v"
	KindMaterialized RelationKind = "m"
	KindForeign      RelationKind = "f"
	KindSequence     RelationKind = "S"
)

// Relation is one relation and what a query on it reads besides.
type Relation struct {
	Table
	Kind RelationKind
	// RowSecurity: the rows depend on the current role.
	RowSecurity bool
	// Hidden: the role that read the catalog may not read the rows.
	Hidden bool
	// Reads are the relations that a query on this one reads: for a view and for row security policies those in their
	// expressions, for a table its partitions and inheritance children. Direct dependencies are sufficient.
	Reads []Table
	// Calls are the functions outside pg_catalog that the view or the policies call.
	Calls []Table
	// Types are the types outside pg_catalog of its columns, and their component types.
	Types []Table
	// Definition is the query of a view or materialized view as pg_get_viewdef prints it with a search_path of only
	// pg_catalog; "" for all other kinds.
	Definition string
	// Effects are what the server runs besides what Reads, Calls and Types say.
	Effects []Effect
}

// Event is a set of what statements do with a relation.
type Event uint16

// The events.
const (
	Select Event = 1 << iota
	Insert
	Update
	Delete
	Truncate
	Analyze // ANALYZE, VACUUM, REINDEX and CLUSTER, which compute expressions of indexes
	Alter   // an ALTER TABLE that checks or rewrites the rows
	Change  = Insert | Update | Delete | Truncate
)

// Effect is what the server runs, according to rules, triggers, defaults, generated columns, constraints, indexes,
// partition keys, policies, statistics and foreign keys, if a statement does something with a relation.
type Effect struct {
	Events Event
	// Column restricts the effect to an INSERT that gives the column no value, or to an UPDATE that sets it; "" = no
	// restriction. Place is its number among the columns, 1 first.
	Column string
	Place  int
	// Calls, Types and Reads are outside pg_catalog. Writes are relations whose rows may be changed.
	Calls, Types, Reads, Writes []Table
	Text                        string // expressions that may execute a text; "" = none
}

// EventTrigger runs a function at DDL commands. Tags are the commands' tags; none = all.
type EventTrigger struct {
	Event    string // ddl_command_start, ddl_command_end, sql_drop or table_rewrite
	Tags     []string
	Function Table
}

// FunctionKind is pg_proc.prokind.
type FunctionKind string

// The kinds of functions.
const (
	KindFunction  FunctionKind = "f"
	KindAggregate FunctionKind = "a"
	KindWindow    FunctionKind = "w"
	KindProcedure FunctionKind = "p"
)

// Function is one user-defined function or procedure, or one of an extension.
type Function struct {
	Schema, Name string
	Kind         FunctionKind // "" = KindFunction
	// Arguments and Result are the output of pg_get_function_arguments and pg_get_function_result, with every type
	// outside pg_catalog qualified: names, types, modes and defaults.
	Arguments, Result string
	Volatility        string // "immutable", "stable" or "volatile"
	Language          string // "sql", "plpgsql", "c", ...
	// Definer: it runs with the rights of its owner (SECURITY DEFINER).
	Definer bool
	// Body is the text of its body, for an atomic one the output of pg_get_function_sqlbody; "" if there is none (C,
	// aggregates).
	Body     string
	Settings map[string]string // its own SET clauses, by name
	Reads    []Table           // relations that an atomic body or a default reads, or whose row type is an argument or the result
	Calls    []Table           // functions outside pg_catalog that these call, or that an aggregate is made of
	Types    []Table           // types outside pg_catalog of its arguments and result, domains included, and in an atomic body
	// OfOne: it can be called with one argument, so that x.f may be a call of f. OfRow: that argument may be a row.
	OfOne, OfRow bool
	// Takes holds, for each input argument, its type without arrays and domains around it; the zero Table for types of
	// pg_catalog and for rows. The last Optional ones have a default; Variadic: the last one accepts any number of
	// values.
	Takes    []Table
	Optional int
	Variadic bool
	// Gives are the types outside pg_catalog of its results, and their component types.
	Gives []Table
	// Extension is the extension of the function; "" = none.
	Extension string
}

// Unlisted is a function of pg_catalog that package builtin does not list. OfOne and OfRow are those of Function; they
// hold for any overload.
type Unlisted struct {
	Name         string
	OfOne, OfRow bool
}

// Operator is one user-defined operator, or one of an extension, and its function.
type Operator struct {
	Schema, Name string
	Function     Table
	Operands     string   // "left, right" as format_type prints them; "NONE" for the left operand of a prefix operator
	Takes        [2]Table // like Function.Takes, left and right
}

// Cast is one with a function outside pg_catalog. Context is pg_cast.castcontext: 'e' explicit, 'a' in assignments, too,
// 'i' implicit.
type Cast struct {
	From, To, Function Table
	Context            string
}

// Coercion is an implicit cast, without arrays and domains around the types.
type Coercion struct{ From, To Table }

// Type is a user-defined type, or a type of pg_catalog with Calls: the functions that may be called to create one of
// its values, or a component: input functions, casts, and the functions in checks of a domain. From pg_catalog, only
// functions that are not immutable are included; the input functions of regclass and similar types are listed in a type
// that contains such a value.
type Type struct {
	Schema, Name string
	Calls        []Table
	Holds        []Table // types outside pg_catalog that are its components
	// Support are further functions outside pg_catalog that run when its values are printed, compared or sorted, without
	// an operator in the text.
	Support []Table
	Default []Table // functions outside pg_catalog in the default of a domain
}

// Default is a set of initial settings from ALTER DATABASE, ALTER ROLE or the server's configuration.
type Default struct {
	Role     string // "" = every role
	Settings map[string]string
}

// Label is a SECURITY LABEL on a column, or on a role.
type Label struct {
	Provider string
	Table    Table  // of a column
	Column   string // "" for a role
	Role     string // "" for a column
	Text     string
}

// Denial reports that a role lacks USAGE on a schema.
type Denial struct{ Role, Schema string }
