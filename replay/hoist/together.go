package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Together reports whether trials of a query are as independent in one transaction as in separate ones. That holds if
// the query reads no clock of the transaction, every function that it calls is known and does not depend on the
// transaction's state (Traits.Transaction), and all that it reads are CTEs, tables of pieces, and known relations that
// are no views.
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
	independent := true
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		independent = independent && k.independent(m, ctes)
		return independent
	})
	return independent
}

// independent reports whether one node allows trials to share a transaction. ctes holds the names of all CTEs of the
// statement.
func (k *Knowledge) independent(m proto.Message, ctes map[string]bool) bool {
	switch n := m.(type) {
	case *pg_query.FuncCall:
		traits, known := k.Functions[functionName(n)]
		return known && !traits.Transaction
	case *pg_query.SQLValueFunction, *pg_query.LockingClause:
		return false
	case *pg_query.A_Const:
		return !isTimeWord(n.GetSval().GetSval())
	case *pg_query.RangeVar:
		switch n.GetSchemaname() {
		case "":
			return ctes[n.GetRelname()]
		case tempSchema:
			return true
		}
		r := relationOf(n)
		varies, known := k.Relations[r]
		_, view := k.Views[r]
		return known && !varies && !view
	}
	return !k.any(m, func(t Traits) bool { return t.Transaction })
}
