package judge

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Column checks a column, and resolves the relation in schema.relation.column and database.schema.relation.column like
// Relation. KindUnknown: it names no relation, or is refused.
func (s *Statement) Column(n *pg_query.ColumnRef) (Table, resolve.Kind) {
	fields := make([]string, len(n.GetFields()))
	for i, f := range n.GetFields() {
		fields[i] = f.GetString_().GetSval()
	}
	last := fields[len(fields)-1]
	if isSystemColumn(last) && !s.shown.isHarmlessColumn(n, fields) {
		s.Refuse(reasons.SystemColumn, "ColumnRef", n.GetLocation(), "system column "+last, "")
	}
	switch len(fields) {
	case 1:
		return Table{}, resolve.KindUnknown
	case 2, 3, 4:
		if s.Called.printed {
			break
		}
		// Of the listed functions that take a row, only these are not safe.
		if u, _ := s.rules.functions.unlisted(last); u.OfRow || strings.HasPrefix(last, "pg_") || last == "record_send" || last == "hash_record" {
			s.attribute(last, "ColumnRef", n.GetLocation())
		}
		s.Called.userAttribute(last, true, "ColumnRef", n.GetLocation())
	default:
		s.Refuse(reasons.UnsupportedNode, "ColumnRef", n.GetLocation(), "a column name with more than four parts", "")
		return Table{}, resolve.KindUnknown
	}
	if len(fields) == 2 || len(fields) == 4 && !s.session.inDatabase(fields[0], "ColumnRef", n.GetLocation()) {
		return Table{}, resolve.KindUnknown
	}
	t := Table{Schema: fields[len(fields)-3], Name: fields[len(fields)-2]}
	kind := s.rules.names.Qualified(t)
	switch kind {
	case resolve.KindProtected, resolve.KindPublic, resolve.KindSystem:
		return t, kind
	}
	s.unreadable(t, kind, reasons.UnknownTable, n.GetLocation())
	return Table{}, resolve.KindUnknown
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

// attribute checks x.name, which PostgreSQL also resolves as the call name(x).
func (s *Statement) attribute(name, node string, offset int32) {
	class := s.rules.functions.class("", name)
	if u, exists := s.rules.functions.unlisted(name); exists && !u.OfOne {
		return
	}
	if reason := class.refusal(); reason != "" {
		s.Refuse(reason, node, offset, "function "+name+" in attribute notation"+class.why(), "")
	}
}

// Indirection checks the attributes in (x).a.b[1]. near is the offset of the innermost node that has one.
func (s *Statement) Indirection(n *pg_query.A_Indirection, near int32) {
	for _, i := range n.GetIndirection() {
		name := i.GetString_().GetSval()
		if isSystemColumn(name) {
			s.Refuse(reasons.SystemColumn, "A_Indirection", near, "system column "+name, "")
		}
		if s.Called.printed {
			continue
		}
		s.Called.castAttribute(name, near)
		s.attribute(name, "A_Indirection", near)
		s.Called.userAttribute(name, false, "A_Indirection", near)
	}
}
