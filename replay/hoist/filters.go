package hoist

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Filter is a part of a query that may leave rows out: it does if Base has the same rows in two worlds, and Without has
// others.
type Filter struct {
	What          string // without literals
	Base, Without string
}

// Filters returns the parts of a deterministic query that may leave rows out, those of inner queries first: conditions,
// joins, all conditions of a query together, and then what an aggregation or a limit drops.
func Filters(sql string) (all []Filter) {
	stmt, err := parse(sql)
	if err != nil {
		return nil
	}
	var rows, later []Filter
	for i, s := range selectsOf(stmt) {
		v := variant{stmt, i}
		rows = append(rows, v.conditions(s)...)
		later = append(later, v.aggregation(s, sql)...)
	}
	return append(rows, later...)
}

// selectsOf returns the queries of a statement, each after those in it.
func selectsOf(stmt *pg_query.SelectStmt) (all []*pg_query.SelectStmt) {
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		if s, ok := m.(*pg_query.SelectStmt); ok {
			all = append(all, s)
		}
		return true
	})
	slices.Reverse(all)
	return all
}

// variant changes one query of a statement, by its index in selectsOf.
type variant struct {
	stmt  *pg_query.SelectStmt
	index int
}

// rows returns the query for the rows of FROM that meet the conditions, after a change; "" if it cannot be written.
func (v variant) rows(change func(*pg_query.SelectStmt)) string {
	all := proto.CloneOf(v.stmt)
	s := selectsOf(all)[v.index]
	change(s)
	q := selectFrom(nil, "")
	q.FromClause, q.WhereClause, q.WithClause = s.GetFromClause(), s.GetWhereClause(), s.GetWithClause()
	if q.WithClause == nil {
		q.WithClause = all.GetWithClause()
	}
	text, _ := write(q) // "" on an error
	return text
}

// whole returns the whole statement after a change; "" if it cannot be written.
func (v variant) whole(change func(*pg_query.SelectStmt)) string {
	all := proto.CloneOf(v.stmt)
	change(selectsOf(all)[v.index])
	text, _ := write(all)
	return text
}

// conditions returns the conditions and the joins of a query, one by one and then together.
func (v variant) conditions(s *pg_query.SelectStmt) (all []Filter) {
	if len(s.GetFromClause()) == 0 {
		return nil
	}
	base := v.rows(func(*pg_query.SelectStmt) {})
	where := conjuncts(s.GetWhereClause())
	var names []string
	for i, c := range where {
		what := "the condition " + textOf(c)
		names = append(names, what)
		all = append(all, Filter{what, base, v.rows(func(s *pg_query.SelectStmt) {
			s.WhereClause = conjunction(slices.Delete(conjuncts(s.GetWhereClause()), i, i+1))
		})})
	}
	for i, j := range innerJoins(s) {
		what := "the join"
		if j.GetQuals() != nil {
			what += " ON " + textOf(j.GetQuals())
		}
		names = append(names, what)
		for _, outer := range []pg_query.JoinType{pg_query.JoinType_JOIN_LEFT, pg_query.JoinType_JOIN_RIGHT} {
			all = append(all, Filter{what, base, v.rows(func(s *pg_query.SelectStmt) { innerJoins(s)[i].Jointype = outer })})
		}
	}
	if len(names) > 1 {
		for _, outer := range []pg_query.JoinType{pg_query.JoinType_JOIN_LEFT, pg_query.JoinType_JOIN_RIGHT} {
			all = append(all, Filter{strings.Join(names, " and ") + ", together,", base, v.rows(func(s *pg_query.SelectStmt) {
				s.WhereClause = nil
				for _, j := range innerJoins(s) {
					j.Jointype = outer
				}
			})})
		}
	}
	return all
}

// innerJoins returns the inner joins in FROM that have a condition, without those of subqueries.
func innerJoins(s *pg_query.SelectStmt) (all []*pg_query.JoinExpr) {
	var visit func(n *pg_query.Node)
	visit = func(n *pg_query.Node) {
		if j := n.GetJoinExpr(); j != nil {
			visit(j.GetLarg())
			visit(j.GetRarg())
			if j.GetJointype() == pg_query.JoinType_JOIN_INNER && (j.GetQuals() != nil || len(j.GetUsingClause()) > 0 || j.GetIsNatural()) {
				all = append(all, j)
			}
		}
	}
	for _, n := range s.GetFromClause() {
		visit(n)
	}
	return all
}

// aggregation returns what an aggregation, a DISTINCT or a limit of a query drops.
func (v variant) aggregation(s *pg_query.SelectStmt, base string) (all []Filter) {
	add := func(what string, change func(*pg_query.SelectStmt)) {
		all = append(all, Filter{what, base, v.whole(change)})
	}
	for i, f := range aggregateFilters(s) {
		add("FILTER (WHERE "+textOf(f.GetAggFilter())+")", func(s *pg_query.SelectStmt) { aggregateFilters(s)[i].AggFilter = nil })
	}
	if s.GetHavingClause() != nil {
		add("HAVING "+textOf(s.GetHavingClause()), func(s *pg_query.SelectStmt) { s.HavingClause = nil })
	}
	if s.GetLimitCount() != nil || s.GetLimitOffset() != nil {
		add("LIMIT", func(s *pg_query.SelectStmt) {
			s.LimitCount, s.LimitOffset, s.LimitOption = nil, nil, pg_query.LimitOption_LIMIT_OPTION_DEFAULT
		})
	}
	if len(s.GetDistinctClause()) > 0 {
		add("DISTINCT", func(s *pg_query.SelectStmt) { s.DistinctClause = nil })
	}
	return all
}

// aggregateFilters returns the aggregates with a FILTER in the expressions of a query, without those of queries in it.
func aggregateFilters(s *pg_query.SelectStmt) (all []*pg_query.FuncCall) {
	for _, n := range s.GetTargetList() {
		pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
			switch m := m.(type) {
			case *pg_query.SelectStmt:
				return false
			case *pg_query.FuncCall:
				if m.GetAggFilter() != nil {
					all = append(all, m)
				}
			}
			return true
		})
	}
	return all
}

// mostText bounds the length of the text of a condition.
const mostText = 160

// textOf returns the text of a condition with ? in place of its literals, and without the schemas of the copies.
func textOf(n *pg_query.Node) string {
	n = proto.CloneOf(n)
	withhold(n.ProtoReflect())
	q := &pg_query.SelectStmt{
		WhereClause: n, LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE,
		TargetList: []*pg_query.Node{targetNode("", columnNode("a"))},
	}
	text, err := pgparse.Deparse(&pg_query.ParseResult{Stmts: []*pg_query.RawStmt{{Stmt: selectNode(q)}}})
	text, ok := strings.CutPrefix(text, "SELECT a WHERE ")
	if err != nil || !ok {
		return "(...)"
	}
	if runes := []rune(text); len(runes) > mostText {
		text = string(runes[:mostText]) + "..."
	}
	return "(" + text + ")"
}

// withhold replaces literals and schemas in place.
func withhold(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg_query.Node:
		if n.GetAConst() != nil && !n.GetAConst().GetIsnull() {
			n.Node = &pg_query.Node_ParamRef{ParamRef: &pg_query.ParamRef{}}
			return
		}
	case *pg_query.RangeVar:
		n.Schemaname = ""
	}
	pgparse.Children(m, withhold)
}
