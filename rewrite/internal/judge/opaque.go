package judge

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// AssumedFunction returns the entry of Plan.Assumed for a function that is declared safe, or immutable, and whose reads
// cannot be derived from a catalog: there is no catalog of the engine, or its body cannot be analysed or builds a statement
// at run time.
func AssumedFunction(name string) string {
	return "function " + name + " reads no protected table (its reads cannot be derived from the engine's catalog)"
}

// opacity finds the functions whose reads cannot be derived.
type opacity struct {
	catalog   *catalog.Index
	limits    body.Limits
	functions *functions
	checked   map[*catalog.Function]bool
}

// newOpaque checks every function of the engine's catalog that a statement may call without refusal.
func newOpaque(x *catalog.Index, limits body.Limits, f *functions) map[*catalog.Function]bool {
	if x == nil {
		return nil
	}
	o := &opacity{catalog: x, limits: limits, functions: f, checked: map[*catalog.Function]bool{}}
	for i := range x.Catalog.Functions {
		if g := &x.Catalog.Functions[i]; f.declared(g.Schema, g.Name) || g.Volatility == "immutable" {
			o.opaque(g)
		}
	}
	return o.checked
}

// opaque checks one function. A function whose check is in progress counts as known, which ends recursion.
func (o *opacity) opaque(f *catalog.Function) bool {
	if opaque, ok := o.checked[f]; ok {
		return opaque
	}
	o.checked[f] = false
	o.checked[f] = o.isOpaque(f)
	return o.checked[f]
}

func (o *opacity) isOpaque(f *catalog.Function) bool {
	if isContrib(f) {
		return false
	}
	calls := slices.Clone(f.Calls)
	if f.Kind != catalog.KindAggregate {
		names, fault := body.NamesOf(o.limits, f.Language, f.Body, o.functions.textArguments)
		if fault != "" || names.Dynamic || names.ByName {
			return true
		}
		for t := range names.Functions {
			calls = append(calls, t)
		}
	}
	return slices.ContainsFunc(calls, func(t Table) bool {
		return slices.ContainsFunc(o.catalog.Functions[t.Name], func(g *catalog.Function) bool {
			return (t.Schema == "" || t.Schema == g.Schema) && o.opaque(g)
		})
	})
}

// assumeFunction records a user-defined function that a statement calls and whose reads cannot be derived. It reports
// whether the name may refer to such a function.
func (s *Statement) assumeFunction(name string, users []*catalog.Function) bool {
	if s.rules.functions.source == nil {
		s.assume(AssumedFunction(name))
		return true
	}
	opaque := len(users) == 0
	for _, f := range users {
		if s.rules.opaque[f] {
			opaque = true
			s.assume(AssumedFunction(Table{Schema: f.Schema, Name: f.Name}.String()))
		}
	}
	if len(users) == 0 {
		s.assume(AssumedFunction(name))
	}
	return opaque
}
