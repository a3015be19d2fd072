package rewrite

import "slices"

// Catalog is the part of a database's catalog that rewriting needs: plain data, filled by a reader that may do I/O. It must
// not be modified after it was passed to New. It contains no relations and functions of pg_catalog, information_schema and
// temporary schemas.
type Catalog struct {
	Database  string     // the database's name
	Schemas   []string   // every ordinary schema, also without relations
	Relations []Relation // of ordinary schemas
	Functions []Function // of ordinary schemas; one entry for each overload
	Operators []Operator // of ordinary schemas
	Types     []Type     // types whose values are converted by functions outside pg_catalog
	// ImplicitCasts are the functions outside pg_catalog of implicit casts.
	ImplicitCasts []Table
	Coercions     []Coercion // implicit casts to types outside pg_catalog
	Defaults      []Default  // the initial settings of a session, in increasing precedence
	Denied        []Denial   // schemas that a role may not use, so that its search_path ignores them
}

// RelationKind is pg_class.relkind as a word.
type RelationKind string

// The kinds of relations. Partitions and inheritance children are tables in the Reads of another relation.
const (
	KindTable        RelationKind = "table"
	KindPartitioned  RelationKind = "partitioned table"
	KindView         RelationKind = "view"
	KindMaterialized RelationKind = "materialized view"
	KindForeign      RelationKind = "foreign table"
	KindSequence     RelationKind = "sequence"
)

// Relation is one relation and what a query on it reads besides.
type Relation struct {
	Table
	Kind RelationKind
	// RowSecurity: the rows depend on the current role.
	RowSecurity bool
	// Reads are the relations that a query on this one reads: for a view and for row security policies those in their
	// expressions, for a table its partitions and inheritance children. Direct dependencies are sufficient.
	Reads []Table
	// Calls are the functions outside pg_catalog that the view or the policies call.
	Calls []Table
	// Types are the types outside pg_catalog of its columns, and their component types.
	Types []Table
	// Definition is a view's query as pg_get_viewdef prints it with a search_path of only pg_catalog; "" for all other
	// kinds.
	Definition string
}

// FunctionKind is pg_proc.prokind as a word.
type FunctionKind string

// The kinds of functions.
const (
	KindFunction  FunctionKind = "function"
	KindAggregate FunctionKind = "aggregate"
	KindWindow    FunctionKind = "window function"
	KindProcedure FunctionKind = "procedure"
)

// Function is one user-defined function or procedure, or one of an extension.
type Function struct {
	Schema, Name string
	Kind         FunctionKind // "" = KindFunction
	// Arguments and Result are the output of pg_get_function_arguments and pg_get_function_result, with every type outside
	// pg_catalog qualified: names, types, modes and defaults.
	Arguments, Result string
	Volatility        string // "immutable", "stable" or "volatile"
	Language          string // "sql", "plpgsql", "c", ...
	// Body is the text of its body, for an atomic one the output of pg_get_function_sqlbody; "" if there is none (C,
	// aggregates).
	Body     string
	Settings map[string]string // its own SET clauses, by name
	Reads    []Table           // relations that an atomic body or a default reads, or whose row type is an argument or the result
	Calls    []Table           // functions outside pg_catalog that these call, or that an aggregate is made of
	// OfOne: it can be called with one argument, so that x.f may be a call of f. OfRow: that argument may be a row.
	OfOne, OfRow bool
	// Takes holds, for each input argument, its type without arrays and domains around it; the zero Table for types of
	// pg_catalog and for rows. The last Optional ones have a default; Variadic: the last one accepts any number of values.
	Takes    []Table
	Optional int
	Variadic bool
	// Gives are the types outside pg_catalog of its results, and their component types.
	Gives []Table
	// Extension is the extension of the function; "" = none.
	Extension string
}

// Operator is one user-defined operator, or one of an extension, and its function.
type Operator struct {
	Schema, Name string
	Function     Table
	Operands     string   // "left, right" as format_type prints them; "NONE" for the left operand of a prefix operator
	Takes        [2]Table // like Function.Takes, left and right
}

// Coercion is an implicit cast, without arrays and domains around the types.
type Coercion struct{ From, To Table }

// Type is a user-defined type, or a type of pg_catalog with Calls: the functions that may be called to create one of its
// values, or a component: input functions, casts, and the functions in checks of a domain. From pg_catalog, only functions
// that are not immutable are included; the input functions of regclass and similar types are listed in a type that contains
// such a value.
type Type struct {
	Schema, Name string
	Calls        []Table
	Holds        []Table // types outside pg_catalog that are its components
}

// Default is a set of initial settings from ALTER DATABASE, ALTER ROLE or the server's configuration.
type Default struct {
	Role     string // "" = every role
	Settings map[string]string
}

// Denial reports that a role lacks USAGE on a schema.
type Denial struct{ Role, Schema string }

// catalogIndex is an index of a Catalog. It is read-only after construction. nil = no catalog.
type catalogIndex struct {
	catalog   *Catalog
	schemas   map[string]bool
	relations map[Table]*Relation
	named     map[string][]*Relation
	functions map[string][]*Function // by name
	operators map[string][]Operator  // by name
	types     map[string][]Type      // by name
	denied    map[Denial]bool
}

func newCatalogIndex(c *Catalog) *catalogIndex {
	if c == nil {
		return nil
	}
	x := &catalogIndex{
		catalog: c, schemas: map[string]bool{}, relations: map[Table]*Relation{}, named: map[string][]*Relation{},
		functions: map[string][]*Function{}, denied: map[Denial]bool{},
		operators: map[string][]Operator{}, types: map[string][]Type{},
	}
	for _, s := range c.Schemas {
		x.schemas[s] = true
	}
	for i := range c.Relations {
		r := &c.Relations[i]
		x.relations[r.Table] = r
		x.named[r.Name] = append(x.named[r.Name], r)
	}
	for i := range c.Functions {
		f := &c.Functions[i]
		x.functions[f.Name] = append(x.functions[f.Name], f)
	}
	for _, o := range c.Operators {
		x.operators[o.Name] = append(x.operators[o.Name], o)
	}
	for _, t := range c.Types {
		x.types[t.Name] = append(x.types[t.Name], t)
	}
	for _, d := range c.Denied {
		x.denied[d] = true
	}
	return x
}

// find returns the overloads of schema.name, or, with schema "", those that an unqualified name may refer to under a path.
func (x *catalogIndex) find(schema, name string, path searchPath) []*Function {
	if x == nil {
		return nil
	}
	var found []*Function
	for _, f := range x.functions[name] {
		if f.Schema == schema || schema == "" && path.has(f.Schema) {
			found = append(found, f)
		}
	}
	return found
}

// resolve is find without the functions that are hidden by others with the same arguments, in an earlier schema of the
// path.
func (x *catalogIndex) resolve(schema, name string, path searchPath) []*Function {
	found := x.find(schema, name, path)
	return slices.DeleteFunc(found, func(f *Function) bool {
		return slices.ContainsFunc(x.functions[name], func(g *Function) bool {
			return schema == "" && g.Arguments == f.Arguments && path.has(g.Schema) && path.before(g.Schema, f.Schema)
		})
	})
}

// has reports whether a function belongs to this catalog.
func (x *catalogIndex) has(f *Function) bool {
	return x != nil && slices.Contains(x.functions[f.Name], f)
}

// settings returns the session's settings on top of the defaults of its user.
func (x *catalogIndex) settings(user string, session map[string]string) map[string]string {
	if x == nil || len(x.catalog.Defaults) == 0 {
		return session
	}
	merged := map[string]string{}
	for _, d := range x.catalog.Defaults {
		if d.Role == "" || d.Role == user {
			for name, value := range d.Settings {
				merged[name] = value
			}
		}
	}
	for name, value := range session {
		merged[name] = value
	}
	return merged
}

// closure returns every relation that a query on t reads, including t. A relation that is not in the catalog has no
// dependencies.
func (x *catalogIndex) closure(t Table) map[Table]bool {
	seen := map[Table]bool{}
	for todo := []Table{t}; len(todo) > 0; {
		t, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if seen[t] {
			continue
		}
		seen[t] = true
		if r := x.relations[t]; r != nil {
			todo = append(todo, r.Reads...)
		}
	}
	return seen
}
