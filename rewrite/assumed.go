package rewrite

import "github.com/dpwatch/dpwatch/rewrite/internal/judge"

// The assumptions in Plan.Assumed. Only a catalog or the client's own session could confirm them.
const (
	AssumedLists      = judge.AssumedLists
	AssumedPath       = judge.AssumedPath
	AssumedTemp       = judge.AssumedTemp
	AssumedBuiltin    = judge.AssumedBuiltin
	AssumedCopies     = judge.AssumedCopies
	AssumedCasts      = judge.AssumedCasts
	AssumedSetters    = judge.AssumedSetters
	AssumedSettings   = judge.AssumedSettings
	AssumedShadowPath = judge.AssumedShadowPath
	AssumedAttribute  = judge.AssumedAttribute
)

// AssumedFunction returns the entry of Plan.Assumed for a function that is declared safe, or immutable, and whose reads
// cannot be derived from a catalog: there is no catalog of the engine, or its body cannot be analysed or builds a
// statement at run time.
func AssumedFunction(name string) string { return judge.AssumedFunction(name) }
