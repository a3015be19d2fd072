package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// How often a volatile condition is evaluated depends on its place in the plan: a condition over columns of one
// relation is evaluated for each row of that relation, before the relation is joined with others; a condition over two
// relations is evaluated for each pair of their rows, even if the query joins a third. A subquery in FROM does not
// prevent that. In
//
//	SELECT count(*) FROM (SELECT a.x FROM a JOIN b ON a.id = b.id) AS s WHERE random() < s.x
//
// the planner pulls the subquery up and evaluates the condition for each row of a, before the join. If a table took the
// place of the subquery, the condition would be evaluated for each row of the join. PostgreSQL 14 to 18 move conditions
// and subqueries in these ways:
//
//   - pull_up_subqueries (prepjointree.c) pulls a simple subquery up into the enclosing query (is_simple_subquery: no set
//     operation, aggregate, window function, set-returning function, GROUP BY, HAVING, ORDER BY, DISTINCT, LIMIT, FOR
//     UPDATE, WITH; no volatile function in its target list). pull_up_sublinks does the same with subqueries of IN and
//     EXISTS, as semijoins.
//   - SS_process_ctes (subselect.c) inlines a CTE if it is referenced once or is NOT MATERIALIZED, and has no volatile
//     function and no recursion. An inlined CTE is a subquery in FROM.
//   - set_subquery_pathlist (allpaths.c) pushes conditions down into other subqueries: into their WHERE, or into HAVING with
//     GROUP BY or aggregates (subquery_push_qual), if subquery_is_pushdown_safe and qual_is_pushdown_safe allow it. They
//     allow no condition with LIMIT or OFFSET, and no volatile one with DISTINCT, window functions or set-returning
//     functions. Each branch of a set operation gets the condition.
//
// A condition without columns is evaluated where it is written, for each row of the join (distribute_qual_to_rels,
// initsplan.c). There are two exceptions. It is pushed down into a set operation, before duplicates are removed. With a
// semijoin it is evaluated for each row that may match, until one does.
//
// An item of FROM that is volatile may be rescanned for each outer row of a nested loop, and gives other values each
// time.
//
// So the hoister leaves the FROM and WHERE of a query unchanged, and all CTEs that they read, if replacing a part of
// them by a table could change how often a volatile expression is evaluated. freezeQuery lists the cases. A query
// includes here the subqueries that the planner pulls up into it.

// volatileConditions summarises the volatile conditions on the input of a query.
type volatileConditions struct {
	exist       bool
	readColumns bool // one may read columns, or belongs to a join
}

// conditionsOf returns the volatile conditions in WHERE and ON of a query, without those pushed down into it.
func (h *hoister) conditionsOf(s *pg_query.SelectStmt, in *scope) volatileConditions {
	var c volatileConditions
	h.addCondition(s.GetWhereClause(), in, &c)
	for _, f := range s.GetFromClause() {
		h.addJoinConditions(f, in, &c)
	}
	return c
}

// addCondition adds the operands of a WHERE that AND combines.
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

// fromAndWhere returns the items of a query's FROM, and its WHERE.
func fromAndWhere(s *pg_query.SelectStmt) []*pg_query.Node {
	all := slices.Clone(s.GetFromClause())
	if where := s.GetWhereClause(); where != nil {
		all = append(all, where)
	}
	return all
}

// mayReadColumns reports whether an expression contains a column or a subquery, which may contain columns of the
// enclosing query.
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

// addJoinConditions adds the ON of an item of FROM and of the joins in it.
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

// joinInputs summarises what a query joins.
type joinInputs struct {
	relations    int  // how many; 2 may also stand for more
	setOperation bool // one of them is a set operation
	semijoin     bool // WHERE or ON has a subquery, which may become a semijoin
	volatile     bool // a rescan of one of them may give other rows
}

func (r *joinInputs) add(other joinInputs) {
	r.relations += other.relations
	r.setOperation = r.setOperation || other.setOperation
	r.semijoin = r.semijoin || other.semijoin
	r.volatile = r.volatile || other.volatile
}

// unknownInputs is the worst case, for items that cannot be analysed.
var unknownInputs = joinInputs{relations: 2, setOperation: true, volatile: true}

// joinInputs returns what FROM and WHERE of a query join. With forPushdown, it counts the relations to which the
// planner may push a condition on the query down; otherwise those that it joins in this query, after pulling subqueries
// up.
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

// subLinkInputs returns the subqueries of a condition, which may become semijoins.
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

// itemInputs returns the inputs of one item of FROM.
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
		if forPushdown { // a function in SQL may be inlined as a subquery (inline_set_returning_function)
			r.relations = 2
		}
		return r
	case *pg_query.Node_RangeTableSample:
		return h.itemInputs(n.RangeTableSample.GetRelation(), in, forPushdown)
	}
	return unknownInputs
}

// relationInputs returns the inputs of a name in FROM: a table, a view (any query), or a CTE (like a table unless it is
// inlined).
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

// inlined reports whether the planner may inline a CTE.
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

// subqueryInputs returns the inputs of a subquery in FROM. It keeps each answer in h.subqueries.
func (h *hoister) subqueryInputs(s *pg_query.SelectStmt, forPushdown bool) joinInputs {
	if r, known := h.subqueries[inputsKey{s, forPushdown}]; known {
		return r
	}
	r := h.findSubqueryInputs(s, forPushdown)
	h.subqueries[inputsKey{s, forPushdown}] = r
	return r
}

// inputsKey holds the arguments of subqueryInputs.
type inputsKey struct {
	query       *pg_query.SelectStmt
	forPushdown bool
}

// findSubqueryInputs computes the result of subqueryInputs.
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
		return joinInputs{relations: 1, volatile: props.volatile} // it is not pulled up
	}
	r := h.joinInputs(s, props.scope, forPushdown)
	r.relations = max(r.relations, 1)
	r.volatile = r.volatile || props.volatile
	return r
}

// volatileTargets reports whether the target list of a query certainly calls a volatile function.
func (h *hoister) volatileTargets(s *pg_query.SelectStmt) bool {
	return slices.ContainsFunc(s.GetTargetList(), func(t *pg_query.Node) bool {
		return h.propertiesOf(t.ProtoReflect(), h.selects[s].scope).alwaysVolatile
	})
}

// blocksPushdown reports whether a volatile condition on a query is evaluated once for each row of its result, whatever
// its FROM and WHERE contain: the planner pushes such a condition down into HAVING at most.
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

// freeze adds to h.frozen the queries in m, and below it, whose FROM and WHERE must stay unchanged.
func (h *hoister) freeze(m protoreflect.Message) {
	if s, ok := m.Interface().(*pg_query.SelectStmt); ok {
		if props := h.selects[s]; props != nil && props.varies {
			h.freezeQuery(s, props)
		}
	}
	pgparse.Children(m, h.freeze)
}

// freezeQuery is freeze for one query that varies. If the query is not frozen, its volatile conditions are pushed down
// into its subqueries.
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
	switch {
	case c.readColumns && pushdown.relations > 1,
		c.exist && (pushdown.setOperation || pushdown.semijoin),
		joined.volatile && joined.relations > 1,
		h.repeated(s, props.scope):
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

// pushDown records that the planner may push conditions down into a query. If there is a new one, it repeats
// freezeQuery.
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

// exclude excludes CTEs, and all CTEs that they read, from hoisting.
func (h *hoister) exclude(list []*cte) {
	for _, c := range list {
		if h.excluded[c] {
			continue
		}
		h.excluded[c] = true
		h.exclude(c.properties.reads.list)
	}
}
