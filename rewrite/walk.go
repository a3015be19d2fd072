package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/judge"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// place is the context of the walk.
type place struct {
	ctes *pgparse.CTEs
	// userArgs: within the arguments of a user-defined function, where a string may become a name.
	userArgs bool
	// near is the byte offset of the innermost node that has one, for refusals of nodes without an offset; -1 = none.
	near int32
}

// walker visits every node of one statement: it passes those that name something to the judge, and collects the edits.
type walker struct {
	judge *judge.Statement
	edits []edit
}

// walk visits a statement.
func walk(s *judge.Statement, root protoreflect.Message) []edit {
	w := &walker{judge: s}
	w.visit(root, place{near: -1})
	return w.edits
}

// visit handles one message of the tree. The kinds listed here are all that a SELECT can contain; any other kind is
// refused, so that a node whose meaning is not implemented is never replayed.
func (w *walker) visit(m protoreflect.Message, at place) {
	if n, ok := m.Interface().(interface{ GetLocation() int32 }); ok && n.GetLocation() > 0 {
		at.near = n.GetLocation()
	}
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		w.selectStmt(n, m, at)
		return
	case *pg_query.RangeVar:
		w.rangeVar(n, at)
	case *pg_query.ColumnRef:
		w.columnRef(n)
	case *pg_query.FuncCall:
		at = w.funcCall(n, at)
	case *pg_query.TypeName:
		w.judge.Type(n)
	case *pg_query.TypeCast:
		w.judge.Cast(n)
	case *pg_query.ParamRef:
		w.judge.Param(n, at.userArgs)
	case *pg_query.A_Const:
		w.judge.Constant(n, at.userArgs)
	case *pg_query.A_Expr:
		w.judge.Expression(n)
	case *pg_query.NullTest:
		w.judge.NullTest(n)
	case *pg_query.SubLink:
		w.judge.SubLink(n)
	case *pg_query.CaseExpr:
		if n.GetArg() != nil {
			w.judge.Operator(nil, resolve.CaseOperands(n), "CaseExpr", n.GetLocation())
		}
	case *pg_query.JoinExpr:
		if n.GetIsNatural() || len(n.GetUsingClause()) > 0 {
			w.judge.Operator(nil, resolve.Operands{Name: "="}, "JoinExpr", leftmost(n.GetLarg(), at.near))
		}
	case *pg_query.SortBy:
		w.judge.Operator(n.GetUseOp(), resolve.Operands{Name: pgparse.Last(n.GetUseOp()), Left: []*pg_query.Node{n.GetNode()}}, "SortBy", n.GetLocation())
	case *pg_query.A_Indirection:
		w.judge.Indirection(n, at.near)
	case *pg_query.JsonObjectConstructor, *pg_query.JsonArrayConstructor, *pg_query.JsonArrayQueryConstructor, *pg_query.JsonObjectAgg, *pg_query.JsonArrayAgg:
		w.judge.JSON(m, at.near)
	case *pg_query.SQLValueFunction:
		w.sqlValue(n)
	case *pg_query.RangeTableSample:
		w.judge.Sample(n)
	case *pg_query.LockingClause:
		w.judge.Refuse(reasons.SideEffects, "LockingClause", lockOffset(n, at), "a clause that locks rows", "")
		return
	case *pg_query.InsertStmt, *pg_query.UpdateStmt, *pg_query.DeleteStmt, *pg_query.MergeStmt:
		w.judge.RefuseChange(string(m.Descriptor().Name()), at.near)
		return
	case *pg_query.Node, *pg_query.List, *pg_query.ResTarget, *pg_query.String, *pg_query.Integer, *pg_query.Float,
		*pg_query.Boolean, *pg_query.BitString, *pg_query.A_Star, *pg_query.A_ArrayExpr, *pg_query.A_Indices,
		*pg_query.BoolExpr, *pg_query.BooleanTest, *pg_query.CaseWhen,
		*pg_query.CoalesceExpr, *pg_query.MinMaxExpr, *pg_query.CollateClause, *pg_query.RowExpr, *pg_query.Alias,
		*pg_query.RangeSubselect, *pg_query.RangeFunction, *pg_query.ColumnDef,
		*pg_query.RangeTableFunc, *pg_query.RangeTableFuncCol, *pg_query.CTESearchClause, *pg_query.CTECycleClause,
		*pg_query.WindowDef, *pg_query.GroupingSet, *pg_query.GroupingFunc, *pg_query.NamedArgExpr,
		*pg_query.XmlExpr, *pg_query.XmlSerialize, *pg_query.JsonFormat, *pg_query.JsonReturning, *pg_query.JsonValueExpr,
		*pg_query.JsonOutput, *pg_query.JsonKeyValue, *pg_query.JsonAggConstructor, *pg_query.JsonIsPredicate:
	default:
		w.judge.Refuse(reasons.UnsupportedNode, string(m.Descriptor().Name()), at.near, "syntax that dpwatch does not support", "")
		return
	}
	w.children(m, at)
}

// children visits every message below m except those of the field skip.
func (w *walker) children(m protoreflect.Message, at place, skip ...protoreflect.Name) {
	pgparse.Children(m, func(c protoreflect.Message) { w.visit(c, at) }, skip...)
}

// leftmost returns the offset of the first relation of a join, which has no offset itself, or near.
func leftmost(n *pg_query.Node, near int32) int32 {
	for n.GetJoinExpr() != nil {
		n = n.GetJoinExpr().GetLarg()
	}
	if n.GetRangeVar() != nil {
		return n.GetRangeVar().GetLocation()
	}
	return near
}

// lockOffset returns the offset of the first relation in a locking clause, or of the nearest node.
func lockOffset(n *pg_query.LockingClause, at place) int32 {
	if len(n.GetLockedRels()) > 0 {
		return n.GetLockedRels()[0].GetRangeVar().GetLocation()
	}
	return at.near
}

// selectStmt opens the scope of WITH for the rest of the statement, set-operation arms included.
func (w *walker) selectStmt(n *pg_query.SelectStmt, m protoreflect.Message, at place) {
	if n.GetIntoClause() != nil {
		w.judge.Refuse(reasons.SideEffects, "IntoClause", n.GetIntoClause().GetRel().GetLocation(), "SELECT INTO creates a table", "")
		return
	}

	with := n.GetWithClause()
	at.ctes = at.ctes.With(with, func(query *pg_query.Node, in *pgparse.CTEs) {
		cte := query.GetCommonTableExpr()
		if cte == nil {
			w.judge.Refuse(reasons.UnsupportedNode, nodeName(query), with.GetLocation(), "an unsupported kind of WITH query", "")
			return
		}
		w.children(cte.ProtoReflect(), place{ctes: in, userArgs: at.userArgs, near: cte.GetLocation()})
	})
	w.children(m, at, "with_clause")
}

// rangeVar rewrites a relation in FROM.
func (w *walker) rangeVar(n *pg_query.RangeVar, at place) {
	if n.GetSchemaname() == "" && at.ctes.Has(n.GetRelname()) {
		return
	}
	qualifiers := 0
	for _, part := range []string{n.GetCatalogname(), n.GetSchemaname()} {
		if part != "" {
			qualifiers++
		}
	}
	t, kind := w.judge.Relation(n)
	w.qualify(t, kind, edit{node: nodeRangeVar, at: n.GetLocation(), qualifiers: qualifiers})
}

// columnRef rewrites schema.table.column and database.schema.table.column, which would no longer match their relation.
func (w *walker) columnRef(n *pg_query.ColumnRef) {
	t, kind := w.judge.Column(n)
	w.qualify(t, kind, edit{node: nodeColumnRef, at: n.GetLocation(), qualifiers: len(n.GetFields()) - 2})
}

// funcCall rewrites the call of a function that neighbours have copies of, and returns the place for the arguments.
func (w *walker) funcCall(n *pg_query.FuncCall, at place) place {
	copied, texts := w.judge.Call(n)
	if copied != (Table{}) {
		w.edit(edit{node: nodeFuncCall, at: n.GetLocation(), qualifiers: len(n.GetFuncname()) - 1, table: copied, protected: true})
	}
	at.userArgs = at.userArgs || texts
	return at
}

// qualify records the edit of a relation's name. A system relation without a schema has none.
func (w *walker) qualify(t Table, kind resolve.Kind, e edit) {
	if kind == resolve.KindUnknown || kind == resolve.KindSystem && e.qualifiers == 0 {
		return
	}
	e.table, e.protected = t, kind == resolve.KindProtected
	w.edit(e)
}

// edit records one edit, unless it would change nothing.
func (w *walker) edit(e edit) {
	if !e.protected && e.qualifiers == 1 {
		return
	}
	w.edits = append(w.edits, e)
}

// sqlValue passes on the keywords that return properties of the session.
func (w *walker) sqlValue(n *pg_query.SQLValueFunction) {
	switch n.GetOp() {
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg_query.SQLValueFunctionOp_SVFOP_CURRENT_USER,
		pg_query.SQLValueFunctionOp_SVFOP_USER, pg_query.SQLValueFunctionOp_SVFOP_SESSION_USER,
		pg_query.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG, pg_query.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		what := strings.ToLower(strings.TrimPrefix(n.GetOp().String(), "SVFOP_"))
		w.judge.SessionValue(n, what)
	}
}
