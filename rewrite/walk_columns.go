package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// columnRef rewrites schema.table.column and database.schema.table.column, which would no longer match their relation, and
// refuses system columns.
func (w *walker) columnRef(n *pg_query.ColumnRef) {
	fields := make([]string, len(n.GetFields()))
	for i, f := range n.GetFields() {
		fields[i] = f.GetString_().GetSval()
	}
	last := fields[len(fields)-1]
	if isSystemColumn(last) {
		w.refuse(ReasonSystemColumn, "ColumnRef", n.GetLocation(), "system column "+last, "")
	}
	switch len(fields) {
	case 1:
		return
	case 2, 3, 4:
		if w.printed {
			break
		}
		if strings.HasPrefix(last, "pg_") || last == "record_send" || last == "hash_record" { // of the functions that take a row, only these are not safe
			w.attribute(last, "ColumnRef", n.GetLocation())
		}
		w.userAttribute(last, true, "ColumnRef", n.GetLocation())
	default:
		w.refuse(ReasonUnsupportedNode, "ColumnRef", n.GetLocation(), "a name of more than four parts", "")
		return
	}
	if len(fields) == 2 {
		return
	}
	if len(fields) == 4 && !w.catalog(fields[0], "ColumnRef", n.GetLocation()) {
		return
	}
	t := Table{Schema: fields[len(fields)-3], Name: fields[len(fields)-2]}
	e := edit{node: nodeColumnRef, at: n.GetLocation(), qualifiers: len(fields) - 2, table: t}
	switch kind := w.r.names.Qualified(t); kind {
	case resolve.KindProtected:
		e.protected = true
		w.edit(e)
	case resolve.KindPublic:
		w.edit(e)
	case resolve.KindSystem:
		if len(fields) == 4 {
			w.edit(e)
		}
	default:
		w.unreadable(t, kind, ReasonUnknownTable, n.GetLocation())
	}
}

// isSystemColumn reports whether a column is one that every table has and that differs between two copies (PostgreSQL
// manual, section 5.5).
func isSystemColumn(name string) bool {
	switch name {
	case "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax":
		return true
	}
	return false
}
