package rewrite

import "slices"

// Catalog is what the catalog of one database says, as far as rewriting needs it: plain data, filled by a reader that
// may do I/O. It is not changed after it was given to New. Relations and functions of pg_catalog, information_schema and
// temporary schemas are not part of it.
type Catalog struct {
	Database  string     // the database's name
	Schemas   []string   // every ordinary schema, those without relations too
	Relations []Relation // of ordinary schemas
	Functions []Function // of ordinary schemas; one entry for each overload
	Operators []Operator // of ordinary schemas
	Types     []Type     // those whose values go through functions outside pg_catalog
	// ImplicitCasts are the functions outside pg_catalog of casts that the server makes by itself.
	ImplicitCasts []Table
	Coercions     []Coercion // casts to types outside pg_catalog that the server makes by itself
	Defaults      []Default  // the settings that a session starts with, the weakest first
	Denied        []Denial   // schemas that a role may not use, and so does not see in its search_path
}

// RelationKind is pg_class.relkind, in words.
type RelationKind string

// The kinds of relations. Partitions and inheritance children are tables that another relation Reads.
const (
	KindTable        RelationKind = "table"
	KindPartitioned  RelationKind = "partitioned table"
	KindView         RelationKind = "view"
	KindMaterialized RelationKind = "materialized view"
	KindForeign      RelationKind = "foreign table"
	KindSequence     RelationKind = "sequence"
)

// Relation is one relation and what a query on it also reads.
type Relation struct {
	Table
	Kind RelationKind
	// RowSecurity: the rows depend on who asks.
	RowSecurity bool
	// Reads are the relations that reading this one reads: of a view and of row security policies those in their
	// expressions, of a table its partitions and inheritance children. Direct ones are enough.
	Reads []Table
	// Calls are the functions outside pg_catalog that the view or the policies call.
	Calls []Table
	// Types are those outside pg_catalog that its columns have, and what these are made of.
	Types []Table
	// Definition is a view's query as pg_get_viewdef prints it with pg_catalog alone in the search_path; "" for all others.
	Definition string
}

// FunctionKind is pg_proc.prokind, in words.
type FunctionKind string

// The kinds of functions.
const (
	KindFunction  FunctionKind = "function"
	KindAggregate FunctionKind = "aggregate"
	KindWindow    FunctionKind = "window function"
	KindProcedure FunctionKind = "procedure"
)

// Function is one function or procedure of the database's users or extensions.
type Function struct {
	Schema, Name string
	Kind         FunctionKind // "" = KindFunction
	// Arguments and Result are as pg_get_function_arguments and pg_get_function_result print them, with every type outside
	// pg_catalog qualified: names, types, modes and defaults.
	Arguments, Result string
	Volatility        string // "immutable", "stable" or "volatile"
	Language          string // "sql", "plpgsql", "c", ...
	// Body is the text of its body; of an atomic one what pg_get_function_sqlbody prints; "" where there is none (C,
	// aggregates).
	Body     string
	Settings map[string]string // its own SET clauses, by name
	Reads    []Table           // the relations that an atomic body or a default reads, or whose rows are an argument or the result
	Calls    []Table           // the functions outside pg_catalog that these, or an aggregate's parts, are
	// OfOne: one argument is enough, so that x.f may be a call of f. OfRow: that one may be a row.
	OfOne, OfRow bool
	// Takes has, for each input argument, its type without arrays and domains around it; the zero Table for types of pg_catalog and
	// for rows. The last Optional ones have a default; Variadic: the last takes any number.
	Takes    []Table
	Optional int
	Variadic bool
	// Gives are the types outside pg_catalog that its results have, and what these are made of.
	Gives []Table
	// Extension is what the function belongs to; "" = none.
	Extension string
}

// Operator is one operator of the database's users or extensions, and the function that it calls.
type Operator struct {
	Schema, Name string
	Function     Table
	Operands     string   // "left, right" as format_type prints them; "NONE" for the left one of a prefix operator
	Takes        [2]Table // as Function.Takes, left and right
}

// Coercion is a cast that the server makes by itself, without arrays and domains around the types.
type Coercion struct{ From, To Table }

// Type is a type of users, or one of pg_catalog that has Calls: the functions that making a value of it, or of what it is made of, may call: input
// functions, casts, and what the checks of a domain call. Of pg_catalog's functions these are those that are not immutable; the input
// functions of regclass and its like stand for themselves in a type that holds such a value.
type Type struct {
	Schema, Name string
	Calls        []Table
	Holds        []Table // the types outside pg_catalog that it is made of
}

// Default is what ALTER DATABASE, ALTER ROLE and the server's configuration set for new sessions.
type Default struct {
	Role     string // "" = every role
	Settings map[string]string
}

// Denial says that a role lacks USAGE on a schema.
type Denial struct{ Role, Schema string }

// catalogIndex is a Catalog to look things up in. It is read-only once made. nil = no catalog.
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

// find returns the overloads of schema.name, or, with schema "", those that a bare name may mean under a path.
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

// resolve is find without the functions that others of the same arguments hide, by a schema that is earlier in the path.
func (x *catalogIndex) resolve(schema, name string, path searchPath) []*Function {
	found := x.find(schema, name, path)
	return slices.DeleteFunc(found, func(f *Function) bool {
		return slices.ContainsFunc(x.functions[name], func(g *Function) bool {
			return schema == "" && g.Arguments == f.Arguments && path.has(g.Schema) && path.before(g.Schema, f.Schema)
		})
	})
}

// has reports whether a function is this catalog's.
func (x *catalogIndex) has(f *Function) bool {
	return x != nil && slices.Contains(x.functions[f.Name], f)
}

// settings returns the session's settings with the defaults of its user under them.
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

// closure returns every relation that reading t reads, t included. A relation that the catalog does not hold has none
// below it.
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
