package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Together reports whether executions of a query may share a transaction and still be as independent as in separate
// transactions: its text does not contain the time, and every function that it calls is known not to depend on the state of
// a transaction (Traits.Transaction). It may read the tables of pieces, and relations that are not views.
func Together(sql string, k Knowledge) bool {
	stmt, err := parse(sql)
	if err != nil {
		return false
	}
	ctes := map[string]bool{}
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		if c, ok := m.(*pg_query.CommonTableExpr); ok {
			ctes[c.GetCtename()] = true
		}
		return true
	})
	free := true
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		free = free && k.independent(m, ctes)
		return free
	})
	return free
}

// free judges one node. ctes are the names of all CTEs of the statement.
func (k *Knowledge) independent(m proto.Message, ctes map[string]bool) bool {
	switch n := m.(type) {
	case *pg_query.FuncCall:
		traits, known := k.Functions[functionName(n)]
		return known && !traits.Transaction
	case *pg_query.SQLValueFunction, *pg_query.LockingClause:
		return false
	case *pg_query.A_Const:
		return !isTimeWord(n.GetSval().GetSval())
	case *pg_query.ColumnRef: // x.f may be the call f(x)
		return len(n.GetFields()) < 2 || !k.Functions[pgparse.Last(n.GetFields())].Transaction
	case *pg_query.A_Indirection:
		return !slices.ContainsFunc(n.GetIndirection(), func(i *pg_query.Node) bool { return k.Functions[i.GetString_().GetSval()].Transaction })
	case *pg_query.A_Expr:
		return !k.Operators[pgparse.Last(n.GetName())]
	case *pg_query.SubLink:
		return !k.Operators[pgparse.Last(n.GetOperName())]
	case *pg_query.SortBy:
		return !k.Operators[pgparse.Last(n.GetUseOp())]
	case *pg_query.RangeVar:
		switch n.GetSchemaname() {
		case "":
			return ctes[n.GetRelname()]
		case tempSchema:
			return true
		}
		r := relationOf(n)
		varies, known := k.Relations[r]
		return known && !varies && !k.Views[r]
	}
	return true
}
