package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// The planner's placement of a volatile condition determines how often it is evaluated: a condition over columns of one
// relation is evaluated for each row of that relation, before it is joined with others, and one over two relations for each
// pair, even if the query joins a third. A subquery in FROM does not prevent that:
//
//   - pull_up_subqueries (prepjointree.c) merges a simple one into the enclosing query (is_simple_subquery: no set
//     operation, aggregate, window function, set-returning function, GROUP BY, HAVING, ORDER BY, DISTINCT, LIMIT, FOR
//     UPDATE, WITH; no volatile function in its target list). pull_up_sublinks does the same with subqueries of IN and
//     EXISTS.
//   - SS_process_ctes (subselect.c) turns a CTE into a subquery if it is read once or is NOT MATERIALIZED, and holds no
//     volatile function and no recursion.
//   - set_subquery_pathlist (allpaths.c) pushes conditions into other subqueries: into their WHERE, or into HAVING with
//     GROUP BY or aggregates (subquery_push_qual), if subquery_is_pushdown_safe and qual_is_pushdown_safe allow it: not
//     with LIMIT and OFFSET, and volatile ones not with DISTINCT, window functions and set-returning functions. Each arm
//     of a set operation gets the condition.
//
// A condition without columns is evaluated where it is written, for each row of the join (distribute_qual_to_rels,
// initsplan.c), with two exceptions: it is pushed into a set operation, before duplicates are removed; and with a subquery
// of IN or EXISTS it is evaluated for each of the rows that may match, until one does. A random value drawn within an item
// of FROM, or below it, may be drawn again for each row of the other side of a nested loop. The same holds from PostgreSQL
// 14 to 18.
//
// A level is a query together with the subqueries that the planner merges into it. A level that joins several relations,
// and has a volatile condition over columns or a random item of FROM, is left unchanged, with everything that its FROM and
// WHERE read: replacing one of its parts by a table would change the number of draws or the plan. The same applies to a
// level whose equal expressions would no longer be equal (repeated).

// conditions summarises the volatile conditions on the input of a query.
type volatileConditions struct {
	readColumns bool // one reads columns or belongs to a join
	exist       bool
}

// conditionsOf returns the volatile conditions of a query's own WHERE and ON.
func (h *hoister) conditionsOf(s *pg_query.SelectStmt, in *scope) volatileConditions {
	var c volatileConditions
	h.addCondition(s.GetWhereClause(), in, &c)
	for _, f := range s.GetFromClause() {
		h.addJoinConditions(f, in, &c)
	}
	return c
}

func (h *hoister) addCondition(n *pg_query.Node, in *scope, c *volatileConditions) {
	if n == nil {
		return
	}
	if b := n.GetBoolExpr(); b.GetBoolop() == pg_query.BoolExprType_AND_EXPR {
		for _, arg := range b.GetArgs() {
			h.addCondition(arg, in, c)
		}
		return
	}
	if h.propertiesOf(n.ProtoReflect(), in).volatile {
		c.exist = true
		c.readColumns = c.readColumns || mayReadColumns(n)
	}
}

// inputs returns the items of a query's FROM, and its WHERE.
func fromAndWhere(s *pg_query.SelectStmt) []*pg_query.Node {
	all := slices.Clone(s.GetFromClause())
	if where := s.GetWhereClause(); where != nil {
		all = append(all, where)
	}
	return all
}

func mayReadColumns(n *pg_query.Node) bool {
	found := false
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		switch m.(type) {
		case *pg_query.ColumnRef, *pg_query.SubLink, *pg_query.CurrentOfExpr:
			found = true
		}
		return !found
	})
	return found
}

func (h *hoister) addJoinConditions(n *pg_query.Node, in *scope, c *volatileConditions) {
	j := n.GetJoinExpr()
	if j == nil {
		return
	}
	h.addJoinConditions(j.GetLarg(), in, c)
	h.addJoinConditions(j.GetRarg(), in, c)
	if j.GetQuals() != nil && h.propertiesOf(j.GetQuals().ProtoReflect(), in).volatile {
		c.exist, c.readColumns = true, true
	}
}

// reads summarises what a level joins.
type joinInputs struct {
	relations    int
	setOperation bool // a set operation
	semijoin     bool // a subquery of WHERE or ON
	volatile     bool // an item is random
}

func (r *joinInputs) add(other joinInputs) {
	r.relations += other.relations
	r.setOperation = r.setOperation || other.setOperation
	r.semijoin = r.semijoin || other.semijoin
	r.volatile = r.volatile || other.volatile
}

// unknown is the value for anything that cannot be judged.
var unknownInputs = joinInputs{relations: 2, setOperation: true, volatile: true}

// from returns what FROM and WHERE of a query join: with pushed, the relations over which a condition on the query is
// distributed; otherwise those that the planner joins at this level.
func (h *hoister) joinInputs(s *pg_query.SelectStmt, in *scope, forPushdown bool) joinInputs {
	var r joinInputs
	for _, f := range s.GetFromClause() {
		r.add(h.itemInputs(f, in, forPushdown))
	}
	if s.GetWhereClause() != nil {
		r.add(h.subLinkInputs(s.GetWhereClause(), in))
	}
	return r
}

// subLinks counts the subqueries of a condition, which may become joins.
func (h *hoister) subLinkInputs(n *pg_query.Node, in *scope) joinInputs {
	var r joinInputs
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		link, ok := m.(*pg_query.SubLink)
		if ok {
			r.add(joinInputs{relations: 1, semijoin: true, volatile: h.propertiesOf(link.ProtoReflect(), in).volatile})
		}
		return !ok
	})
	return r
}

// item judges one item of FROM.
func (h *hoister) itemInputs(node *pg_query.Node, in *scope, forPushdown bool) joinInputs {
	switch n := node.GetNode().(type) {
	case *pg_query.Node_JoinExpr:
		r := h.itemInputs(n.JoinExpr.GetLarg(), in, forPushdown)
		r.add(h.itemInputs(n.JoinExpr.GetRarg(), in, forPushdown))
		if n.JoinExpr.GetQuals() != nil {
			r.add(h.subLinkInputs(n.JoinExpr.GetQuals(), in))
		}
		return r
	case *pg_query.Node_RangeVar:
		return h.relationInputs(n.RangeVar, in, forPushdown)
	case *pg_query.Node_RangeSubselect:
		return h.subqueryInputs(n.RangeSubselect.GetSubquery().GetSelectStmt(), forPushdown)
	case *pg_query.Node_RangeFunction:
		// The result of a function is reused for the next row of another item, unless its arguments come from that row.
		r := joinInputs{relations: 1, volatile: mayReadColumns(node) && h.propertiesOf(node.ProtoReflect(), in).volatile}
		if forPushdown { // one in SQL may become a subquery (inline_set_returning_function)
			r.relations = 2
		}
		return r
	case *pg_query.Node_RangeTableSample:
		return h.itemInputs(n.RangeTableSample.GetRelation(), in, forPushdown)
	}
	return unknownInputs
}

// relation judges a name in FROM: a table, a view (which may be any query), or a CTE (which is a table unless it becomes a
// subquery).
func (h *hoister) relationInputs(n *pg_query.RangeVar, in *scope, forPushdown bool) joinInputs {
	if n.GetSchemaname() == "" {
		if c := in.find(n.GetRelname()); c != nil {
			if h.inlined(c) {
				return h.subqueryInputs(c.node.GetCtequery().GetSelectStmt(), forPushdown)
			}
			return joinInputs{relations: 1}
		}
	}
	r := joinInputs{relations: 1, volatile: h.know.relationVaries(n)}
	if r.volatile || h.know.Views[relationOf(n)] {
		r.relations, r.setOperation = 2, true
	}
	return r
}

// inlined reports whether the planner may turn a CTE into a subquery.
func (h *hoister) inlined(c *cte) bool {
	if c.selfReference || c.properties.alwaysVolatile {
		return false
	}
	switch c.node.GetCtematerialized() {
	case pg_query.CTEMaterialize_CTEMaterializeAlways:
		return false
	case pg_query.CTEMaterialize_CTEMaterializeNever:
		return true
	}
	return c.references <= 1
}

// query judges a subquery in FROM.
func (h *hoister) subqueryInputs(s *pg_query.SelectStmt, forPushdown bool) joinInputs {
	if r, known := h.subqueries[inputsKey{s, forPushdown}]; known {
		return r
	}
	r := h.findSubqueryInputs(s, forPushdown)
	h.subqueries[inputsKey{s, forPushdown}] = r
	return r
}

// knownQuery holds the arguments of query.
type inputsKey struct {
	query       *pg_query.SelectStmt
	forPushdown bool
}

func (h *hoister) findSubqueryInputs(s *pg_query.SelectStmt, forPushdown bool) joinInputs {
	props := h.selects[s]
	switch {
	case s == nil || props == nil:
		return unknownInputs
	case h.blocksPushdown(s):
		return joinInputs{relations: 1, volatile: props.volatile}
	case s.GetOp() != pg_query.SetOperation_SETOP_NONE:
		return joinInputs{relations: 2, setOperation: true, volatile: props.volatile}
	case !forPushdown && (len(s.GetSortClause()) > 0 || props.with != nil || len(s.GetValuesLists()) > 0 || h.volatileTargets(s)):
		return joinInputs{relations: 1, volatile: props.volatile} // it stays a separate query
	}
	r := h.joinInputs(s, props.scope, forPushdown)
	r.relations = max(r.relations, 1)
	r.volatile = r.volatile || props.volatile
	return r
}

// volatileTargets reports whether the planner treats the target list of a query as volatile.
func (h *hoister) volatileTargets(s *pg_query.SelectStmt) bool {
	return slices.ContainsFunc(s.GetTargetList(), func(t *pg_query.Node) bool {
		return h.propertiesOf(t.ProtoReflect(), h.selects[s].scope).alwaysVolatile
	})
}

// border reports whether volatile conditions on a query are evaluated once for each of its rows, whatever its body.
func (h *hoister) blocksPushdown(s *pg_query.SelectStmt) bool {
	if s.GetLimitCount() != nil || s.GetLimitOffset() != nil {
		return true
	}
	if s.GetOp() != pg_query.SetOperation_SETOP_NONE {
		return false
	}
	if len(s.GetDistinctClause()) > 0 || len(s.GetGroupClause()) > 0 || s.GetHavingClause() != nil {
		return true
	}
	found := false
	for _, t := range s.GetTargetList() {
		pgparse.Inspect(t.ProtoReflect(), func(m proto.Message) bool {
			switch n := m.(type) {
			case *pg_query.SubLink:
				return false
			case *pg_query.FuncCall:
				traits := h.know.Functions[functionName(n)]
				found = found || n.GetOver() != nil || n.GetAggStar() || traits.Aggregate && !traits.PlainFunction
			}
			return !found
		})
	}
	return found
}

// judge finds the levels that must be left unchanged, in a query and everything below it.
func (h *hoister) freeze(m protoreflect.Message) {
	if s, ok := m.Interface().(*pg_query.SelectStmt); ok {
		if props := h.selects[s]; props != nil && props.varies {
			h.freezeQuery(s, props)
		}
	}
	pgparse.Children(m, h.freeze)
}

func (h *hoister) freezeQuery(s *pg_query.SelectStmt, props *properties) {
	outer := h.pushedDown[s]
	if s.GetOp() != pg_query.SetOperation_SETOP_NONE {
		h.pushDown(s.GetLarg(), outer)
		h.pushDown(s.GetRarg(), outer)
		return
	}
	c := h.conditionsOf(s, props.scope)
	c.exist, c.readColumns = c.exist || outer.exist, c.readColumns || outer.readColumns
	pushdown, joined := h.joinInputs(s, props.scope, true), h.joinInputs(s, props.scope, false)
	if c.readColumns && pushdown.relations > 1 || c.exist && (pushdown.setOperation || pushdown.semijoin) || joined.volatile && joined.relations > 1 || h.repeated(s, props.scope) {
		h.frozen[s] = true
		for _, n := range fromAndWhere(s) {
			h.exclude(h.propertiesOf(n.ProtoReflect(), props.scope).reads.list)
		}
		return
	}
	for _, n := range s.GetFromClause() {
		if q := n.GetRangeSubselect().GetSubquery().GetSelectStmt(); q != nil {
			h.pushDown(q, c)
		}
		if v := n.GetRangeVar(); v.GetRelname() != "" && v.GetSchemaname() == "" {
			if cte := props.scope.find(v.GetRelname()); cte != nil && h.inlined(cte) {
				h.pushDown(cte.node.GetCtequery().GetSelectStmt(), c)
			}
		}
	}
}

// push applies the conditions on a query to it and judges it again.
func (h *hoister) pushDown(s *pg_query.SelectStmt, c volatileConditions) {
	props, before := h.selects[s], h.pushedDown[s]
	now := volatileConditions{readColumns: c.readColumns || before.readColumns, exist: c.exist || before.exist}
	if props == nil || now == before || h.blocksPushdown(s) {
		return
	}
	h.pushedDown[s] = now
	if props.varies {
		h.freezeQuery(s, props)
	}
}

// pin marks CTEs, and everything that they read, as unchanged.
func (h *hoister) exclude(list []*cte) {
	for _, c := range list {
		if h.excluded[c] {
			continue
		}
		h.excluded[c] = true
		h.exclude(c.properties.reads.list)
	}
}
