package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// The assumptions in Plan.Assumed. Only a catalog or the client's own session could confirm them.
const (
	AssumedLists      = "privacy.protected and privacy.public list every relation of their schemas (set privacy.catalog to read the engine's catalog instead)"
	AssumedPath       = "names without a schema are resolved by privacy.search_path (neither the session nor a catalog gives a search path)"
	AssumedTemp       = "the session has no temporary table with a name that the query uses without a schema"
	AssumedBuiltin    = "no user-defined function or operator overloads a built-in one, and no user-defined type or cast calls a function with side effects (set privacy.catalog to check this)"
	AssumedCopies     = "the neighbours' copies read nothing outside their schema (the catalog of the shadow database was not read)"
	AssumedCasts      = "no value goes through an implicit cast whose function is volatile or reads a table (the engine has such casts; list functions that are safe in claims.safe_functions)"
	AssumedSetters    = "the session called no function that changes its settings (the engine has such functions; dpwatch tracks only SET and set_config in the client's own statements)"
	AssumedShadowPath = "in the shadow database, shadow.search_path finds exactly those names that the session's search_path does not find (the catalog of the shadow database was not read)"
	AssumedAttribute  = "x.f is a column, not a call of a function f(x) (set privacy.catalog to check this)"
)

// assume records an assumption of this plan.
func (s *Statement) assume(what string) { s.assumed[what] = true }

// assumeName records the assumptions behind the meaning of a relation's name.
func (s *Statement) assumeName(unqualified bool) {
	if s.rules.names.Source == nil {
		s.assume(AssumedLists)
	}
	if unqualified {
		s.assume(AssumedTemp)
		if s.path.Assumed {
			s.assume(AssumedPath)
		}
		if s.rules.functions.setters {
			s.assume(AssumedSetters)
		}
	}
}

// Assumptions returns all assumptions, after Verdict.
func (s *Statement) Assumptions() []string {
	if s.rules.options.Shadow == nil {
		s.assume(AssumedCopies)
	}
	s.assumeCasts()
	return slices.Sorted(maps.Keys(s.assumed))
}

// hasSetters reports whether a function of the catalog may change the settings of the calling session: its body names
// set_config, or SET and search_path. A function's own SET clause ends with the call.
func hasSetters(x *catalog.Index) bool {
	return x != nil && slices.ContainsFunc(x.Catalog.Functions, func(f catalog.Function) bool {
		body := strings.ToLower(f.Body)
		return ident.ContainsWord(body, "set_config") || ident.ContainsWord(body, "set") && ident.ContainsWord(body, "search_path")
	})
}
