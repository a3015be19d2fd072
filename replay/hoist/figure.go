package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// columnName returns the name that the server gives to a result column (FigureColname in PostgreSQL's parse_target.c),
// or "" if it cannot be derived here.
func columnName(t *pg_query.ResTarget) string {
	if t.GetName() != "" {
		return t.GetName()
	}
	name, _ := figure(t.GetVal())
	return name
}

// figure returns a name and its strength: 0 for a default that any other name replaces, 1 for the name of a type or
// "case", 2 for any other name.
func figure(n *pg_query.Node) (string, int) {
	switch n := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		if name := pgparse.Last(n.ColumnRef.GetFields()); name != "" {
			return name, 2
		}
		return "", 0 // a star
	case *pg_query.Node_FuncCall:
		return functionName(n.FuncCall), 2
	case *pg_query.Node_AExpr:
		if n.AExpr.GetKind() == pg_query.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
		return "?column?", 0
	case *pg_query.Node_AConst, *pg_query.Node_ParamRef, *pg_query.Node_BoolExpr, *pg_query.Node_NullTest, *pg_query.Node_BooleanTest:
		return "?column?", 0
	case *pg_query.Node_TypeCast:
		name, strength := figure(n.TypeCast.GetArg())
		if strength <= 1 && name != "" {
			if of := pgparse.Last(n.TypeCast.GetTypeName().GetNames()); of != "" {
				return of, 1
			}
		}
		return name, strength
	case *pg_query.Node_CollateClause:
		return figure(n.CollateClause.GetArg())
	case *pg_query.Node_CaseExpr:
		if n.CaseExpr.GetDefresult() != nil {
			if name, strength := figure(n.CaseExpr.GetDefresult()); strength > 1 || name == "" {
				return name, strength
			}
		}
		return "case", 1
	case *pg_query.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg_query.Node_MinMaxExpr:
		if n.MinMaxExpr.GetOp() == pg_query.MinMaxOp_IS_GREATEST {
			return "greatest", 2
		}
		return "least", 2
	case *pg_query.Node_AArrayExpr:
		return "array", 2
	case *pg_query.Node_RowExpr:
		return "row", 2
	case *pg_query.Node_SubLink:
		switch n.SubLink.GetSubLinkType() {
		case pg_query.SubLinkType_EXISTS_SUBLINK:
			return "exists", 2
		case pg_query.SubLinkType_ARRAY_SUBLINK:
			return "array", 2
		case pg_query.SubLinkType_EXPR_SUBLINK:
			if targets := n.SubLink.GetSubselect().GetSelectStmt().GetTargetList(); len(targets) > 0 {
				if name := columnName(targets[0].GetResTarget()); name != "" && name != "?column?" {
					return name, 2
				}
			}
		}
	}
	return "", 0
}
