package rewrite

import (
	"maps"
	"slices"
)

// What a plan takes for granted, as Plan.Assumed says it. All of it is about what only a catalog, or only the client's
// own session, could tell.
const (
	AssumedLists     = "privacy.protected and privacy.public name every relation of their schemas (no catalog of the engine: privacy.catalog)"
	AssumedPath      = "names without a schema are found as privacy.search_path says (neither the session nor a catalog said)"
	AssumedTemp      = "the session has no temporary table of a name that the query gives without a schema"
	AssumedBuiltin   = "functions and operators of PostgreSQL's names are PostgreSQL's own, and no user's type or cast calls a function with side effects (no catalog of the engine: privacy.catalog)"
	AssumedCopies    = "the neighbours' copies read nothing outside their schema (no catalog of the shadow database)"
	AssumedCasts     = "no value goes through an implicit cast whose function is volatile or reads a table (the engine has such casts: claims.safe_functions)"
	AssumedAttribute = "x.f names a column, not a call of a function f(x) (no catalog of the engine: privacy.catalog)"
)

// assume notes what this plan takes for granted.
func (w *walker) assume(what string) { w.assumed[what] = true }

// assumeName notes what the meaning of a relation's name rests on.
func (w *walker) assumeName(bare bool) {
	if w.r.names.source == nil {
		w.assume(AssumedLists)
	}
	if bare {
		w.assume(AssumedTemp)
		if w.path.assumed {
			w.assume(AssumedPath)
		}
	}
}

// assumptions returns them all.
func (w *walker) assumptions() []string {
	if w.r.options.Shadow == nil {
		w.assume(AssumedCopies)
	}
	w.assumeCasts()
	return slices.Sorted(maps.Keys(w.assumed))
}
