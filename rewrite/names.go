package rewrite

import (
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// names holds the relations that names may refer to, and what the catalogs say about them and about functions. It is
// read-only after construction.
type names struct {
	*resolve.Relations
	bases   map[Table][]Table          // relations over protected tables, according to the catalog: these tables
	refused map[Table]fault            // relations that are listed, or depend on listed ones, but cannot be replayed
	readers map[*catalog.Function]bool // functions of either catalog that read a protected table
	copies  map[Table]functionCopy     // of functions of the source, by schema and name
}

// newNames indexes the listed relations and, from the catalogs, their readers.
func newNames(o Options, f *functions) *names {
	n := &names{
		Relations: resolve.NewRelations(catalog.NewIndex(o.Source), o.Protected, o.Public, o.Others),
		refused:   map[Table]fault{}, readers: map[*catalog.Function]bool{}, copies: map[Table]functionCopy{},
	}
	n.dependents(o, f, newJudge(o, n, f))
	return n
}

// doubtful are the reasons to refuse a name that cannot be resolved.
var doubtful = map[resolve.Doubt]Reason{
	resolve.DoubtSettings: ReasonSettingsUncertain, resolve.DoubtAmbiguous: ReasonAmbiguousName, resolve.DoubtUnlisted: ReasonUnknownTable,
}
