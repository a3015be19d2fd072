package judge

import (
	_ "embed"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
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
		s.operatorCall(schema, e, node, offset)
	}
}

// operatorCall checks the user-defined operators to which a name may refer, depending on the types of the operands.
func (s *Statement) operatorCall(schema string, e resolve.Operands, node string, offset int32) {
	functions, name := s.rules.functions, e.Name
	dotted := strings.TrimPrefix(schema+"."+name, ".")
	if schema == "pg_catalog" {
		if !functions.builtinOperators[name] {
			s.Refuse(reasons.UnknownFunction, node, offset, "operator "+dotted+" is built into the server, but is not in the list of operators that dpwatch knows", "")
		}
		return
	}
	builtin := schema == "" && functions.builtinOperators[name]
	if functions.source == nil {
		if builtin {
			s.assume(AssumedBuiltin)
			return
		}
		s.Refuse(reasons.UnknownFunction, node, offset, "operator "+dotted+" is not built in, and its function is not known", "set privacy.catalog to read the engine's catalog")
		return
	}
	s.use(nameUse{kind: useOperator, schema: schema, name: name, operands: e, node: node, offset: offset, builtin: builtin})
	if schema == "" && s.path.Uncertain && s.applicable(functions.source.Operators[name], e) {
		s.refuseUncertain(node, offset, "operator "+dotted, "write it as OPERATOR(schema."+name+")")
		return
	}
	found := false
	for _, o := range functions.source.Operators[name] {
		if o.Schema != schema && (schema != "" || !s.path.Has(o.Schema)) {
			continue
		}
		found = true
		if s.applicable([]catalog.Operator{o}, e) {
			s.implied(o.Function, "operator "+dotted, node, offset)
		}
	}
	if !found && !builtin {
		s.Refuse(reasons.UnknownFunction, node, offset, "operator "+dotted+" is not in the engine's catalog", "")
	}
}

// implied checks a function that the text does not name. An immutable one that reads no protected table needs no
// declaration; in the body of a function the checker decides.
func (s *Statement) implied(f Table, what, node string, offset int32) {
	if f.Schema != "pg_catalog" {
		s.Implied[f] = true
	}
	if source := s.rules.functions.source; source != nil {
		s.callMayRead(f.Schema, f.Name, node, offset, source.Find(f.Schema, f.Name, nil))
	}
	switch functions := s.rules.functions; {
	case f.Schema == "pg_catalog":
		s.impliedBuiltin(f.Name, what, node, offset)
	case s.callees != nil:
		s.callees[f] = true
	case functions.readsProtected(s.rules.names, f.Schema, f.Name, functions.source.Find(f.Schema, f.Name, nil)):
		s.Refuse(reasons.NoCopy, node, offset, what+" calls the function "+f.String()+", which reads a protected table", "call the function by its name: then the neighbours' copies of it can be used")
	case !functions.isHarmless(f):
		s.Refuse(reasons.UnknownFunction, node, offset, what+" calls the "+describeFunctions(f.String(), functions.source.Find(f.Schema, f.Name, nil))+", which is neither immutable nor declared safe",
			"if it is safe to replay, list the function in claims.safe_functions")
	default:
		s.assumeFunction(f.String(), functions.source.Find(f.Schema, f.Name, nil))
	}
}

// impliedBuiltin checks a built-in function behind a user-defined operator or type.
func (s *Statement) impliedBuiltin(name, what, node string, offset int32) {
	class := s.rules.functions.class("pg_catalog", name)
	detail := what + " calls the function pg_catalog." + name
	if why := class.why(); why != "" {
		detail += ", which" + why
	}
	switch {
	case class == functionSafe:
	case strings.HasPrefix(name, "reg") && strings.HasSuffix(name, "in"):
		s.Refuse(reasons.NameInString, node, offset, what+" converts text to the name of an object", "")
	case class == functionNever || class == functionNeverVolatile:
		s.Refuse(class.refusal(), node, offset, detail, "")
	case !s.rules.functions.isAllowed("pg_catalog", name, resolve.Path{}):
		s.Refuse(class.refusal(), node, offset, detail, "if it is safe to replay, list pg_catalog."+name+" in claims.safe_functions")
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

// assumeCasts records implicit casts that a query may use although its text does not name them.
func (s *Statement) assumeCasts() {
	source := s.rules.functions.source
	if source == nil {
		return
	}
	for _, f := range source.Catalog.ImplicitCasts {
		if !s.rules.functions.isHarmless(f) || s.rules.functions.readsProtected(s.rules.names, f.Schema, f.Name, source.Find(f.Schema, f.Name, nil)) {
			s.assume(AssumedCasts)
		}
	}
}
