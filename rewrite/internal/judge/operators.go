package judge

import (
	_ "embed"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

//go:embed builtin_operators.txt
var builtinOperators string

// Expression checks every operator of an expression: an operator is a call of its function.
func (s *Statement) Expression(n *pg_query.A_Expr) {
	for _, o := range resolve.OperandsOf(n) {
		s.Operator(n.GetName(), o, "A_Expr", n.GetLocation())
	}
}

// SubLink checks the operator of x op ANY (SELECT ...); without one, as in x IN (SELECT ...), it is =.
func (s *Statement) SubLink(n *pg_query.SubLink) {
	e := resolve.Operands{Name: pgparse.Last(n.GetOperName()), Left: []*pg_query.Node{n.GetTestexpr()}}
	if e.Name == "" && n.GetSubLinkType() == pg_query.SubLinkType_ANY_SUBLINK {
		e.Name = "="
	}
	s.Operator(n.GetOperName(), e, "SubLink", n.GetLocation())
}

// Operator checks an operator by its name as written, which may be OPERATOR(schema.name), or nil for an implied one;
// without a name in e there is none.
func (s *Statement) Operator(written []*pg_query.Node, e resolve.Operands, node string, offset int32) {
	switch schema, _ := pgparse.Name(written); {
	case len(written) > 2:
		s.Refuse(reasons.UnknownFunction, node, offset, "operator "+strings.Join(pgparse.Strings(written), ".")+" is qualified with a database", "qualify it with its schema alone")
	case e.Name != "":
		s.Called.operatorCall(schema, e, node, offset)
	}
}

// isHarmless reports whether a function of the source is declared, or immutable in all its overloads.
func (f *functions) isHarmless(name Table) bool {
	if f.declared(name.Schema, name.Name) {
		return true
	}
	found := f.source.Find(name.Schema, name.Name, nil)
	for _, g := range found {
		if g.Volatility != "immutable" && !isContrib(g) {
			return false
		}
	}
	return len(found) > 0
}
