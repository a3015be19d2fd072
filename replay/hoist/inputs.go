package hoist

import (
	"errors"
	"fmt"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Inputs is everything that the random part of a query reads: where the rows of Queries are the same, so is the
// distribution of the answer, unless Functions read more.
type Inputs struct {
	// Queries are deterministic. They read relations; the random part reads none but through them.
	Queries []string
	// Functions are those that the random part calls, by name, sorted.
	Functions []string
}

// errRandomRelation: a relation varies, and no query gives its rows without noise.
var errRandomRelation = errors.New("a relation has other rows in each trial")

// FindInputs returns the inputs of a query. Unlike the pieces of Split, they need not save time, and the random part need
// not be a query that PostgreSQL would execute in the same way. The error says why they cannot be found.
func FindInputs(sql string, opt Options) (Inputs, error) {
	stmt, err := parse(sql)
	if err != nil {
		return Inputs{}, err
	}
	expandViews(stmt.ProtoReflect(), &opt.Knowledge, opt.Knowledge.relationVaries, 0)
	a := &analysis{know: opt.Knowledge, selects: map[*pg_query.SelectStmt]*properties{}}
	a.query(stmt, nil)
	if a.reason != "" {
		return Inputs{}, errors.New(a.reason)
	}
	a.counted = true
	f := &finder{
		hoister:   &hoister{analysis: a, opt: opt, kept: map[*cte]bool{}, tables: map[*cte]*piece{}, same: map[string]*piece{}},
		functions: map[string]bool{}, followed: map[*cte]bool{},
	}
	f.query(stmt, false)
	if f.fault != nil {
		return Inputs{}, f.fault
	}
	var in Inputs
	for _, p := range f.pieces {
		text, err := write(f.assemble(p))
		if err != nil {
			return Inputs{}, fmt.Errorf("a deterministic part: %w", err)
		}
		in.Queries = append(in.Queries, text)
	}
	for name := range f.functions {
		in.Functions = append(in.Functions, name)
	}
	slices.Sort(in.Functions)
	return in, nil
}

// maxExpanded bounds the nesting of views that draw noise.
const maxExpanded = 16

// ExpandViews returns a query with the definitions of its views in their place, or the query itself if they cannot be
// written there.
func ExpandViews(sql string, k Knowledge) string {
	stmt, err := parse(sql)
	if err != nil {
		return sql
	}
	expandViews(stmt.ProtoReflect(), &k, func(*pg_query.RangeVar) bool { return true }, 0)
	expanded, err := write(stmt)
	if err != nil {
		return sql
	}
	return expanded
}

// expandViews replaces views by their definitions.
func expandViews(m protoreflect.Message, k *Knowledge, which func(*pg_query.RangeVar) bool, depth int) {
	if n, ok := m.Interface().(*pg_query.Node); ok && n.GetRangeVar() != nil && depth < maxExpanded {
		r := n.GetRangeVar()
		if definition := k.Views[relationOf(r)]; definition != "" && which(r) {
			if query, err := parse(definition); err == nil {
				alias := r.GetAlias()
				if alias == nil {
					alias = &pg_query.Alias{Aliasname: r.GetRelname()}
				}
				expandViews(query.ProtoReflect(), k, which, depth+1)
				n.Node = &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{Subquery: selectNode(query), Alias: alias}}
			}
		}
		return
	}
	pgparse.Children(m, func(c protoreflect.Message) { expandViews(c, k, which, depth) })
}

// finder collects the inputs of a statement as pieces. The statement is not used afterwards.
type finder struct {
	*hoister
	functions map[string]bool
	followed  map[*cte]bool
	fault     error // why the inputs are not known; nil = they are
}

// query finds the inputs of a query. mayCorrelate: it may read columns of an enclosing one.
func (f *finder) query(s *pg_query.SelectStmt, mayCorrelate bool) {
	props := f.selects[s]
	if props.with != nil {
		props.with.mayCorrelate = mayCorrelate
	}
	if !props.varies {
		f.input(s, props.reads.list, mayCorrelate)
		return
	}
	own := func(m protoreflect.Message) {
		if _, with := m.Interface().(*pg_query.WithClause); !with { // a CTE counts where it is read
			f.walk(m, props.scope, mayCorrelate)
		}
	}
	f.split(s, props, mayCorrelate)
	from := slices.Concat(s.GetFromClause())
	read := len(from) == 1 && from[0].GetRangeVar().GetSchemaname() == tempSchema
	random := slices.ContainsFunc(from, func(n *pg_query.Node) bool { return f.varies(n.ProtoReflect(), props.scope) })
	if read || random || len(from) == 0 {
		pgparse.Children(s.ProtoReflect(), own)
		return
	}
	left := f.rows(s, props, mayCorrelate)
	pgparse.Children(left.ProtoReflect(), own)
}

// rows adds the rows of FROM that meet the deterministic conditions, with the deterministic subqueries of expressions as
// further columns. It returns the rest of the query.
func (f *finder) rows(s *pg_query.SelectStmt, props *properties, mayCorrelate bool) (left *pg_query.SelectStmt) {
	rows := selectFrom(nil, "")
	rows.FromClause = s.GetFromClause()
	var random []*pg_query.Node
	var fixed []*pg_query.Node
	for _, c := range conjuncts(s.GetWhereClause()) {
		if f.varies(c.ProtoReflect(), props.scope) {
			random = append(random, c)
		} else {
			fixed = append(fixed, c)
		}
	}
	rows.WhereClause = conjunction(fixed)
	shell := proto.CloneOf(s)
	shell.FromClause, shell.WithClause, shell.WhereClause = nil, nil, conjunction(random)
	left = proto.CloneOf(shell)
	f.takeSubqueries(left.ProtoReflect(), props.scope, &rows.TargetList)
	of := f.propertiesOf(rows.ProtoReflect(), props.scope)
	f.selects[rows] = of
	f.input(rows, of.reads.list, mayCorrelate)
	return left
}

// takeSubqueries moves the deterministic subqueries of expressions into a target list.
func (f *finder) takeSubqueries(m protoreflect.Message, in *scope, list *[]*pg_query.Node) {
	if n, ok := m.Interface().(*pg_query.Node); ok && n.GetSubLink() != nil && !f.varies(m, in) {
		*list = append(*list, targetNode("", proto.CloneOf(n)))
		n.Node = columnNode("dpwatch_subquery").Node
		return
	}
	pgparse.Children(m, func(c protoreflect.Message) { f.takeSubqueries(c, in, list) })
}

// walk finds the inputs below a node that is no query.
func (f *finder) walk(m protoreflect.Message, in *scope, mayCorrelate bool) {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		f.nested(n, in, mayCorrelate)
		return
	case *pg_query.RangeVar:
		f.relation(n, in)
		return
	case *pg_query.RangeSubselect:
		f.nested(n.GetSubquery().GetSelectStmt(), in, mayCorrelate || n.GetLateral())
		return
	case *pg_query.SubLink:
		if n.GetTestexpr() != nil {
			f.walk(n.GetTestexpr().ProtoReflect(), in, mayCorrelate)
		}
		f.nested(n.GetSubselect().GetSelectStmt(), in, true)
		return
	case *pg_query.FuncCall:
		f.functions[functionName(n)] = true
	case *pg_query.ColumnRef:
		if f.know.attributeVaries(pgparse.Last(n.GetFields())) { // it may be a call: x.f is f(x)
			f.functions[pgparse.Last(n.GetFields())] = true
		}
	}
	pgparse.Children(m, func(c protoreflect.Message) { f.walk(c, in, mayCorrelate) })
}

// nested is query for one below another.
func (f *finder) nested(s *pg_query.SelectStmt, in *scope, mayCorrelate bool) {
	if f.selects[s] == nil {
		f.analysis.query(s, in)
	}
	f.query(s, mayCorrelate)
}

// relation adds a relation or a CTE that the random part reads.
func (f *finder) relation(n *pg_query.RangeVar, in *scope) {
	if n.GetSchemaname() == tempSchema {
		return
	}
	if c := in.find(n.GetRelname()); n.GetSchemaname() == "" && c != nil {
		switch query := c.node.GetCtequery().GetSelectStmt(); {
		case f.followed[c]:
		case c.properties.varies:
			f.followed[c] = true
			f.query(query, c.with.mayCorrelate)
		default:
			f.followed[c] = true
			f.input(selectFrom(rangeNode("", c.name), ""), []*cte{c}, c.with.mayCorrelate)
		}
		return
	}
	if f.know.relationVaries(n) {
		f.fault = errRandomRelation
		return
	}
	star := selectFrom(rangeNode(n.GetSchemaname(), n.GetRelname()), "")
	f.selects[star] = &properties{readsTable: true}
	f.input(star, nil, false)
}

// input adds a deterministic query if it reads a relation.
func (f *finder) input(s *pg_query.SelectStmt, reads []*cte, mayCorrelate bool) {
	var all ctes
	all.addAll(reads)
	all.follow(func(*cte) bool { return false })
	props := f.selects[s]
	if (props == nil || !props.readsTable) && !slices.ContainsFunc(all.list, func(c *cte) bool { return c.properties.readsTable }) {
		return
	}
	if f.piece(s, reads, mayCorrelate) == nil {
		f.fault = errors.New("a part of the query cannot be executed alone")
	}
}

// conjuncts returns the conditions that AND combines.
func conjuncts(n *pg_query.Node) []*pg_query.Node {
	if n == nil {
		return nil
	}
	if b := n.GetBoolExpr(); b.GetBoolop() == pg_query.BoolExprType_AND_EXPR {
		var all []*pg_query.Node
		for _, arg := range b.GetArgs() {
			all = append(all, conjuncts(arg)...)
		}
		return all
	}
	return []*pg_query.Node{n}
}

// conjunction combines conditions; nil for none.
func conjunction(all []*pg_query.Node) *pg_query.Node {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &pg_query.Node{Node: &pg_query.Node_BoolExpr{BoolExpr: &pg_query.BoolExpr{Boolop: pg_query.BoolExprType_AND_EXPR, Args: all}}}
}
