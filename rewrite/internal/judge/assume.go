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
	AssumedLists      = "privacy.protected and privacy.public name every relation of their schemas (no catalog of the engine: privacy.catalog)"
	AssumedPath       = "names without a schema are found as privacy.search_path says (neither the session nor a catalog said)"
	AssumedTemp       = "the session has no temporary table of a name that the query gives without a schema"
	AssumedBuiltin    = "functions and operators of PostgreSQL's names are PostgreSQL's own, and no user's type or cast calls a function with side effects (no catalog of the engine: privacy.catalog)"
	AssumedCopies     = "the neighbours' copies read nothing outside their schema (no catalog of the shadow database)"
	AssumedCasts      = "no value goes through an implicit cast whose function is volatile or reads a table (the engine has such casts: claims.safe_functions)"
	AssumedSetters    = "the session called no function that changes its settings (the engine has such functions; a SET or set_config of the client's is followed)"
	AssumedShadowPath = "names that the session's search_path finds nowhere in the shadow database are found by shadow.search_path there, and no others (no catalog of the shadow database)"
	AssumedAttribute  = "x.f names a column, not a call of a function f(x) (no catalog of the engine: privacy.catalog)"
)

// assume records an assumption of this plan.
func (s *Statement) assume(what string) { s.assumed[what] = true }

// assumeName records the assumptions behind the meaning of a relation's name.
func (s *Statement) assumeName(bare bool) {
	if s.rules.names.Source == nil {
		s.assume(AssumedLists)
	}
	if bare {
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
