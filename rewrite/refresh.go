package rewrite

import (
	"maps"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// refreshed changes q, which is a REFRESH MATERIALIZED VIEW, to the query of the view with the comments of q, which can
// claim. It reports whether that query is known. Every name in it has its schema.
func (r *Rewriter) refreshed(n *pg_query.RefreshMatViewStmt, q *capture.Query, tokens []*pg_query.ScanToken) bool {
	if n.GetSkipData() {
		return false
	}
	view := r.materialized(n.GetRelation(), *q)
	if view == nil || view.Definition == "" {
		return false
	}
	var b strings.Builder
	for _, t := range tokens {
		if pgparse.IsComment(t) {
			b.WriteString(pgparse.TokenText(q.SQL, t) + "\n")
		}
	}
	q.SQL = b.String() + strings.TrimRight(view.Definition, "; \n")
	settings := maps.Clone(q.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["search_path"] = "pg_catalog"
	q.Settings, q.Temporary = settings, nil
	q.Doubt = q.Doubt.Without("search_path")
	q.Doubt.Temporary = false
	return true
}

// materialized returns a materialized view by its name in a statement; nil = it is not known.
func (r *Rewriter) materialized(n *pg_query.RangeVar, q capture.Query) *catalog.Relation {
	if r.source == nil {
		return nil
	}
	var found *catalog.Relation
	if n.GetSchemaname() != "" {
		found = r.source.Relations[Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}]
	} else {
		path := resolve.PathOf(q, r.options.SearchPath).Seen(r.source)
		in := slices.IndexFunc(path.Known(), func(s string) bool { return r.source.Relations[Table{Schema: s, Name: n.GetRelname()}] != nil })
		if in >= 0 {
			found = r.source.Relations[Table{Schema: path.Schemas[in], Name: n.GetRelname()}]
		}
	}
	if found == nil || found.Kind != catalog.KindMaterialized {
		return nil
	}
	return found
}
