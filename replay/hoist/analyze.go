package hoist

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// cte is one WITH query.
type cte struct {
	name          string
	node          *pg_query.CommonTableExpr
	with          *withClause
	properties    *properties // nil until its query is analysed
	selfReference bool
	// references counts the references to the CTE in the statement as the server does: those in unused CTEs count, too.
	references int
}

// withClause is one WITH clause.
type withClause struct {
	recursive    bool
	depth        int  // number of enclosing WITH clauses
	mayCorrelate bool // its queries may read columns of an enclosing query
	ctes         []*cte
}

// properties are those of one query, including its WITH, or of one part of a query.
type properties struct {
	varies     bool        // its result may differ between trials
	readsTable bool        // it, or a CTE of its WITH, names a relation that is not a CTE
	reads      ctes        // the CTEs of enclosing WITH clauses that it references
	with       *withClause // its WITH; nil for none
	scope      *scope      // inside the query
}

// ctes is a set of CTEs in order of insertion.
type ctes struct {
	list []*cte
	has  map[*cte]bool
}

// add adds a CTE and reports whether it is new.
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

func (s *ctes) addAll(list []*cte) {
	for _, c := range list {
		s.add(c)
	}
}

// follow adds all CTEs that the CTEs of the set read, directly or indirectly. It does not add those that are read only
// by CTEs for which stop returns true.
func (s *ctes) follow(stop func(*cte) bool) {
	for i := 0; i < len(s.list); i++ {
		if c := s.list[i]; !stop(c) {
			s.addAll(c.properties.reads.list)
		}
	}
}

// scope is a linked list of the visible CTEs, innermost first; nil if there are none.
type scope struct {
	cte   *cte
	outer *scope
}

// find returns the visible CTE of a name, or nil.
func (s *scope) find(name string) *cte {
	for ; s != nil; s = s.outer {
		if s.cte.name == name {
			return s.cte
		}
	}
	return nil
}

// analysis finds the properties of every query of a statement.
type analysis struct {
	know    Knowledge
	selects map[*pg_query.SelectStmt]*properties
	counted bool   // cte.references are complete
	reason  string // why no part of the statement can be split
	readers bool   // a name that may read relations counts as one
}

// query returns the properties of a query in a scope, and adds them, and those of the queries below it, to a.selects.
func (a *analysis) query(s *pg_query.SelectStmt, outer *scope) *properties {
	props := &properties{}
	a.selects[s] = props
	props.with, props.scope = a.with(s.GetWithClause(), outer)
	props.varies = len(s.GetLockingClause()) > 0 || s.GetIntoClause() != nil
	found := &properties{}
	pgparse.Children(s.ProtoReflect(), func(m protoreflect.Message) {
		if _, with := m.Interface().(*pg_query.WithClause); !with {
			a.visit(m, props.scope, found)
		}
	})
	props.varies = props.varies || found.varies
	props.readsTable = found.readsTable
	// Through its own CTEs, if it references them, the query reads CTEs of enclosing clauses, and tables.
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

// with analyses the queries of a WITH clause. It returns the clause and the scope of the query that it belongs to.
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
		// SEARCH and CYCLE add columns to the result; such a query is left unchanged.
		props.varies = props.varies || c.node.GetSearchClause() != nil || c.node.GetCycleClause() != nil
		c.selfReference = props.reads.has[c]
		c.properties = props
		if !l.recursive {
			in = &scope{c, in}
		}
	}
	return l, in
}

// visit adds the properties of a node and of everything below it to props.
func (a *analysis) visit(m protoreflect.Message, in *scope, props *properties) {
	if a.visitNode(m, in, props) {
		pgparse.Children(m, func(c protoreflect.Message) { a.visit(c, in, props) })
	}
}

// markVarying reports whether an expression varies, and records the same in marks for every Node in it, except those in
// subqueries.
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

// visitNode adds the properties of one node to props. It reports whether the nodes below it must be visited.
func (a *analysis) visitNode(m protoreflect.Message, in *scope, props *properties) bool {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		inner := a.selects[n]
		if inner == nil {
			inner = a.query(n, in)
		}
		props.varies = props.varies || inner.varies
		props.readsTable = props.readsTable || inner.readsTable
		props.reads.addAll(inner.reads.list)
		return false
	case *pg_query.RangeVar:
		a.rangeVar(n, in, props)
	case *pg_query.FuncCall:
		props.varies = props.varies || a.know.callVaries(n)
	case *pg_query.SQLValueFunction:
		props.varies = true
	case *pg_query.RangeTableSample:
		props.varies = props.varies || n.GetRepeatable() == nil
	case *pg_query.A_Const:
		props.varies = props.varies || isTimeWord(n.GetSval().GetSval())
	default:
		props.varies = props.varies || a.know.any(n, func(t Traits) bool { return t.Volatile })
	}
	props.readsTable = props.readsTable || a.readers && a.know.reader(m.Interface()) != ""
	return true
}

// rangeVar adds the properties of a relation or CTE in FROM to props.
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
				props.varies = true // a later CTE, which is not analysed yet
			}
			return
		}
	}
	props.readsTable = true
	props.varies = props.varies || a.know.relationVaries(n)
}

// isCurrent reports whether c is the CTE that is being analysed: the first of its clause without properties. A
// reference to it is one to itself; a reference to another CTE without properties is one to a later CTE.
func isCurrent(c *cte) bool {
	for _, other := range c.with.ctes {
		if other.properties == nil {
			return other == c
		}
	}
	return false
}

// varies reports whether one part of a query, in a scope, varies.
func (a *analysis) varies(m protoreflect.Message, in *scope) bool {
	return a.propertiesOf(m, in).varies
}

// propertiesOf returns the properties of one part of a query, in a scope.
func (a *analysis) propertiesOf(m protoreflect.Message, in *scope) *properties {
	props := &properties{}
	a.visit(m, in, props)
	return props
}
