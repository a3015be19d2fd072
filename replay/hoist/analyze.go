package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// cte is one WITH query.
type cte struct {
	name          string
	node          *pg_query.CommonTableExpr
	with          *withClause
	properties    *properties // nil until it is judged
	selfReference bool        // it references itself
	// references is how often the statement names the CTE, as the server counts: references in unused CTEs count too.
	references int
}

// level is one WITH clause.
type withClause struct {
	recursive    bool
	depth        int  // number of enclosing WITH clauses
	mayCorrelate bool // columns of an enclosing query may be visible here
	ctes         []*cte
}

// unit holds the properties of one query, including its own WITH.
type properties struct {
	varies         bool
	volatile       bool        // executing it again may give another result, for a reason other than the CTEs that it reads
	alwaysVolatile bool        // the planner treats it as volatile
	readsTable     bool        // it or one of its CTEs names a relation that is not a CTE
	reads          ctes        // of enclosing WITH clauses, as it names them
	with           *withClause // its own WITH
	scope          *scope      // scope inside the query
}

// ctes is a set in order of insertion.
type ctes struct {
	list []*cte
	has  map[*cte]bool
}

func (s *ctes) add(c *cte) bool {
	if s.has[c] {
		return false
	}
	if s.has == nil {
		s.has = map[*cte]bool{}
	}
	s.has[c] = true
	s.list = append(s.list, c)
	return true
}

// addAll adds CTEs.
func (s *ctes) addAll(list []*cte) {
	for _, c := range list {
		s.add(c)
	}
}

// follow adds what the CTEs of the set read, and so on; the CTEs that stop accepts are not followed.
func (s *ctes) follow(stop func(*cte) bool) {
	for i := 0; i < len(s.list); i++ {
		if c := s.list[i]; !stop(c) {
			s.addAll(c.properties.reads.list)
		}
	}
}

// scope is a linked list of the visible CTEs, innermost first. nil = none.
type scope struct {
	cte   *cte
	outer *scope
}

func (s *scope) find(name string) *cte {
	for ; s != nil; s = s.outer {
		if s.cte.name == name {
			return s.cte
		}
	}
	return nil
}

// analysis judges every query of a statement.
type analysis struct {
	know    Knowledge
	selects map[*pg_query.SelectStmt]*properties
	counted bool   // references are counted
	reason  string // why no part of the statement can be split
}

// query judges a query in a scope, and everything below it.
func (a *analysis) query(s *pg_query.SelectStmt, outer *scope) *properties {
	props := &properties{}
	a.selects[s] = props
	props.with, props.scope = a.with(s.GetWithClause(), outer)
	props.varies = len(s.GetLockingClause()) > 0 || s.GetIntoClause() != nil
	props.volatile = props.varies
	found := &properties{}
	pgparse.Children(s.ProtoReflect(), func(m protoreflect.Message) {
		if _, with := m.Interface().(*pg_query.WithClause); !with {
			a.visit(m, props.scope, found)
		}
	})
	props.varies = props.varies || found.varies
	props.volatile, props.alwaysVolatile = props.volatile || found.volatile, found.alwaysVolatile
	props.readsTable = found.readsTable
	// The query reads what its own CTEs read, if they are referenced.
	found.reads.follow(func(c *cte) bool {
		if props.with == nil || c.with != props.with {
			props.reads.add(c)
			return true
		}
		props.readsTable = props.readsTable || c.properties.readsTable
		return false
	})
	return props
}

// with judges the CTEs of a WITH clause and returns the scope of its query.
func (a *analysis) with(with *pg_query.WithClause, outer *scope) (*withClause, *scope) {
	if with == nil {
		return nil, outer
	}
	l := &withClause{recursive: with.GetRecursive()}
	if outer != nil {
		l.depth = outer.cte.with.depth + 1
	}
	in := outer
	for _, n := range with.GetCtes() {
		c := &cte{name: n.GetCommonTableExpr().GetCtename(), node: n.GetCommonTableExpr(), with: l}
		l.ctes = append(l.ctes, c)
		if l.recursive {
			in = &scope{c, in}
		}
	}
	for _, c := range l.ctes {
		query := c.node.GetCtequery().GetSelectStmt()
		if query == nil {
			a.reason = "a WITH query is not a SELECT"
			query = &pg_query.SelectStmt{}
		}
		props := a.query(query, in)
		// SEARCH and CYCLE add columns of their own; such a query is left unchanged.
		props.varies = props.varies || c.node.GetSearchClause() != nil || c.node.GetCycleClause() != nil
		c.selfReference = props.reads.has[c]
		c.properties = props
		if !l.recursive {
			in = &scope{c, in}
		}
	}
	return l, in
}

// visit adds the properties of a node and everything below it to props.
func (a *analysis) visit(m protoreflect.Message, in *scope, props *properties) {
	if a.visitNode(m, in, props) {
		pgparse.Children(m, func(c protoreflect.Message) { a.visit(c, in, props) })
	}
}

// mark records for every Node of an expression, except in subqueries, whether it is volatile, and returns that for the
// whole expression.
func (a *analysis) markVarying(m protoreflect.Message, in *scope, marks map[*pg_query.Node]bool) bool {
	props := &properties{}
	if a.visitNode(m, in, props) {
		pgparse.Children(m, func(c protoreflect.Message) { props.varies = a.markVarying(c, in, marks) || props.varies })
	}
	if n, ok := m.Interface().(*pg_query.Node); ok {
		marks[n] = props.varies
	}
	return props.varies
}

// again reports whether a volatile node may give another result when it is executed again within one statement. A random
// CTE is computed once, the time is that of the transaction, and a sample keeps its seed. A query is judged by its parts.
func (a *analysis) reevaluates(m protoreflect.Message, in *scope) bool {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt, *pg_query.SQLValueFunction, *pg_query.A_Const, *pg_query.RangeTableSample:
		return false
	case *pg_query.RangeVar:
		return n.GetSchemaname() != "" || in.find(n.GetRelname()) == nil
	case *pg_query.FuncCall:
		traits, known := a.know.Functions[functionName(n)]
		return !known || traits.Volatile
	}
	return true
}

// self adds the properties of one node to props and reports whether the nodes below it must be visited.
func (a *analysis) visitNode(m protoreflect.Message, in *scope, props *properties) bool {
	before := props.varies
	props.varies = false
	defer func() {
		props.volatile = props.volatile || props.varies && a.reevaluates(m, in)
		props.varies = props.varies || before
	}()
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		inner := a.selects[n]
		if inner == nil {
			inner = a.query(n, in)
		}
		props.varies = props.varies || inner.varies
		props.volatile, props.alwaysVolatile = props.volatile || inner.volatile, props.alwaysVolatile || inner.alwaysVolatile
		props.readsTable = props.readsTable || inner.readsTable
		props.reads.addAll(inner.reads.list)
		return false
	case *pg_query.RangeVar:
		a.rangeVar(n, in, props)
	case *pg_query.FuncCall:
		props.varies = a.know.callVaries(n)
		props.alwaysVolatile = props.alwaysVolatile || a.know.Functions[functionName(n)].AlwaysVolatile
	case *pg_query.SQLValueFunction:
		props.varies = true
	case *pg_query.RangeTableSample:
		props.varies = props.varies || n.GetRepeatable() == nil
	case *pg_query.A_Expr:
		props.varies = props.varies || a.know.Operators[pgparse.Last(n.GetName())]
	case *pg_query.SubLink:
		props.varies = props.varies || a.know.Operators[pgparse.Last(n.GetOperName())]
	case *pg_query.SortBy:
		props.varies = props.varies || a.know.Operators[pgparse.Last(n.GetUseOp())]
	case *pg_query.ColumnRef:
		props.varies = props.varies || len(n.GetFields()) > 1 && a.know.attributeVaries(pgparse.Last(n.GetFields()))
	case *pg_query.A_Indirection:
		props.varies = props.varies || slices.ContainsFunc(n.GetIndirection(), func(i *pg_query.Node) bool { return a.know.attributeVaries(i.GetString_().GetSval()) })
	case *pg_query.A_Const:
		props.varies = props.varies || isTimeWord(n.GetSval().GetSval())
	}
	return true
}

// rangeVar adds the properties of a relation or CTE that is read.
func (a *analysis) rangeVar(n *pg_query.RangeVar, in *scope, props *properties) {
	if n.GetSchemaname() == "" {
		if c := in.find(n.GetRelname()); c != nil {
			if !a.counted {
				c.references++
			}
			props.reads.add(c)
			switch {
			case c.properties != nil:
				props.varies = props.varies || c.properties.varies
			case !isCurrent(c):
				props.varies = true // a later one, which is not judged yet
			}
			return
		}
	}
	props.readsTable = true
	props.varies = props.varies || a.know.relationVaries(n)
}

// itself distinguishes a reference of a recursive CTE to itself from one to a later CTE: only the first CTE that is not
// judged yet is being judged.
func isCurrent(c *cte) bool {
	for _, other := range c.with.ctes {
		if other.properties == nil {
			return other == c
		}
	}
	return false
}

// volatile judges one part of a query, within a scope.
func (a *analysis) varies(m protoreflect.Message, in *scope) bool {
	return a.propertiesOf(m, in).varies
}

// read judges one part of a query.
func (a *analysis) propertiesOf(m protoreflect.Message, in *scope) *properties {
	props := &properties{}
	a.visit(m, in, props)
	return props
}
