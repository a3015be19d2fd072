package hoist

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// rankColumn is the column that ranks adds.
const rankColumn = "dpwatch_rank"

// ranks makes a construct of DP query rewriters faster. To choose a few random rows of every privacy unit, they join a
// table with itself and count, for every row, the rows of the same unit whose random number is not smaller:
//
//	a (x, g, u) AS (SELECT random(), ...),
//	j (x, g, u, rx, rg, ru) AS (SELECT * FROM a AS l JOIN a AS r ON l.x <= r.x AND l.u = r.u),
//	p (x, g, u) AS (SELECT x, g, u FROM j),
//	c (n, g, u) AS (SELECT count(x), g, u FROM p GROUP BY g, u)
//
// That takes time quadratic in the number of a unit's rows. A window function counts the same rows:
//
//	j (x, g, u, dpwatch_rank) AS (SELECT *, count(*) OVER (PARTITION BY u ORDER BY x DESC) FROM a WHERE u IS NOT NULL)
//
// Rows of equal x count for each other, as in the join. c becomes the sum over the rows of a group. random() is never
// NULL. j and p must not be referenced elsewhere, and p must use only the left columns of j. It is assumed that = is
// the equality operator of the type's default B-tree operator class.
func ranks(stmt *pg_query.SelectStmt) {
	with := stmt.GetWithClause()
	if with == nil || with.GetRecursive() {
		return
	}
	r := &ranker{ctes: map[string]*pg_query.CommonTableExpr{}, positions: map[string]int{}, references: map[string]int{}}
	for i, n := range with.GetCtes() {
		name := n.GetCommonTableExpr().GetCtename()
		r.ctes[name], r.positions[name] = n.GetCommonTableExpr(), i
	}
	defined := map[string]int{}
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg_query.RangeVar:
			r.references[n.GetRelname()]++
		case *pg_query.CommonTableExpr:
			defined[n.GetCtename()]++
		}
		return true
	})
	for name, n := range defined {
		if n > 1 { // the name does not mean the same CTE everywhere
			delete(r.ctes, name)
		}
	}
	for _, n := range with.GetCtes() {
		r.rewrite(n.GetCommonTableExpr())
	}
}

type ranker struct {
	ctes       map[string]*pg_query.CommonTableExpr // by name
	positions  map[string]int                       // positions of the CTEs in their clause
	references map[string]int                       // number of references to a name
}

// rewrite replaces c, and the p and j that it reads, if they have the form described at ranks.
func (r *ranker) rewrite(c *pg_query.CommonTableExpr) {
	count, over, ok := r.counted(c)
	if !ok {
		return
	}
	p, from, ok := r.projection(over)
	if !ok {
		return
	}
	j, random, units, ok := r.selfJoin(from)
	if !ok || !slices.IsSorted([]int{r.positions[random.table], r.positions[from], r.positions[over], r.positions[c.GetCtename()]}) {
		return // a name refers to an earlier CTE
	}
	// Every column of p is a left one of j, and the counted one is the random number.
	left := pgparse.Strings(j.GetAliascolnames())
	left = left[:len(left)/2]
	counted := -1
	for i, t := range p.GetCtequery().GetSelectStmt().GetTargetList() {
		at := slices.Index(left, pgparse.Last(t.GetResTarget().GetVal().GetColumnRef().GetFields()))
		if at < 0 {
			return
		}
		if pgparse.Strings(p.GetAliascolnames())[i] == count.argument && at == random.index {
			counted = i
		}
	}
	if counted < 0 {
		return
	}
	join, err := parse("SELECT *, count(*) OVER (PARTITION BY " + strings.Join(units, ", ") + " ORDER BY " + random.name + " DESC) FROM " +
		ident.Quote(random.table) + " WHERE " + strings.Join(units, " IS NOT NULL AND ") + " IS NOT NULL")
	if err != nil {
		return
	}
	sum, err := parse("SELECT sum(" + rankColumn + ")::bigint")
	if err != nil {
		return
	}
	j.Aliascolnames = append(slices.Clone(j.GetAliascolnames()[:len(left)]), stringNode(rankColumn))
	j.Ctequery = selectNode(join)
	p.Aliascolnames = append(slices.Clone(p.GetAliascolnames()), stringNode(rankColumn))
	query := p.GetCtequery().GetSelectStmt()
	query.TargetList = append(query.TargetList, targetNode("", columnNode(rankColumn)))
	count.target.Val = sum.GetTargetList()[0].GetResTarget().GetVal()
}

// count is the only aggregate of a query: count(argument).
type count struct {
	target   *pg_query.ResTarget
	argument string
}

// counted recognises SELECT count(x), g, u FROM p GROUP BY g, u with names for all columns, and returns p's name.
func (r *ranker) counted(c *pg_query.CommonTableExpr) (n count, from string, ok bool) {
	s := c.GetCtequery().GetSelectStmt()
	from, ok = plain(s)
	if !ok || len(c.GetAliascolnames()) != len(s.GetTargetList()) || s.GetGroupDistinct() {
		return n, "", false
	}
	for _, g := range s.GetGroupClause() {
		if g.GetColumnRef() == nil {
			return n, "", false
		}
	}
	for _, t := range s.GetTargetList() {
		val := t.GetResTarget().GetVal()
		call := val.GetFuncCall()
		switch {
		case val.GetColumnRef() != nil:
		case n.target == nil && call != nil && slices.Equal(pgparse.Strings(call.GetFuncname()), []string{"count"}) && len(call.GetArgs()) == 1 &&
			call.GetArgs()[0].GetColumnRef() != nil && call.GetAggFilter() == nil && call.GetOver() == nil && !call.GetAggDistinct() &&
			len(call.GetAggOrder()) == 0:
			n = count{t.GetResTarget(), pgparse.Last(call.GetArgs()[0].GetColumnRef().GetFields())}
		default:
			return n, "", false
		}
	}
	return n, from, n.target != nil && len(s.GetGroupClause()) > 0
}

// projection recognises p, referenced once, as a list of columns of j, and returns j's name.
func (r *ranker) projection(name string) (p *pg_query.CommonTableExpr, from string, ok bool) {
	p = r.ctes[name]
	if p == nil || r.references[name] != 1 {
		return nil, "", false
	}
	s := p.GetCtequery().GetSelectStmt()
	from, ok = plain(s)
	if !ok || len(s.GetGroupClause()) > 0 || len(p.GetAliascolnames()) != len(s.GetTargetList()) {
		return nil, "", false
	}
	return p, from, true
}

// randomColumn is the column of random numbers of a self-joined table.
type randomColumn struct {
	table string
	name  string // quoted
	index int    // in the table's columns
}

// selfJoin recognises j, referenced once, and returns its random column and the columns of the unit, quoted.
func (r *ranker) selfJoin(name string) (j *pg_query.CommonTableExpr, random randomColumn, units []string, ok bool) {
	j = r.ctes[name]
	if j == nil || r.references[name] != 1 {
		return nil, random, nil, false
	}
	s := j.GetCtequery().GetSelectStmt()
	if !bare(s) || len(s.GetFromClause()) != 1 || len(s.GetGroupClause()) > 0 || len(s.GetTargetList()) != 1 ||
		!isStar(s.GetTargetList()[0].GetResTarget().GetVal()) {
		return nil, random, nil, false
	}
	join := s.GetFromClause()[0].GetJoinExpr()
	l, right := join.GetLarg().GetRangeVar(), join.GetRarg().GetRangeVar()
	a := r.ctes[l.GetRelname()]
	if a == nil || join.GetJointype() != pg_query.JoinType_JOIN_INNER || join.GetIsNatural() || len(join.GetUsingClause()) > 0 || join.GetAlias() != nil ||
		l.GetSchemaname() != "" || right.GetSchemaname() != "" || l.GetRelname() != right.GetRelname() ||
		l.GetAlias() == nil || right.GetAlias() == nil || len(l.GetAlias().GetColnames())+len(right.GetAlias().GetColnames()) > 0 {
		return nil, random, nil, false
	}
	columns := pgparse.Strings(a.GetAliascolnames())
	targets := a.GetCtequery().GetSelectStmt().GetTargetList()
	if len(columns) == 0 || len(columns) != len(targets) || len(j.GetAliascolnames()) != 2*len(columns) {
		return nil, random, nil, false
	}
	both := join.GetQuals().GetBoolExpr()
	if both.GetBoolop() != pg_query.BoolExprType_AND_EXPR || slices.ContainsFunc(targets, func(t *pg_query.Node) bool { return isStar(t.GetResTarget().GetVal()) }) {
		return nil, random, nil, false
	}
	random = randomColumn{table: l.GetRelname(), index: -1}
	for _, q := range both.GetArgs() {
		op, column := comparison(q.GetAExpr(), l.GetAlias().GetAliasname(), right.GetAlias().GetAliasname())
		i := slices.Index(columns, column)
		switch {
		case i < 0:
			return nil, random, nil, false
		case op == "=":
			units = append(units, ident.Quote(column))
		case op == "<=" && random.index < 0 && isRandom(targets[i].GetResTarget().GetVal()):
			random.name, random.index = ident.Quote(column), i
		default:
			return nil, random, nil, false
		}
	}
	return j, random, units, random.index >= 0 && len(units) > 0
}

// comparison recognises l.c op r.c, and r.c op l.c if op is =, and returns op and c; "" otherwise.
func comparison(e *pg_query.A_Expr, l, r string) (op, column string) {
	a, b := pgparse.Strings(e.GetLexpr().GetColumnRef().GetFields()), pgparse.Strings(e.GetRexpr().GetColumnRef().GetFields())
	if e.GetKind() != pg_query.A_Expr_Kind_AEXPR_OP || len(e.GetName()) != 1 || len(a) != 2 || len(b) != 2 || a[1] != b[1] || l == r {
		return "", ""
	}
	op = pgparse.Last(e.GetName())
	if a[0] == l && b[0] == r || op == "=" && a[0] == r && b[0] == l {
		return op, a[1]
	}
	return "", ""
}

// plain reports whether a query consists of a target list, one relation without a schema, and GROUP BY, and returns the
// relation's name.
func plain(s *pg_query.SelectStmt) (from string, ok bool) {
	if !bare(s) || len(s.GetFromClause()) != 1 {
		return "", false
	}
	v := s.GetFromClause()[0].GetRangeVar()
	return v.GetRelname(), v != nil && v.GetSchemaname() == "" && len(v.GetAlias().GetColnames()) == 0
}

// bare reports whether a query has only a target list, FROM and GROUP BY.
func bare(s *pg_query.SelectStmt) bool {
	return s != nil && s.GetOp() == pg_query.SetOperation_SETOP_NONE && s.GetWithClause() == nil && s.GetWhereClause() == nil &&
		s.GetHavingClause() == nil && len(s.GetDistinctClause()) == 0 && len(s.GetSortClause()) == 0 && s.GetLimitCount() == nil &&
		s.GetLimitOffset() == nil && len(s.GetWindowClause()) == 0 && len(s.GetLockingClause()) == 0 && len(s.GetValuesLists()) == 0 &&
		s.GetIntoClause() == nil
}

func isStar(n *pg_query.Node) bool {
	fields := n.GetColumnRef().GetFields()
	return len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil
}

func isRandom(n *pg_query.Node) bool {
	call := n.GetFuncCall()
	name := pgparse.Strings(call.GetFuncname())
	return call != nil && len(call.GetArgs()) == 0 && (slices.Equal(name, []string{"random"}) || slices.Equal(name, []string{"pg_catalog", "random"}))
}
