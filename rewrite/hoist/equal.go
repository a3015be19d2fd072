package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// PostgreSQL evaluates equal expressions of a target list and ORDER BY, GROUP BY or DISTINCT ON once: the parser makes one
// target of them (findTargetlistEntrySQL99, parse_clause.c), and a node of a plan takes an expression that a node below it has
// computed for its result (search_indexed_tlist_for_non_var, setrefs.c). Equal is what names the same columns, functions and
// types after analysis, also where one is written with a qualifier or a cast that the other has implicitly. So two volatile
// expressions that may be equal must stay equal in the rest of a query that is split, and two that are not must stay different.

// ambiguous reports whether two volatile expressions of a query's results may be equal though they are written in different
// ways: their columns could get two names. What is written alike gets one.
func (h *hoister) ambiguous(s *pg_query.SelectStmt, in *scope) bool {
	written := map[string]string{}
	differ := func(n *pg_query.Node) bool {
		if !h.volatile(n.ProtoReflect(), in) {
			return false
		}
		like, exact := loose(n), key(n)
		if before, ok := written[like]; ok && before != exact {
			return true
		}
		written[like] = exact
		return false
	}
	for _, t := range s.GetTargetList() {
		if differ(t.GetResTarget().GetVal()) {
			return true
		}
	}
	for _, o := range s.GetSortClause() {
		if differ(o.GetSortBy().GetNode()) {
			return true
		}
	}
	return false
}

// loose is equal for two expressions that differ in qualifiers, casts and collations alone.
func loose(n *pg_query.Node) string {
	n = cloneNode(n)
	loosen(n.ProtoReflect())
	return key(n)
}

func loosen(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg_query.Node:
		for n.GetTypeCast() != nil || n.GetCollateClause() != nil {
			arg := n.GetTypeCast().GetArg()
			if arg == nil {
				arg = n.GetCollateClause().GetArg()
			}
			n.Node = arg.GetNode()
		}
	case *pg_query.ColumnRef:
		n.Fields = last(n.GetFields())
	case *pg_query.FuncCall:
		n.Funcname = last(n.GetFuncname())
	case *pg_query.A_Expr:
		n.Name = last(n.GetName())
	case *pg_query.SubLink:
		n.OperName = last(n.GetOperName())
	}
	children(m, loosen)
}

func last(names []*pg_query.Node) []*pg_query.Node { return names[max(len(names)-1, 0):] }
