package hoist

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Inputs is everything that the random part of a query reads: where the rows of Queries are the same, so is the
// distribution of the answer, unless Readers read more.
type Inputs struct {
	// Queries are deterministic. They read relations; the random part reads none but through them and through Readers.
	Queries []string
	// Readers are the functions, operators and types of the random part that may read relations, sorted.
	Readers []string
}

// InputOptions selects how inputs are found.
type InputOptions struct {
	Options
	// Nest evaluates what a subquery of the random part reads for each row of the query that it is in, whose columns it may
	// refer to.
	Nest bool
}

// errRandomRelation: a relation varies, and no query gives its rows without noise.
var errRandomRelation = errors.New("a relation has other rows in each trial")

// FindInputs returns the inputs of a query. Unlike the pieces of Split, they need not save time, and the random part need
// not be a query that PostgreSQL would execute in the same way. The error says why they cannot be found.
func FindInputs(sql string, opt InputOptions) (Inputs, error) {
	stmt, err := parse(sql)
	if err != nil {
		return Inputs{}, err
	}
	expandViews(stmt.ProtoReflect(), &opt.Knowledge, opt.Knowledge.relationVaries, 0)
	if readsStorage(stmt) {
		return Inputs{}, errors.New("it reads a temporary relation or a system column")
	}
	a := &analysis{know: opt.Knowledge, selects: map[*pg_query.SelectStmt]*properties{}, readers: true}
	a.query(stmt, nil)
	if a.reason != "" {
		return Inputs{}, errors.New(a.reason)
	}
	a.counted = true
	f := &finder{
		hoister: &hoister{analysis: a, opt: opt.Options, kept: map[*cte]bool{}, tables: map[*cte]*piece{}, same: map[string]*piece{}},
		nest:    opt.Nest, readers: map[string]bool{}, followed: map[*cte]bool{},
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
	in.Readers = slices.Sorted(maps.Keys(f.readers))
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

// systemColumns are no columns of SELECT *, and depend on where rows are stored.
var systemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// readsStorage reports whether a statement names a relation of the session's schema for temporary ones, or a system
// column.
func readsStorage(stmt *pg_query.SelectStmt) (found bool) {
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg_query.RangeVar:
			found = found || n.GetSchemaname() == tempSchema
		case *pg_query.ColumnRef:
			found = found || slices.Contains(systemColumns, pgparse.Last(n.GetFields()))
		}
		return !found
	})
	return found
}

// finder collects the inputs of a statement as pieces. The statement is not used afterwards.
type finder struct {
	*hoister
	nest     bool
	row      *[]*pg_query.Node // where inputs become further columns of an enclosing query; nil = nowhere
	readers  map[string]bool
	followed map[*cte]bool
	fault    error // why the inputs are not known; nil = they are
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
	if f.row == nil {
		f.split(s, props, mayCorrelate)
	} else if props.with != nil {
		f.fault = errors.New("a subquery that refers to other rows has a WITH clause")
		return
	}
	from := f.parts(s, props.scope)
	if f.row != nil && len(from.random) > 0 {
		f.fault = errors.New("a subquery that refers to other rows has a random part in FROM") // whose names they may have
		return
	}
	if read := len(from.fixed) == 1 && from.fixed[0].GetRangeVar().GetSchemaname() == tempSchema; read || len(from.fixed) == 0 {
		pgparse.Children(s.ProtoReflect(), own)
		return
	}
	left := f.rows(s, props, from, mayCorrelate)
	pgparse.Children(left.ProtoReflect(), own)
}

// rows adds the rows of the deterministic part of FROM that meet the deterministic conditions, with subqueries as further
// columns: if they are deterministic, or what they read. It returns the rest of the query.
func (f *finder) rows(s *pg_query.SelectStmt, props *properties, from parts, mayCorrelate bool) (left *pg_query.SelectStmt) {
	left = proto.CloneOf(s)
	left.FromClause, left.WithClause, left.WhereClause = nil, nil, nil
	rows := selectFrom(nil, "")
	rest := &pg_query.SelectStmt{FromClause: from.random, WhereClause: conjunction(from.conditions)}
	f.takeSubqueries(rest.ProtoReflect(), props.scope, &rows.TargetList)
	if !f.alwaysReturns(left) { // otherwise its subqueries are evaluated also if FROM has no rows
		f.takeSubqueries(left.ProtoReflect(), props.scope, &rows.TargetList)
	}
	left.FromClause, left.WhereClause = rest.FromClause, rest.WhereClause
	all := []parts{from}
	if len(from.random) > 0 && len(rows.TargetList) == 1 {
		all = from.components()
	}
	for _, p := range all {
		one := proto.CloneOf(rows)
		one.FromClause, one.WhereClause = p.fixed, conjunction(p.filters)
		of := f.propertiesOf(one.ProtoReflect(), props.scope)
		f.selects[one] = of
		f.input(one, of.reads.list, mayCorrelate)
	}
	return left
}

// alwaysReturns reports whether a query may return a row although FROM has none: an aggregation without GROUP BY or with
// grouping sets.
func (f *finder) alwaysReturns(s *pg_query.SelectStmt) (always bool) {
	if len(s.GetGroupClause()) > 0 {
		return slices.ContainsFunc(s.GetGroupClause(), func(n *pg_query.Node) bool { return n.GetGroupingSet() != nil })
	}
	always = s.GetHavingClause() != nil
	for _, n := range slices.Concat(s.GetTargetList(), s.GetSortClause()) {
		pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
			call, ok := m.(*pg_query.FuncCall)
			if ok {
				traits, known := f.know.Functions[functionName(call)]
				always = always || !known || traits.Aggregate
			}
			_, sub := m.(*pg_query.SelectStmt)
			return !sub
		})
	}
	return always
}

// takeSubqueries moves subqueries of expressions, and those in FROM, into a target list.
func (f *finder) takeSubqueries(m protoreflect.Message, in *scope, list *[]*pg_query.Node) {
	n, ok := m.Interface().(*pg_query.Node)
	link, item := n.GetSubLink(), n.GetRangeSubselect()
	switch {
	case !ok || link == nil && item == nil:
		pgparse.Children(m, func(c protoreflect.Message) { f.takeSubqueries(c, in, list) })
	case item != nil && f.nest:
		f.nestedIn(item.GetSubquery().GetSelectStmt(), in, list)
		n.Node = rangeNode(tempSchema, "dpwatch_subquery").Node
	case link != nil && !f.varies(m, in):
		*list = append(*list, targetNode("", proto.CloneOf(n)))
		n.Node = columnNode("dpwatch_subquery").Node
	case link != nil && f.nest:
		if test := link.GetTestexpr(); test != nil {
			f.takeSubqueries(test.ProtoReflect(), in, list)
			f.walk(test.ProtoReflect(), in, true)
		}
		f.names(link)
		f.nestedIn(link.GetSubselect().GetSelectStmt(), in, list)
		n.Node = columnNode("dpwatch_subquery").Node
	}
}

// names adds what a node calls that may read relations.
func (f *finder) names(m proto.Message) {
	if reader := f.know.reader(m); reader != "" {
		f.readers[reader] = true
	}
}

// nestedIn adds what a query reads to the columns of the query that it is in.
func (f *finder) nestedIn(s *pg_query.SelectStmt, in *scope, list *[]*pg_query.Node) {
	outer := f.row
	f.row = list
	f.nested(s, in, true)
	f.row = outer
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
		f.names(n)
		f.nested(n.GetSubselect().GetSelectStmt(), in, true)
		return
	}
	f.names(m.Interface())
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
		outer := f.row
		f.row = nil // other queries may read it, too
		defer func() { f.row = outer }()
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
	if f.row != nil {
		*f.row = append(*f.row, targetNode("", rowsNode(s)))
		return
	}
	if f.piece(s, reads, mayCorrelate) == nil {
		f.fault = errors.New("a part of the query cannot be executed alone")
	}
}

// rowsNode returns an expression for the texts of the rows of a query.
func rowsNode(s *pg_query.SelectStmt) *pg_query.Node {
	const row = "dpwatch_row"
	texts := selectFrom(&pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{
		Subquery: selectNode(s), Alias: &pg_query.Alias{Aliasname: row},
	}}}, "")
	texts.TargetList = []*pg_query.Node{targetNode("", &pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{
		Arg: columnNode(row), TypeName: &pg_query.TypeName{Names: []*pg_query.Node{stringNode("pg_catalog"), stringNode("text")}, Typemod: -1},
	}}})}
	return &pg_query.Node{Node: &pg_query.Node_SubLink{SubLink: &pg_query.SubLink{SubLinkType: pg_query.SubLinkType_ARRAY_SUBLINK, Subselect: selectNode(texts)}}}
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
