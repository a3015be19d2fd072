package rewrite

import (
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// maskCopies is what may be done if copies are not masked.
const maskCopies = "put the security labels of the engine on the copies in shadow.d0 and shadow.d1, and on the role of shadow.dsn"

// labelled returns tables, and what the views among them read, as far as SECURITY LABELs on their columns can have
// claims. A label on a partition or child does not apply to queries on its parent.
func (r *Rewriter) labelled(tables []Table) []Table {
	if r.source == nil || len(r.options.Claims.LabelProviders) == 0 {
		return nil
	}
	seen := map[Table]bool{}
	for todo := tables; len(todo) > 0; {
		t := todo[0]
		todo = todo[1:]
		if seen[t] {
			continue
		}
		seen[t] = true
		if v := r.source.Relations[t]; v != nil && (v.Kind == catalog.KindView || v.Kind == catalog.KindMaterialized) {
			todo = append(todo[:len(todo):len(todo)], v.Reads...)
		}
	}
	return ident.Sorted(seen)
}
