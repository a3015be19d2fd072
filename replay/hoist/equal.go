package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// PostgreSQL evaluates equal expressions of a target list, ORDER BY, GROUP BY and DISTINCT ON once: the parser makes
// one target of them (findTargetlistEntrySQL99, parse_clause.c), and above a sort every expression or subexpression
// that equals a sorted one takes its value (search_indexed_tlist_for_non_var, setrefs.c). In
//
//	SELECT random() AS a, x + random() AS b FROM t ORDER BY a
//
// b is x + a. Two expressions are equal if they have the same columns, functions and types after names are resolved,
// casts are added, and subqueries are pulled up. In the random part of a query, equal expressions must stay equal, and
// different ones must stay different. Expressions with the same text keep the same text.

// maxEqual bounds the number of expressions that are compared. A query with more counts as ambiguous.
const maxEqual = 200

// sorted reports whether a query has ORDER BY, DISTINCT, WINDOW or GROUP BY, which reuse the values of equal
// expressions.
func sorted(s *pg_query.SelectStmt) bool {
	return len(s.GetSortClause()) > 0 || len(s.GetDistinctClause()) > 0 || len(s.GetWindowClause()) > 0 || len(s.GetGroupClause()) > 0
}

// results returns the expressions of a query's target list and ORDER BY.
func results(s *pg_query.SelectStmt) []*pg_query.Node {
	var all []*pg_query.Node
	for _, t := range s.GetTargetList() {
		all = append(all, t.GetResTarget().GetVal())
	}
	for _, o := range s.GetSortClause() {
		all = append(all, o.GetSortBy().GetNode())
	}
	return all
}

// ambiguous reports whether two expressions that vary, in a query's results, may be equal although their texts differ.
// split could give the columns in them different names, and they would no longer be equal.
func (h *hoister) ambiguous(s *pg_query.SelectStmt, in *scope) bool {
	if !sorted(s) {
		return false
	}
	varying := map[*pg_query.Node]bool{}
	for _, n := range results(s) {
		h.markVarying(n.ProtoReflect(), in, varying)
	}
	written, compared := map[string]string{}, 0
	for n, is := range varying {
		if !is {
			continue
		}
		if compared++; compared > maxEqual {
			return true
		}
		like, exact := loose(n), key(n)
		if before, ok := written[like]; ok && before != exact {
			return true
		}
		written[like] = exact
	}
	return false
}

// repeated reports whether two columns that a query reads may be the same expression. Volatile expressions of the query
// over these columns are equal after subqueries are pulled up, and would not be equal over the columns of a table.
func (h *hoister) repeated(s *pg_query.SelectStmt, in *scope) bool {
	volatile := false
	for _, n := range results(s) {
		volatile = volatile || h.propertiesOf(n.ProtoReflect(), in).volatile
	}
	if !volatile || !sorted(s) && !h.windows(s) {
		return false
	}
	var found ctes
	for _, f := range s.GetFromClause() {
		if h.repeatedBelow(f.ProtoReflect()) {
			return true
		}
		found.addAll(h.propertiesOf(f.ProtoReflect(), in).reads.list)
	}
	repeats := false
	found.follow(func(c *cte) bool {
		repeats = repeats || h.repeatedBelow(c.node.GetCtequery().ProtoReflect())
		return repeats
	})
	return repeats
}

// windows reports whether a query's results have window functions.
func (h *hoister) windows(s *pg_query.SelectStmt) bool {
	found := false
	for _, n := range results(s) {
		pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
			if call, ok := m.(*pg_query.FuncCall); ok && call.GetOver() != nil {
				found = true
			}
			return !found
		})
	}
	return found
}

// repeatedBelow reports whether a target list below a node may contain an expression twice.
func (h *hoister) repeatedBelow(m protoreflect.Message) bool {
	found := false
	pgparse.Inspect(m, func(m proto.Message) bool {
		if s, ok := m.(*pg_query.SelectStmt); ok && !found {
			repeats, known := h.repeats[s]
			if !known {
				repeats = repeatsTarget(s.GetTargetList())
				h.repeats[s] = repeats
			}
			found = repeats
		}
		return !found
	})
	return found
}

// repeatsTarget reports whether a target list may contain an expression twice: as two targets, or as a column and in a
// star.
func repeatsTarget(targets []*pg_query.Node) bool {
	seen, stars, columns := map[string]bool{}, false, false
	for _, t := range targets {
		val := t.GetResTarget().GetVal()
		like := loose(val)
		if seen[like] {
			return true
		}
		seen[like] = true
		stars = stars || isStar(val)
		columns = columns || !isStar(val) && val.GetColumnRef() != nil
	}
	return stars && columns
}

// loose returns equal strings for expressions that differ only in qualifiers, casts and collations.
func loose(n *pg_query.Node) string {
	n = proto.CloneOf(n)
	loosen(n.ProtoReflect())
	return key(n)
}

// loosen removes the qualifiers, casts and collations below a node, in place.
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
		n.Fields = lastName(n.GetFields())
	case *pg_query.FuncCall:
		n.Funcname = lastName(n.GetFuncname())
	case *pg_query.A_Expr:
		n.Name = lastName(n.GetName())
	case *pg_query.SubLink:
		n.OperName = lastName(n.GetOperName())
	}
	pgparse.Children(m, loosen)
}

func lastName(names []*pg_query.Node) []*pg_query.Node { return names[max(len(names)-1, 0):] }
