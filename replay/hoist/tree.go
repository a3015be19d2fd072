package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// key returns equal strings for two trees exactly when they differ only in locations.
func key(m proto.Message) string {
	c := proto.Clone(m)
	pgparse.ClearLocations(c.ProtoReflect())
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
