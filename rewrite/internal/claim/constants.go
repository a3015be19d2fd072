package claim

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// constants finds the WITH queries and subqueries in FROM that give one row of expressions, so that their columns stand
// for these.
type constants struct {
	with   map[string]map[string]*pg_query.Node // columns of the WITH queries of the statement
	from   map[string]map[string]*pg_query.Node // columns of the entries of its FROM, by their names there
	scopes int                                  // SELECTs with FROM
}

// constantsOf reads a statement. A name that occurs twice among the WITH queries or in FROM, at any level, stands for
// nothing.
func constantsOf(statement *pg_query.SelectStmt) *constants {
	c := &constants{with: map[string]map[string]*pg_query.Node{}, from: map[string]map[string]*pg_query.Node{}}
	if statement == nil {
		return c
	}
	defined, named, outer := map[string]int{}, map[string]int{}, false
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *pg_query.SelectStmt:
			if len(n.GetFromClause()) > 0 {
				c.scopes++
			}
		case *pg_query.CommonTableExpr:
			defined[n.GetCtename()]++
		case *pg_query.RangeVar:
			if n.GetAlias() == nil {
				named[n.GetRelname()]++
			}
		case *pg_query.Alias:
			named[n.GetAliasname()]++
		case *pg_query.JoinExpr:
			outer = outer || n.GetJointype() != pg_query.JoinType_JOIN_INNER // it may give NULL instead
		}
		pgparse.Children(m, visit)
	}
	visit(statement.ProtoReflect())
	for _, n := range statement.GetWithClause().GetCtes() {
		cte := n.GetCommonTableExpr()
		if columns := columnsOf(cte.GetCtequery().GetSelectStmt(), cte.GetAliascolnames()); columns != nil && defined[cte.GetCtename()] == 1 && !statement.GetWithClause().GetRecursive() {
			c.with[cte.GetCtename()] = columns
		}
	}
	if outer {
		return c
	}
	for _, n := range statement.GetFromClause() {
		c.entry(n, named)
	}
	return c
}

// entry adds an entry of FROM, and those of an inner join.
func (c *constants) entry(n *pg_query.Node, named map[string]int) {
	name, columns := "", map[string]*pg_query.Node(nil)
	switch {
	case n.GetJoinExpr() != nil:
		c.entry(n.GetJoinExpr().GetLarg(), named)
		c.entry(n.GetJoinExpr().GetRarg(), named)
	case n.GetRangeSubselect() != nil:
		alias := n.GetRangeSubselect().GetAlias()
		name, columns = alias.GetAliasname(), columnsOf(n.GetRangeSubselect().GetSubquery().GetSelectStmt(), alias.GetColnames())
	case n.GetRangeVar() != nil && n.GetRangeVar().GetSchemaname() == "" && len(n.GetRangeVar().GetAlias().GetColnames()) == 0:
		if name = n.GetRangeVar().GetAlias().GetAliasname(); name == "" {
			name = n.GetRangeVar().GetRelname()
		}
		columns = c.with[n.GetRangeVar().GetRelname()]
	}
	if columns != nil && named[name] == 1 {
		c.from[name] = columns
	}
}

// columnsOf returns the columns of a query that gives one row without reading anything; nil if it is another.
func columnsOf(s *pg_query.SelectStmt, names []*pg_query.Node) map[string]*pg_query.Node {
	values := valuesOf(s)
	if values == nil || len(names) > len(values) {
		return nil
	}
	columns := map[string]*pg_query.Node{}
	for i, v := range values {
		name := v.name
		if i < len(names) {
			name = names[i].GetString_().GetSval()
		}
		if columns[name] != nil {
			return nil
		}
		columns[name] = v.node
	}
	return columns
}

type namedValue struct {
	name string
	node *pg_query.Node
}

// valuesOf returns the columns of SELECT expression, ... or VALUES (expression, ...) without anything else.
func valuesOf(s *pg_query.SelectStmt) (values []namedValue) {
	if s == nil {
		return nil
	}
	rest := proto.Clone(s).(*pg_query.SelectStmt) //nolint:errcheck,forcetypeassert // a clone has the type
	rest.TargetList, rest.ValuesLists = nil, nil
	if !proto.Equal(rest, &pg_query.SelectStmt{LimitOption: s.GetLimitOption(), Op: pg_query.SetOperation_SETOP_NONE}) {
		return nil
	}
	for _, n := range s.GetTargetList() {
		values = append(values, namedValue{n.GetResTarget().GetName(), n.GetResTarget().GetVal()})
	}
	if lists := s.GetValuesLists(); len(lists) == 1 {
		for _, n := range lists[0].GetList().GetItems() {
			values = append(values, namedValue{"", n})
		}
	} else if len(lists) > 1 {
		return nil
	}
	return values
}

// scalar returns the expression that (SELECT expression) and (SELECT column FROM constants) stand for; nil if the
// subquery is another.
func (c *constants) scalar(l *pg_query.SubLink) *pg_query.Node {
	s := l.GetSubselect().GetSelectStmt()
	if l.GetSubLinkType() != pg_query.SubLinkType_EXPR_SUBLINK || s == nil || len(s.GetTargetList()) != 1 {
		return nil
	}
	value := s.GetTargetList()[0].GetResTarget().GetVal()
	if len(s.GetFromClause()) == 0 {
		if valuesOf(s) == nil {
			return nil
		}
		return value
	}
	of := s.GetFromClause()[0].GetRangeVar()
	bare := proto.Clone(s).(*pg_query.SelectStmt) //nolint:errcheck,forcetypeassert // a clone has the type
	bare.FromClause = nil
	fields := pgparse.Strings(value.GetColumnRef().GetFields())
	if len(s.GetFromClause()) != 1 || of == nil || of.GetSchemaname() != "" || of.GetAlias() != nil || valuesOf(bare) == nil ||
		len(fields) == 0 || len(fields) > 2 || len(fields) == 2 && fields[0] != of.GetRelname() {
		return nil
	}
	return c.with[of.GetRelname()][fields[len(fields)-1]]
}

// column returns the expression that a column stands for: one with the name of its entry in FROM, or without it in a
// statement with one FROM, where another column of that name would be an error.
func (c *constants) column(n *pg_query.ColumnRef) *pg_query.Node {
	switch fields := pgparse.Strings(n.GetFields()); {
	case len(fields) == 2:
		return c.from[fields[0]][fields[1]]
	case len(fields) == 1 && c.scopes == 1 && fields[0] != "":
		for _, columns := range c.from {
			if value := columns[fields[0]]; value != nil {
				return value
			}
		}
	}
	return nil
}
