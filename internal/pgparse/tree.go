package pgparse

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// nodeOneof is the single field of a Node.
var nodeOneof = (&pg_query.Node{}).ProtoReflect().Descriptor().Oneofs().ByName("node")

// Children calls visit for every message directly below m, in the order of the fields, except those of the fields skip.
func Children(m protoreflect.Message, visit func(protoreflect.Message), skip ...protoreflect.Name) {
	if n, ok := m.Interface().(*pg_query.Node); ok { // one of some 250 fields is set
		if fd := m.WhichOneof(nodeOneof); fd != nil && n != nil {
			visit(m.Get(fd).Message())
		}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Kind() != protoreflect.MessageKind || !m.Has(fd) || slices.Contains(skip, fd.Name()) {
			continue
		}
		if !fd.IsList() {
			visit(m.Get(fd).Message())
			continue
		}
		list := m.Get(fd).List()
		for j := range list.Len() {
			visit(list.Get(j).Message())
		}
	}
}

// Inspect visits m and everything below it; visit reports whether to descend.
func Inspect(m protoreflect.Message, visit func(proto.Message) bool) {
	if visit(m.Interface()) {
		Children(m, func(c protoreflect.Message) { Inspect(c, visit) })
	}
}

// IsLocation reports whether a field holds the location of a node in the text.
func IsLocation(fd protoreflect.FieldDescriptor) bool {
	if fd.Kind() != protoreflect.Int32Kind {
		return false
	}
	switch fd.Name() {
	case "location", "stmt_location", "stmt_len":
		return true
	}
	return false
}

// ClearLocations clears the locations of m and everything below it.
func ClearLocations(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); IsLocation(fd) {
			m.Clear(fd)
		}
	}
	Children(m, ClearLocations)
}

// Strings returns the values of a list of String nodes; another node gives "".
func Strings(nodes []*pg_query.Node) []string {
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = n.GetString_().GetSval()
	}
	return parts
}

// Name returns the last two parts of a name: its schema, "" if it has none, and the name itself.
func Name(nodes []*pg_query.Node) (schema, name string) {
	if n := len(nodes); n > 1 {
		schema = nodes[n-2].GetString_().GetSval()
	}
	return schema, Last(nodes)
}

// Last returns the last part of a name, "" of an empty list or if that part is no String.
func Last(nodes []*pg_query.Node) string {
	if len(nodes) == 0 {
		return ""
	}
	return nodes[len(nodes)-1].GetString_().GetSval()
}

// Text returns the string of a literal, or of a literal cast to text, as a server prints it; "" for anything else.
func Text(n *pg_query.Node) string {
	if c := n.GetTypeCast(); c != nil {
		if Last(c.GetTypeName().GetNames()) != "text" || len(c.GetTypeName().GetArrayBounds()) > 0 {
			return ""
		}
		n = c.GetArg()
	}
	return n.GetAConst().GetSval().GetSval()
}

// IsComment reports whether a token is a comment.
func IsComment(t *pg_query.ScanToken) bool {
	return t.GetToken() == pg_query.Token_C_COMMENT || t.GetToken() == pg_query.Token_SQL_COMMENT
}

// TokenText returns the text of a token, "" if the scanner's offsets are invalid.
func TokenText(sql string, t *pg_query.ScanToken) string {
	start, end := int(t.GetStart()), int(t.GetEnd())
	if start < 0 || end > len(sql) || start > end {
		return ""
	}
	return sql[start:end]
}

// CTEs is a linked list of the visible names of WITH queries, innermost first; nil = none. Their scope is that of
// PostgreSQL: without RECURSIVE a query sees the earlier ones and the outer levels, with RECURSIVE all of its clause.
type CTEs struct {
	name  string
	outer *CTEs
}

// Has reports whether an unqualified name refers to a WITH query.
func (s *CTEs) Has(name string) bool {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return true
		}
	}
	return false
}

// With calls visit for each query of a WITH clause, with the names that are visible in it, and returns those that are
// visible in the statement of the clause.
func (s *CTEs) With(with *pg_query.WithClause, visit func(query *pg_query.Node, in *CTEs)) *CTEs {
	if with.GetRecursive() {
		for _, n := range with.GetCtes() {
			s = &CTEs{n.GetCommonTableExpr().GetCtename(), s}
		}
	}
	for _, n := range with.GetCtes() {
		visit(n, s)
		if !with.GetRecursive() {
			s = &CTEs{n.GetCommonTableExpr().GetCtename(), s}
		}
	}
	return s
}
