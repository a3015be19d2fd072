package judge

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// AssumedFunction returns the entry of Plan.Assumed for a function that is declared safe, or immutable, and whose reads
// cannot be derived from a catalog: there is no catalog of the engine, or its body cannot be analysed or builds a
// statement at run time.
func AssumedFunction(name string) string {
	return "function " + name + " reads no protected table (its reads cannot be derived from the engine's catalog)"
}

// AssumedReader returns the entry of Plan.Assumed for a function in a language that is not analysed whose body names
// protected tables.
func AssumedReader(name string) string {
	return "function " + name + " reads no protected table but the copies (its body is in a language that is not analysed)"
}

// opacity finds the functions whose reads cannot be derived: those of whom that holds by themselves, and their callers.
type opacity struct {
	catalog   *catalog.Index
	limits    body.Limits
	functions *functions
	callers   map[*catalog.Function][]*catalog.Function
	opaque    map[*catalog.Function]bool
}

// newOpaque checks every function of the engine's catalog that a statement may call without refusal.
func newOpaque(x *catalog.Index, limits body.Limits, f *functions) map[*catalog.Function]bool {
	if x == nil {
		return nil
	}
	o := &opacity{catalog: x, limits: limits, functions: f, callers: map[*catalog.Function][]*catalog.Function{}, opaque: map[*catalog.Function]bool{}}
	var todo []*catalog.Function
	for i := range x.Catalog.Functions {
		if g := &x.Catalog.Functions[i]; f.declared(g.Schema, g.Name) || g.Volatility == "immutable" {
			todo = append(todo, g)
		}
	}
	seen := map[*catalog.Function]bool{}
	var opaque []*catalog.Function
	for len(todo) > 0 {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[g] {
			continue
		}
		seen[g] = true
		called, derived := o.callees(g)
		if !derived {
			opaque = append(opaque, g)
		}
		for _, c := range called {
			o.callers[c] = append(o.callers[c], g)
		}
		todo = append(todo, called...)
	}
	o.mark(opaque)
	return o.opaque
}

// mark marks functions as opaque, and everything that calls one, directly or through others.
func (o *opacity) mark(todo []*catalog.Function) {
	for len(todo) > 0 {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !o.opaque[g] {
			o.opaque[g] = true
			todo = append(todo, o.callers[g]...)
		}
	}
}

// callees returns the functions that one calls; derived is false if they and its reads cannot be derived.
func (o *opacity) callees(f *catalog.Function) (called []*catalog.Function, derived bool) {
	if isContrib(f) {
		return nil, true
	}
	calls := slices.Clone(f.Calls)
	if f.Kind != catalog.KindAggregate {
		names, fault := body.NamesOf(o.limits, f.Language, f.Body, o.functions.textArguments)
		if fault != "" || names.Dynamic || names.ByName {
			return nil, false
		}
		for t := range names.Functions {
			calls = append(calls, t)
		}
	}
	for _, t := range calls {
		for _, g := range o.catalog.Functions[t.Name] {
			if t.Schema == "" || t.Schema == g.Schema {
				called = append(called, g)
			}
		}
	}
	return called, true
}
