package hoist

import (
	"fmt"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// split moves the deterministic part of a query into a piece. The random expressions of its target list, HAVING and
// ORDER BY stay in the query, which evaluates them for each row of the piece. split does nothing if that could change a
// result or would not save time.
func (h *hoister) split(s *pg_query.SelectStmt, props *properties, mayCorrelate bool) {
	if !h.splittable(s, props.scope) || mayCorrelate && h.opt.NoSubLinks {
		return
	}
	c := &columns{h: h, in: props.scope, group: groupNames(s), names: map[string]string{}}
	targets := make([]*pg_query.Node, len(s.GetTargetList()))
	outputs := map[string]bool{}
	for i, t := range s.GetTargetList() {
		name := columnName(t.GetResTarget())
		if name == "" {
			return
		}
		outputs[name] = true
		targets[i] = targetNode(name, c.target(t.GetResTarget()))
	}
	group, ok := c.groups(s)
	if !ok {
		return
	}
	piece := &pg_query.SelectStmt{
		FromClause: s.GetFromClause(), WhereClause: s.GetWhereClause(), GroupClause: group,
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE,
	}
	var where *pg_query.Node
	if having := s.GetHavingClause(); having != nil && h.varies(having.ProtoReflect(), props.scope) {
		where = c.expression(having)
	} else {
		piece.HavingClause = having
	}
	order := make([]*pg_query.Node, len(s.GetSortClause()))
	for i, o := range s.GetSortClause() {
		by := o.GetSortBy()
		column := by.GetNode().GetColumnRef()
		switch {
		case by.GetNode().GetAConst() != nil, len(column.GetFields()) == 1 && outputs[pgparse.Last(column.GetFields())]:
			order[i] = o
		default:
			order[i] = &pg_query.Node{Node: &pg_query.Node_SortBy{SortBy: &pg_query.SortBy{
				Node: c.expression(by.GetNode()), SortbyDir: by.GetSortbyDir(), SortbyNulls: by.GetSortbyNulls(), UseOp: by.GetUseOp(),
			}}}
		}
	}
	if c.impossible {
		return
	}
	piece.TargetList = c.list
	of := h.propertiesOf(piece.ProtoReflect(), props.scope)
	h.selects[piece] = of
	p := h.piece(piece, of.reads.list, mayCorrelate)
	if of.varies || p == nil {
		return
	}
	s.TargetList, s.FromClause, s.WhereClause, s.SortClause = targets, []*pg_query.Node{rangeNode(tempSchema, p.name)}, where, order
	s.GroupClause, s.HavingClause = nil, nil
}

// splittable reports whether split keeps the result of a query and can save time. The random expressions must be above
// the query's aggregation: a FROM, WHERE or GROUP BY that varies is excluded, and so is a HAVING that varies without
// GROUP BY. Also excluded are set operations, VALUES, a query without FROM, window functions, locking clauses, INTO,
// DISTINCT ON, GROUP BY DISTINCT, grouping sets and, in the other clauses, unknown or set-returning functions,
// GROUPING, and aggregates or subqueries that vary. A piece saves time if it contains an aggregation, a condition or a
// join.
func (h *hoister) splittable(s *pg_query.SelectStmt, in *scope) bool {
	if s.GetOp() != pg_query.SetOperation_SETOP_NONE || len(s.GetValuesLists()) > 0 || len(s.GetFromClause()) == 0 ||
		len(s.GetWindowClause()) > 0 || len(s.GetLockingClause()) > 0 || s.GetIntoClause() != nil || s.GetGroupDistinct() {
		return false
	}
	if slices.ContainsFunc(s.GetDistinctClause(), func(n *pg_query.Node) bool { return n.GetNode() != nil }) { // DISTINCT ON
		return false
	}
	for _, n := range append(slices.Concat(s.GetFromClause(), s.GetGroupClause()), s.GetWhereClause()) {
		if n.GetGroupingSet() != nil || h.varies(n.ProtoReflect(), in) {
			return false
		}
	}
	above := slices.Concat(s.GetTargetList(), s.GetSortClause())
	having := s.GetHavingClause()
	if having != nil {
		above = append(above, having)
		if len(s.GetGroupClause()) == 0 && h.varies(having.ProtoReflect(), in) {
			return false // without this HAVING, the piece might not be an aggregation
		}
	}
	aggregates, plain := false, true
	for _, n := range above {
		a, p := h.calls(n, in)
		aggregates, plain = aggregates || a, plain && p
	}
	single := len(s.GetFromClause()) == 1 && s.GetFromClause()[0].GetRangeVar() != nil
	return plain && (aggregates || having != nil || len(s.GetGroupClause()) > 0 || s.GetWhereClause() != nil || !single)
}

// calls inspects the functions of an expression above the aggregation. aggregates reports whether one is an aggregate;
// plain, whether evaluating the expression for each row of a piece gives the same result.
func (h *hoister) calls(n *pg_query.Node, in *scope) (aggregates, plain bool) {
	plain = true
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg_query.SubLink:
			plain = plain && !h.varies(n.ProtoReflect(), in)
			return false
		case *pg_query.GroupingFunc:
			plain = false
		case *pg_query.FuncCall:
			traits, known := h.know.Functions[functionName(n)]
			varies := h.know.callVaries(n)
			special := n.GetAggStar() || n.GetAggDistinct() || n.GetAggWithinGroup() || n.GetAggFilter() != nil || len(n.GetAggOrder()) > 0
			switch {
			case !known, traits.ReturnsSet, n.GetOver() != nil, varies && (traits.Aggregate || special):
				plain = false
			case traits.Aggregate:
				aggregates = true
				plain = plain && !h.varies(n.ProtoReflect(), in)
			}
		}
		return true
	})
	return aggregates, plain
}

// groupNames returns the unqualified names in GROUP BY, which may refer to an output column.
func groupNames(s *pg_query.SelectStmt) map[string]bool {
	names := map[string]bool{}
	for _, g := range s.GetGroupClause() {
		if fields := g.GetColumnRef().GetFields(); len(fields) == 1 {
			names[pgparse.Last(fields)] = true
		}
	}
	return names
}

// columns collects the columns of a piece. The rest of the query refers to a deterministic expression by its column.
type columns struct {
	h          *hoister
	in         *scope
	group      map[string]bool
	list       []*pg_query.Node
	names      map[string]string       // of columns, by key of their expression
	varying    map[*pg_query.Node]bool // which parts of the current expression vary
	impossible bool
}

// column returns a reference to the piece's column that holds a deterministic expression, and adds the column if the
// piece has none for it. name is the column's name; with "" column chooses one.
func (c *columns) column(n *pg_query.Node, name string) *pg_query.Node {
	expression := key(n)
	if known := c.names[expression]; known != "" && (name == "" || name == known) {
		return columnNode(known)
	}
	if name == "" {
		name = fmt.Sprintf("dpwatch_%d", len(c.list)+1)
	}
	if c.names[expression] == "" { // equal expressions stay equal: one name for all except the target that GROUP BY names
		c.names[expression] = name
	}
	c.list = append(c.list, targetNode(name, n))
	return columnNode(name)
}

// target returns an output expression over the piece's columns. A target that GROUP BY names keeps its name there.
func (c *columns) target(t *pg_query.ResTarget) *pg_query.Node {
	if c.group[t.GetName()] && !c.h.varies(t.GetVal().ProtoReflect(), c.in) {
		return c.column(t.GetVal(), t.GetName())
	}
	return c.expression(t.GetVal())
}

// groups returns GROUP BY for the piece, in which a position is that of the piece's column. It returns false if a
// position does not refer to a deterministic target.
func (c *columns) groups(s *pg_query.SelectStmt) ([]*pg_query.Node, bool) {
	var group []*pg_query.Node
	for _, g := range s.GetGroupClause() {
		if g.GetAConst() == nil {
			group = append(group, g)
			continue
		}
		at := int(g.GetAConst().GetIval().GetIval())
		if at < 1 || at > len(s.GetTargetList()) {
			return nil, false
		}
		val := s.GetTargetList()[at-1].GetResTarget().GetVal()
		if c.h.varies(val.ProtoReflect(), c.in) {
			return nil, false
		}
		name := pgparse.Last(c.column(val, "").GetColumnRef().GetFields())
		position := 1 + slices.IndexFunc(c.list, func(t *pg_query.Node) bool { return t.GetResTarget().GetName() == name })
		group = append(group, &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{
			Val: &pg_query.A_Const_Ival{Ival: &pg_query.Integer{Ival: int32(position)}}, //nolint:gosec // at most 1664 columns
		}}})
	}
	return group, true
}

// expression returns an expression over the piece's columns: its largest deterministic parts that contain a column, a
// subquery or an aggregate become columns of the piece.
func (c *columns) expression(n *pg_query.Node) *pg_query.Node {
	n = proto.CloneOf(n)
	c.varying = map[*pg_query.Node]bool{}
	c.h.markVarying(n.ProtoReflect(), c.in, c.varying)
	c.replace(n, false)
	return n
}

// replace turns the deterministic parts of n into columns, in place. lazy: PostgreSQL may skip the evaluation of n, so
// that most parts whose evaluation can fail are not computed in advance. Only columns, aggregates and subqueries are: a
// column cannot fail, and PostgreSQL computes aggregates before the expressions over them. A subquery can fail although
// the query never evaluates it; then no table is made, and every trial runs the whole query.
func (c *columns) replace(n *pg_query.Node, lazy bool) {
	if !c.varying[n] && c.candidate(n, lazy) {
		if c.rowDependent(n) {
			n.Node = c.column(proto.CloneOf(n), "").Node
		}
		return
	}
	switch v := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef: // a star
		c.impossible = true
		return
	case *pg_query.Node_CaseExpr, *pg_query.Node_CoalesceExpr, *pg_query.Node_BoolExpr:
		lazy = !c.h.opt.Eager
	case *pg_query.Node_FuncCall:
		if c.h.know.Functions[functionName(v.FuncCall)].Aggregate {
			c.impossible = true
			return
		}
	}
	c.below(n.ProtoReflect(), lazy)
}

// below is replace for all nodes below a message.
func (c *columns) below(m protoreflect.Message, lazy bool) {
	pgparse.Children(m, func(child protoreflect.Message) {
		if node, ok := child.Interface().(*pg_query.Node); ok {
			c.replace(node, lazy)
			return
		}
		c.below(child, lazy)
	})
}

// candidate reports whether a column can replace a deterministic node.
func (c *columns) candidate(n *pg_query.Node, lazy bool) bool {
	switch v := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		return pgparse.Last(v.ColumnRef.GetFields()) != ""
	case *pg_query.Node_SubLink:
		return true
	case *pg_query.Node_FuncCall:
		return !lazy || c.h.know.Functions[functionName(v.FuncCall)].Aggregate
	case *pg_query.Node_AExpr, *pg_query.Node_TypeCast, *pg_query.Node_CaseExpr, *pg_query.Node_CoalesceExpr, *pg_query.Node_MinMaxExpr,
		*pg_query.Node_BoolExpr, *pg_query.Node_NullTest, *pg_query.Node_BooleanTest, *pg_query.Node_AArrayExpr, *pg_query.Node_CollateClause,
		*pg_query.Node_AIndirection:
		return !lazy
	}
	return false
}

// rowDependent reports whether an expression contains a column, a subquery or an aggregate. Other expressions stay
// where they are, because a literal gets its type from its context.
func (c *columns) rowDependent(n *pg_query.Node) bool {
	found := false
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		switch v := m.(type) {
		case *pg_query.ColumnRef, *pg_query.SubLink:
			found = true
		case *pg_query.FuncCall:
			found = found || c.h.know.Functions[functionName(v)].Aggregate
		}
		return !found
	})
	return found
}
