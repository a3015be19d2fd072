package judge

import (
	"maps"
	"slices"
)

// The assumptions in Plan.Assumed. Only a catalog or the client's own session could confirm them.
const (
	AssumedLists      = "privacy.protected and privacy.public list every relation of their schemas (set privacy.catalog to read the engine's catalog instead)"
	AssumedPath       = "names without a schema are resolved by privacy.search_path (neither the session nor a catalog gives a search path)"
	AssumedTemp       = "the session has no temporary table with a name that the query uses without a schema"
	AssumedBuiltin    = "no user-defined function or operator overloads a built-in one, and no user-defined type or cast calls a function with side effects (set privacy.catalog to check this)"
	AssumedCopies     = "the neighbours' copies read nothing outside their schema (the catalog of the shadow database was not read)"
	AssumedCasts      = "no value goes through an implicit cast whose function is volatile or reads a table (the engine has such casts; list functions that are safe in claims.safe_functions)"
	AssumedSetters    = "functions that the session called, and triggers, changed no setting that matters (their bodies are not known, are not in SQL or PL/pgSQL, or execute texts; set privacy.catalog to read bodies)"
	AssumedSettings   = "settings that affect the form of results, such as TimeZone, are as the proxy saw them last (the session ran code of unknown effect since)"
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
	}
}

// Assumptions returns all assumptions, after Verdict.
func (s *Statement) Assumptions() []string {
	if s.rules.options.Shadow == nil {
		s.assume(AssumedCopies)
	}
	if s.formsInDoubt() {
		s.assume(AssumedSettings)
	}
	s.assumeCasts()
	return slices.Sorted(maps.Keys(s.assumed))
}

// formsInDoubt reports whether a setting that a replay sets, or would set, may have changed.
func (s *Statement) formsInDoubt() bool {
	for name := range s.query.Settings {
		if AffectsResult(name) && s.query.Doubt.Has(name) {
			return true
		}
	}
	return slices.ContainsFunc(forms[:], s.query.Doubt.Has)
}
