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
type conditions struct {
	columns bool // one reads columns or belongs to a join
	any     bool
}

// conditionsOf returns the volatile conditions of a query's own WHERE and ON.
func (h *hoister) conditionsOf(s *pg_query.SelectStmt, in *scope) conditions {
	var c conditions
	h.where(s.GetWhereClause(), in, &c)
	for _, f := range s.GetFromClause() {
		h.on(f, in, &c)
	}
	return c
}

func (h *hoister) where(n *pg_query.Node, in *scope, c *conditions) {
	if n == nil {
		return
	}
	if b := n.GetBoolExpr(); b.GetBoolop() == pg_query.BoolExprType_AND_EXPR {
		for _, arg := range b.GetArgs() {
			h.where(arg, in, c)
		}
		return
	}
	if h.read(n.ProtoReflect(), in).draws {
		c.any = true
		c.columns = c.columns || readsColumns(n)
	}
}

// inputs returns the items of a query's FROM, and its WHERE.
func inputs(s *pg_query.SelectStmt) []*pg_query.Node {
	all := slices.Clone(s.GetFromClause())
	if where := s.GetWhereClause(); where != nil {
		all = append(all, where)
	}
	return all
}

func readsColumns(n *pg_query.Node) bool {
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

func (h *hoister) on(n *pg_query.Node, in *scope, c *conditions) {
	j := n.GetJoinExpr()
	if j == nil {
		return
	}
	h.on(j.GetLarg(), in, c)
	h.on(j.GetRarg(), in, c)
	if j.GetQuals() != nil && h.read(j.GetQuals().ProtoReflect(), in).draws {
		c.any, c.columns = true, true
	}
}

// reads summarises what a level joins.
type reads struct {
	relations int
	sets      bool // a set operation
	semi      bool // a subquery of WHERE or ON
	volatile  bool // an item is random
}

func (r *reads) add(other reads) {
	r.relations += other.relations
	r.sets = r.sets || other.sets
	r.semi = r.semi || other.semi
	r.volatile = r.volatile || other.volatile
}

// unknown is the value for anything that cannot be judged.
var unknown = reads{relations: 2, sets: true, volatile: true}

// from returns what FROM and WHERE of a query join: with pushed, the relations over which a condition on the query is
// distributed; otherwise those that the planner joins at this level.
func (h *hoister) from(s *pg_query.SelectStmt, in *scope, pushed bool) reads {
	var r reads
	for _, f := range s.GetFromClause() {
		r.add(h.item(f, in, pushed))
	}
	if s.GetWhereClause() != nil {
		r.add(h.subLinks(s.GetWhereClause(), in))
	}
	return r
}

// subLinks counts the subqueries of a condition, which may become joins.
func (h *hoister) subLinks(n *pg_query.Node, in *scope) reads {
	var r reads
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		link, ok := m.(*pg_query.SubLink)
		if ok {
			r.add(reads{relations: 1, semi: true, volatile: h.read(link.ProtoReflect(), in).draws})
		}
		return !ok
	})
	return r
}

// item judges one item of FROM.
func (h *hoister) item(node *pg_query.Node, in *scope, pushed bool) reads {
	switch n := node.GetNode().(type) {
	case *pg_query.Node_JoinExpr:
		r := h.item(n.JoinExpr.GetLarg(), in, pushed)
		r.add(h.item(n.JoinExpr.GetRarg(), in, pushed))
		if n.JoinExpr.GetQuals() != nil {
			r.add(h.subLinks(n.JoinExpr.GetQuals(), in))
		}
		return r
	case *pg_query.Node_RangeVar:
		return h.relation(n.RangeVar, in, pushed)
	case *pg_query.Node_RangeSubselect:
		return h.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), pushed)
	case *pg_query.Node_RangeFunction:
		// The result of a function is reused for the next row of another item, unless its arguments come from that row.
		r := reads{relations: 1, volatile: readsColumns(node) && h.read(node.ProtoReflect(), in).draws}
		if pushed { // one in SQL may become a subquery (inline_set_returning_function)
			r.relations = 2
		}
		return r
	case *pg_query.Node_RangeTableSample:
		return h.item(n.RangeTableSample.GetRelation(), in, pushed)
	}
	return unknown
}

// relation judges a name in FROM: a table, a view (which may be any query), or a CTE (which is a table unless it becomes a
// subquery).
func (h *hoister) relation(n *pg_query.RangeVar, in *scope, pushed bool) reads {
	if n.GetSchemaname() == "" {
		if c := in.find(n.GetRelname()); c != nil {
			if h.inlined(c) {
				return h.query(c.node.GetCtequery().GetSelectStmt(), pushed)
			}
			return reads{relations: 1}
		}
	}
	r := reads{relations: 1, volatile: h.know.volatileRelation(n)}
	if r.volatile || h.know.Views[relationOf(n)] {
		r.relations, r.sets = 2, true
	}
	return r
}

// inlined reports whether the planner may turn a CTE into a subquery.
func (h *hoister) inlined(c *cte) bool {
	if c.self || c.unit.sure {
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
func (h *hoister) query(s *pg_query.SelectStmt, pushed bool) reads {
	if r, known := h.known[knownQuery{s, pushed}]; known {
		return r
	}
	r := h.newQuery(s, pushed)
	h.known[knownQuery{s, pushed}] = r
	return r
}

// knownQuery holds the arguments of query.
type knownQuery struct {
	query  *pg_query.SelectStmt
	pushed bool
}

func (h *hoister) newQuery(s *pg_query.SelectStmt, pushed bool) reads {
	u := h.selects[s]
	switch {
	case s == nil || u == nil:
		return unknown
	case h.border(s):
		return reads{relations: 1, volatile: u.draws}
	case s.GetOp() != pg_query.SetOperation_SETOP_NONE:
		return reads{relations: 2, sets: true, volatile: u.draws}
	case !pushed && (len(s.GetSortClause()) > 0 || u.own != nil || len(s.GetValuesLists()) > 0 || h.volatileTargets(s)):
		return reads{relations: 1, volatile: u.draws} // it stays a separate query
	}
	r := h.from(s, u.inner, pushed)
	r.relations = max(r.relations, 1)
	r.volatile = r.volatile || u.draws
	return r
}

// volatileTargets reports whether the planner treats the target list of a query as volatile.
func (h *hoister) volatileTargets(s *pg_query.SelectStmt) bool {
	return slices.ContainsFunc(s.GetTargetList(), func(t *pg_query.Node) bool { return h.read(t.ProtoReflect(), h.selects[s].inner).sure })
}

// border reports whether volatile conditions on a query are evaluated once for each of its rows, whatever its body.
func (h *hoister) border(s *pg_query.SelectStmt) bool {
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
				found = found || n.GetOver() != nil || n.GetAggStar() || traits.Aggregate && !traits.Plain
			}
			return !found
		})
	}
	return found
}

// judge finds the levels that must be left unchanged, in a query and everything below it.
func (h *hoister) judge(m protoreflect.Message) {
	if s, ok := m.Interface().(*pg_query.SelectStmt); ok {
		if u := h.selects[s]; u != nil && u.volatile {
			h.judgeLevel(s, u)
		}
	}
	pgparse.Children(m, h.judge)
}

func (h *hoister) judgeLevel(s *pg_query.SelectStmt, u *unit) {
	pushed := h.pushed[s]
	if s.GetOp() != pg_query.SetOperation_SETOP_NONE {
		h.push(s.GetLarg(), pushed)
		h.push(s.GetRarg(), pushed)
		return
	}
	c := h.conditionsOf(s, u.inner)
	c.any, c.columns = c.any || pushed.any, c.columns || pushed.columns
	below, here := h.from(s, u.inner, true), h.from(s, u.inner, false)
	if c.columns && below.relations > 1 || c.any && (below.sets || below.semi) || here.volatile && here.relations > 1 || h.repeated(s, u.inner) {
		h.frozen[s] = true
		for _, n := range inputs(s) {
			h.pin(h.read(n.ProtoReflect(), u.inner).reads.list)
		}
		return
	}
	for _, n := range s.GetFromClause() {
		if q := n.GetRangeSubselect().GetSubquery().GetSelectStmt(); q != nil {
			h.push(q, c)
		}
		if v := n.GetRangeVar(); v.GetRelname() != "" && v.GetSchemaname() == "" {
			if cte := u.inner.find(v.GetRelname()); cte != nil && h.inlined(cte) {
				h.push(cte.node.GetCtequery().GetSelectStmt(), c)
			}
		}
	}
}

// push applies the conditions on a query to it and judges it again.
func (h *hoister) push(s *pg_query.SelectStmt, c conditions) {
	u, before := h.selects[s], h.pushed[s]
	now := conditions{columns: c.columns || before.columns, any: c.any || before.any}
	if u == nil || now == before || h.border(s) {
		return
	}
	h.pushed[s] = now
	if u.volatile {
		h.judgeLevel(s, u)
	}
}

// pin marks CTEs, and everything that they read, as unchanged.
func (h *hoister) pin(list []*cte) {
	for _, c := range list {
		if h.pinned[c] {
			continue
		}
		h.pinned[c] = true
		h.pin(c.unit.reads.list)
	}
}
