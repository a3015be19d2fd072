package rewrite

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// sorted reports whether a query fixes the order of its rows by more than its group keys. Without an ORDER BY the order
// depends on how the server stores and reads a copy; so does the order of rows with equal sort keys if only some of the
// group keys are sorted by.
func sorted(s *pg_query.SelectStmt) bool {
	for _, by := range s.GetSortClause() {
		if !isGroupKey(s, by.GetSortBy().GetNode()) {
			return true
		}
	}
	return false
}

// isGroupKey reports whether an expression of ORDER BY is also in GROUP BY.
func isGroupKey(s *pg_query.SelectStmt, by *pg_query.Node) bool {
	by = selected(s, by)
	for _, key := range s.GetGroupClause() {
		if proto.Equal(by, selected(s, key)) {
			return true
		}
	}
	return false
}

// selected returns the expression that GROUP BY or ORDER BY refers to, without locations and without the table of a
// column: a number or a column's name may refer to a target.
func selected(s *pg_query.SelectStmt, n *pg_query.Node) *pg_query.Node {
	targets := s.GetTargetList()
	if i := n.GetAConst().GetIval().GetIval(); n.GetAConst().GetIval() != nil && i >= 1 && int(i) <= len(targets) {
		n = targets[i-1].GetResTarget().GetVal()
	} else if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		for _, t := range targets {
			if t.GetResTarget().GetName() == fields[0].GetString_().GetSval() && t.GetResTarget().GetName() != "" {
				n = t.GetResTarget().GetVal()
				break
			}
		}
	}
	if n == nil {
		return nil
	}
	n = proto.CloneOf(n)
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		if c, ok := m.(*pg_query.ColumnRef); ok && len(c.GetFields()) > 1 {
			c.Fields = c.Fields[len(c.Fields)-1:]
		}
		return true
	})
	pgparse.ClearLocations(n.ProtoReflect())
	return n
}
