package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// cte is one WITH query.
type cte struct {
	name  string
	node  *pg_query.CommonTableExpr
	level *level
	unit  *unit // nil until it is judged
	self  bool  // it references itself
	// references is how often the statement names the CTE, as the server counts: references in unused CTEs count too.
	references int
}

// level is one WITH clause.
type level struct {
	recursive bool
	depth     int  // number of enclosing WITH clauses
	unsure    bool // columns of an enclosing query may be visible here
	ctes      []*cte
}

// unit holds the properties of one query, including its own WITH.
type unit struct {
	volatile bool
	draws    bool   // executing it again may give another result, for a reason other than the CTEs that it reads
	sure     bool   // the planner treats it as volatile
	tables   bool   // it or one of its CTEs names a relation that is not a CTE
	reads    ctes   // of enclosing WITH clauses, as it names them
	own      *level // its own WITH
	inner    *scope // scope inside the query
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
			s.addAll(c.unit.reads.list)
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
	selects map[*pg_query.SelectStmt]*unit
	counted bool   // references are counted
	fault   string // why no part of the statement can be split
}

// query judges a query in a scope, and everything below it.
func (a *analysis) query(s *pg_query.SelectStmt, outer *scope) *unit {
	u := &unit{}
	a.selects[s] = u
	u.own, u.inner = a.with(s.GetWithClause(), outer)
	u.volatile = len(s.GetLockingClause()) > 0 || s.GetIntoClause() != nil
	u.draws = u.volatile
	found := &unit{}
	pgparse.Children(s.ProtoReflect(), func(m protoreflect.Message) {
		if _, with := m.Interface().(*pg_query.WithClause); !with {
			a.visit(m, u.inner, found)
		}
	})
	u.volatile = u.volatile || found.volatile
	u.draws, u.sure = u.draws || found.draws, found.sure
	u.tables = found.tables
	// The query reads what its own CTEs read, if they are referenced.
	found.reads.follow(func(c *cte) bool {
		if u.own == nil || c.level != u.own {
			u.reads.add(c)
			return true
		}
		u.tables = u.tables || c.unit.tables
		return false
	})
	return u
}

// with judges the CTEs of a WITH clause and returns the scope of its query.
func (a *analysis) with(with *pg_query.WithClause, outer *scope) (*level, *scope) {
	if with == nil {
		return nil, outer
	}
	l := &level{recursive: with.GetRecursive()}
	if outer != nil {
		l.depth = outer.cte.level.depth + 1
	}
	in := outer
	for _, n := range with.GetCtes() {
		c := &cte{name: n.GetCommonTableExpr().GetCtename(), node: n.GetCommonTableExpr(), level: l}
		l.ctes = append(l.ctes, c)
		if l.recursive {
			in = &scope{c, in}
		}
	}
	for _, c := range l.ctes {
		query := c.node.GetCtequery().GetSelectStmt()
		if query == nil {
			a.fault = "a WITH query is not a SELECT"
			query = &pg_query.SelectStmt{}
		}
		u := a.query(query, in)
		// SEARCH and CYCLE add columns of their own; such a query is left unchanged.
		u.volatile = u.volatile || c.node.GetSearchClause() != nil || c.node.GetCycleClause() != nil
		c.self = u.reads.has[c]
		c.unit = u
		if !l.recursive {
			in = &scope{c, in}
		}
	}
	return l, in
}

// visit adds the properties of a node and everything below it to u.
func (a *analysis) visit(m protoreflect.Message, in *scope, u *unit) {
	if a.self(m, in, u) {
		pgparse.Children(m, func(c protoreflect.Message) { a.visit(c, in, u) })
	}
}

// mark records for every Node of an expression, except in subqueries, whether it is volatile, and returns that for the
// whole expression.
func (a *analysis) mark(m protoreflect.Message, in *scope, marks map[*pg_query.Node]bool) bool {
	u := &unit{}
	if a.self(m, in, u) {
		pgparse.Children(m, func(c protoreflect.Message) { u.volatile = a.mark(c, in, marks) || u.volatile })
	}
	if n, ok := m.Interface().(*pg_query.Node); ok {
		marks[n] = u.volatile
	}
	return u.volatile
}

// again reports whether a volatile node may give another result when it is executed again within one statement. A random
// CTE is computed once, the time is that of the transaction, and a sample keeps its seed. A query is judged by its parts.
func (a *analysis) again(m protoreflect.Message, in *scope) bool {
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

// self adds the properties of one node to u and reports whether the nodes below it must be visited.
func (a *analysis) self(m protoreflect.Message, in *scope, u *unit) bool {
	before := u.volatile
	u.volatile = false
	defer func() {
		u.draws = u.draws || u.volatile && a.again(m, in)
		u.volatile = u.volatile || before
	}()
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		inner := a.selects[n]
		if inner == nil {
			inner = a.query(n, in)
		}
		u.volatile = u.volatile || inner.volatile
		u.draws, u.sure = u.draws || inner.draws, u.sure || inner.sure
		u.tables = u.tables || inner.tables
		u.reads.addAll(inner.reads.list)
		return false
	case *pg_query.RangeVar:
		a.rangeVar(n, in, u)
	case *pg_query.FuncCall:
		u.volatile = a.know.volatileCall(n)
		u.sure = u.sure || a.know.Functions[functionName(n)].Always
	case *pg_query.SQLValueFunction:
		u.volatile = true
	case *pg_query.RangeTableSample:
		u.volatile = u.volatile || n.GetRepeatable() == nil
	case *pg_query.A_Expr:
		u.volatile = u.volatile || a.know.Operators[pgparse.Last(n.GetName())]
	case *pg_query.SubLink:
		u.volatile = u.volatile || a.know.Operators[pgparse.Last(n.GetOperName())]
	case *pg_query.SortBy:
		u.volatile = u.volatile || a.know.Operators[pgparse.Last(n.GetUseOp())]
	case *pg_query.ColumnRef:
		u.volatile = u.volatile || len(n.GetFields()) > 1 && a.know.volatileAttribute(pgparse.Last(n.GetFields()))
	case *pg_query.A_Indirection:
		u.volatile = u.volatile || slices.ContainsFunc(n.GetIndirection(), func(i *pg_query.Node) bool { return a.know.volatileAttribute(i.GetString_().GetSval()) })
	case *pg_query.A_Const:
		u.volatile = u.volatile || isTimeWord(n.GetSval().GetSval())
	}
	return true
}

// rangeVar adds the properties of a relation or CTE that is read.
func (a *analysis) rangeVar(n *pg_query.RangeVar, in *scope, u *unit) {
	if n.GetSchemaname() == "" {
		if c := in.find(n.GetRelname()); c != nil {
			if !a.counted {
				c.references++
			}
			u.reads.add(c)
			switch {
			case c.unit != nil:
				u.volatile = u.volatile || c.unit.volatile
			case !itself(c):
				u.volatile = true // a later one, which is not judged yet
			}
			return
		}
	}
	u.tables = true
	u.volatile = u.volatile || a.know.volatileRelation(n)
}

// itself distinguishes a reference of a recursive CTE to itself from one to a later CTE: only the first CTE that is not
// judged yet is being judged.
func itself(c *cte) bool {
	for _, other := range c.level.ctes {
		if other.unit == nil {
			return other == c
		}
	}
	return false
}

// volatile judges one part of a query, within a scope.
func (a *analysis) volatile(m protoreflect.Message, in *scope) bool {
	return a.read(m, in).volatile
}

// read judges one part of a query.
func (a *analysis) read(m protoreflect.Message, in *scope) *unit {
	u := &unit{}
	a.visit(m, in, u)
	return u
}
