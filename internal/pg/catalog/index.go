package catalog

import (
	"maps"
	"slices"
)

// Index finds the objects of a Catalog by name. It is read-only after construction. Find and Settings accept a nil
// Index, the index of a catalog that is not known. A path lists the schemas in which an unqualified name is looked up.
type Index struct {
	Catalog   *Catalog
	Relations map[Table]*Relation
	Named     map[string][]*Relation // by name without schema, as all that follow
	Functions map[string][]*Function
	Operators map[string][]Operator
	Types     map[string][]Type
	Unlisted  map[string]Unlisted
	schemas   map[string]bool
	denied    map[Denial]bool
}

// NewIndex returns the index of a catalog, nil of nil.
func NewIndex(c *Catalog) *Index {
	if c == nil {
		return nil
	}
	x := &Index{
		Catalog: c, schemas: map[string]bool{}, Relations: map[Table]*Relation{}, Named: map[string][]*Relation{},
		Functions: map[string][]*Function{}, denied: map[Denial]bool{},
		Operators: map[string][]Operator{}, Types: map[string][]Type{}, Unlisted: map[string]Unlisted{},
	}
	for _, s := range c.Schemas {
		x.schemas[s] = true
	}
	for i := range c.Relations {
		r := &c.Relations[i]
		x.Relations[r.Table] = r
		x.Named[r.Name] = append(x.Named[r.Name], r)
	}
	for i := range c.Functions {
		f := &c.Functions[i]
		x.Functions[f.Name] = append(x.Functions[f.Name], f)
	}
	for _, o := range c.Operators {
		x.Operators[o.Name] = append(x.Operators[o.Name], o)
	}
	for _, t := range c.Types {
		x.Types[t.Name] = append(x.Types[t.Name], t)
	}
	for _, u := range c.Unlisted {
		x.Unlisted[u.Name] = u
	}
	for _, d := range c.Denied {
		x.denied[d] = true
	}
	return x
}

// Usable reports whether a schema exists and a role may use it.
func (x *Index) Usable(schema, role string) bool {
	return x.schemas[schema] && !x.denied[Denial{role, schema}]
}

// DeniesSome reports whether some role may not use a schema.
func (x *Index) DeniesSome(schema string) bool {
	return slices.ContainsFunc(x.Catalog.Denied, func(d Denial) bool { return d.Schema == schema })
}

// Find returns the overloads of schema.name, or, with schema "", those that an unqualified name may refer to.
func (x *Index) Find(schema, name string, path []string) []*Function {
	if x == nil {
		return nil
	}
	return matching(x.Functions[name], func(f *Function) bool {
		return f.Schema == schema || schema == "" && slices.Contains(path, f.Schema)
	})
}

// Resolve is Find without the functions that are hidden by others with the same arguments, in an earlier schema of the
// path.
func (x *Index) Resolve(schema, name string, path []string) []*Function {
	return matching(x.Find(schema, name, path), func(f *Function) bool {
		return schema != "" || !slices.ContainsFunc(x.Functions[name], func(g *Function) bool {
			at := slices.Index(path, g.Schema)
			return g.Arguments == f.Arguments && at >= 0 && at < slices.Index(path, f.Schema)
		})
	})
}

// OperatorsIn returns the operators of a name under a path.
func (x *Index) OperatorsIn(name string, path []string) []Operator {
	return matching(x.Operators[name], func(o Operator) bool { return slices.Contains(path, o.Schema) })
}

// TypeIn returns the schema in which a user-defined type, or the row type of a relation, is found under a path; "" = in
// none.
func (x *Index) TypeIn(name string, path []string) string {
	for _, s := range path {
		if x.Relations[Table{Schema: s, Name: name}] != nil || slices.ContainsFunc(x.Types[name], func(t Type) bool { return t.Schema == s }) {
			return s
		}
	}
	return ""
}

// Has reports whether a function belongs to this catalog.
func (x *Index) Has(f *Function) bool { return slices.Contains(x.Functions[f.Name], f) }

// Settings returns the session's settings on top of the defaults of its user.
func (x *Index) Settings(user string, session map[string]string) map[string]string {
	if x == nil {
		return session
	}
	return WithDefaults(x.Catalog.Defaults, user, session)
}

// WithDefaults returns the session's settings on top of those defaults that are its user's.
func WithDefaults(defaults []Default, user string, session map[string]string) map[string]string {
	if len(defaults) == 0 {
		return session
	}
	merged := map[string]string{}
	for _, d := range defaults {
		if d.Role == "" || d.Role == user {
			maps.Copy(merged, d.Settings)
		}
	}
	maps.Copy(merged, session)
	return merged
}

// Closure returns every relation that a query on t reads, including t. A relation that is not in the catalog has no
// dependencies.
func (x *Index) Closure(t Table) map[Table]bool { return x.ClosureWithout(t, nil) }

// ClosureWithout is Closure that ends at some relations, which it leaves out.
func (x *Index) ClosureWithout(t Table, without map[Table]bool) map[Table]bool {
	seen := map[Table]bool{}
	for todo := []Table{t}; len(todo) > 0; {
		t, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if seen[t] || without[t] {
			continue
		}
		seen[t] = true
		if r := x.Relations[t]; r != nil {
			todo = append(todo, r.Reads...)
		}
	}
	return seen
}

// matching returns the objects that fulfil a condition, in a new list.
func matching[T any](all []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !keep(v) })
}
