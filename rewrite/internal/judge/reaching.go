package judge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite/internal/reach"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// Names returns the names by which the relay decides which statements the auditor needs. They are those of the source,
// or, if that is not known, of the shadow database. ok is false if neither is known.
func (r *Rules) Names() (names capture.Names, ok bool) {
	x := cmp.Or(r.options.Source, r.options.Shadow)
	if x == nil {
		return capture.Names{}, false
	}
	names.Known = x.Catalog.Names
	if reaching, any := r.reaching(x.Catalog); !any {
		names.Reaching = append([]string{}, slices.Sorted(maps.Keys(reaching))...)
	}
	return names, true
}

// reaching returns the names, without schemas, of the relations, functions, types and operators of a catalog through
// which a statement may reach a protected table or run a DP function, and of the functions that are declared. any: every statement may reach
// one.
func (r *Rules) reaching(c *catalog.Catalog) (found map[string]bool, any bool) {
	reads := r.readerNames()
	found, named := r.reach.Names()
	if r.names.Protected[resolve.AnyTable] || r.functions.anyUser || !named || slices.ContainsFunc(c.ImplicitCasts, reads) || !reach.AddOperators(found, c, reads) {
		return nil, true
	}
	maps.Copy(found, r.names.Protected)
	for t := range r.names.mayCall {
		found[t.Name] = true
	}
	for t := range r.names.stored { // REFRESH
		found[t.Name] = true
	}
	types := readingTypes(c, reads)
	ofTypes := func(all []Table) bool { return slices.ContainsFunc(all, func(t Table) bool { return types[t] }) }
	for t := range types {
		if t.Schema == "pg_catalog" { // by a cast
			return nil, true
		}
		found[t.Name] = true
	}
	for i := range c.Relations {
		if x := &c.Relations[i]; ofTypes(x.Types) {
			found[x.Name] = true
		}
	}
	for i := range c.Functions {
		f := &c.Functions[i]
		if reads(Table{Schema: f.Schema, Name: f.Name}) || r.functions.declared(f.Schema, f.Name) || ofTypes(f.Takes) || ofTypes(f.Gives) {
			found[f.Name] = true
		}
	}
	return found, false
}

// readerNames returns whether some function of a name reads a protected table, or may do so.
func (r *Rules) readerNames() func(Table) bool {
	readers := map[Table]bool{}
	for _, found := range []map[*catalog.Function]bool{r.names.readers, r.names.mayRead} {
		for f := range found {
			readers[Table{Schema: f.Schema, Name: f.Name}] = true
		}
	}
	return func(t Table) bool { return readers[t] }
}

// readingTypes returns the types with values whose conversion calls a function that reads a protected table.
func readingTypes(c *catalog.Catalog, reads func(Table) bool) map[Table]bool {
	found := map[Table]bool{}
	for more := true; more; {
		more = false
		for _, t := range c.Types {
			name := Table{Schema: t.Schema, Name: t.Name}
			if !found[name] && (slices.ContainsFunc(t.Calls, reads) || slices.ContainsFunc(t.Holds, func(h Table) bool { return found[h] })) {
				found[name], more = true, true
			}
		}
	}
	return found
}
