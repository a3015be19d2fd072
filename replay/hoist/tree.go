package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// nodeOneof is the single field of a Node.
var nodeOneof = (&pg_query.Node{}).ProtoReflect().Descriptor().Oneofs().ByName("node")

// children calls visit for every message directly below m, in the order of the fields.
func children(m protoreflect.Message, visit func(protoreflect.Message)) {
	if n, ok := m.Interface().(*pg_query.Node); ok { // one of some 250 fields is set
		if fd := m.WhichOneof(nodeOneof); fd != nil && n != nil {
			visit(m.Get(fd).Message())
		}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Kind() != protoreflect.MessageKind || !m.Has(fd) {
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

// inspect visits m and everything below it; visit reports whether to descend.
func inspect(m protoreflect.Message, visit func(proto.Message) bool) {
	if !visit(m.Interface()) {
		return
	}
	children(m, func(c protoreflect.Message) { inspect(c, visit) })
}

// forgetPlaces clears the locations of nodes in a text.
func forgetPlaces(m protoreflect.Message) {
	for _, name := range []protoreflect.Name{"location", "stmt_location", "stmt_len"} {
		if fd := m.Descriptor().Fields().ByName(name); fd != nil && fd.Kind() == protoreflect.Int32Kind {
			m.Clear(fd)
		}
	}
	children(m, forgetPlaces)
}

// key returns equal strings for two trees exactly when they differ only in locations.
func key(m proto.Message) string {
	c := proto.Clone(m)
	forgetPlaces(c.ProtoReflect())
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil { // only for text that is not UTF-8, which the parser never returns
		return ""
	}
	return string(b)
}

func stringNode(s string) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_String_{String_: &pg_query.String{Sval: s}}}
}

func columnNode(name string) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: &pg_query.ColumnRef{Fields: []*pg_query.Node{stringNode(name)}}}}
}

func targetNode(name string, val *pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_ResTarget{ResTarget: &pg_query.ResTarget{Name: name, Val: val}}}
}

func rangeNode(schema, name string) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_RangeVar{RangeVar: &pg_query.RangeVar{
		Schemaname: schema, Relname: name, Inh: true, Relpersistence: "p",
	}}}
}

func selectNode(s *pg_query.SelectStmt) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: s}}
}

// selectFrom returns SELECT * FROM a relation, or SELECT column FROM it.
func selectFrom(relation *pg_query.Node, column string) *pg_query.SelectStmt {
	what := &pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: &pg_query.ColumnRef{
		Fields: []*pg_query.Node{{Node: &pg_query.Node_AStar{AStar: &pg_query.A_Star{}}}},
	}}}
	if column != "" {
		what = columnNode(column)
	}
	return &pg_query.SelectStmt{
		TargetList: []*pg_query.Node{targetNode("", what)}, FromClause: []*pg_query.Node{relation},
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE,
	}
}

func cloneNode(n *pg_query.Node) *pg_query.Node {
	return proto.Clone(n).(*pg_query.Node) //nolint:errcheck // a clone has its type
}
