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
	AssumedBuiltin   = "functions of PostgreSQL's names are PostgreSQL's own (no catalog of the engine: privacy.catalog)"
	AssumedCopies    = "the neighbours' copies read nothing outside their schema (no catalog of the shadow database)"
	AssumedAttribute = "x.f names a column, not a call of a function f(x)"
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
	return slices.Sorted(maps.Keys(w.assumed))
}
