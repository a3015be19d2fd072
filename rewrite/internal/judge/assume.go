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

// assumeName records the assumptions behind the meaning of a relation's name.
func (l *lookup) assumeName(unqualified bool) {
	if l.rules.names.Source == nil {
		l.findings.assume(AssumedLists)
	}
	if unqualified {
		l.findings.assume(AssumedTemp)
		if l.path.Assumed {
			l.findings.assume(AssumedPath)
		}
	}
}

// Assumptions returns all assumptions, after Verdict.
func (s *Statement) Assumptions() []string {
	if s.rules.options.Shadow == nil {
		s.assume(AssumedCopies)
	}
	if s.session.formsInDoubt() {
		s.assume(AssumedSettings)
	}
	s.Called.assumeCasts()
	return slices.Sorted(maps.Keys(s.assumed))
}
