package resolve

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Values holds the types outside pg_catalog that values of one statement may have: those of the columns of every
// relation that it may read, those that it names, and the results of functions and operators on these. An overload is
// excluded if an argument type is outside pg_catalog and outside this set, no implicit cast leads to it, and the
// argument is not an untyped literal or parameter. Arrays, domains and rows count as their components.
type Values struct {
	catalogs []*catalog.Index
	params   []capture.Param
	types    map[ident.Table]bool
	calls    []*pg_query.FuncCall
	exprs    []Operands

	ranges  map[string]bool // possible names of whole rows: relations, aliases, WITH queries
	columns map[string]bool // the last part of every column name in an expression
	derived map[string]bool // aliases of subqueries and functions in FROM
	stars   bool            // x.* occurs where it is a row
	rows    bool            // a column, or the result of a function, holds rows of a relation
}

// Operands is the use of an operator: its name and the expressions on either side. A nil side is checked against the
// types of the statement only.
type Operands struct {
	Name        string
	Left, Right []*pg_query.Node
}

// NewValues collects the types of a statement.
func NewValues(root protoreflect.Message, params []capture.Param, catalogs ...*catalog.Index) *Values {
	v := &Values{params: params, types: map[ident.Table]bool{}, ranges: map[string]bool{}, derived: map[string]bool{}, columns: map[string]bool{}}
	for _, x := range catalogs {
		if x != nil {
			v.catalogs = append(v.catalogs, x)
		}
	}
	v.visit(root)
	for before := -1; before < len(v.types); { // results may be arguments of other calls
		before = len(v.types)
		for _, x := range v.catalogs {
			v.results(x)
		}
	}
	return v
}

// visit collects the names in one message and all below it.
func (v *Values) visit(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		v.addNamed(n.GetRelname())
		v.ranges[n.GetRelname()] = true
		v.related(n)
	case *pg_query.RangeSubselect:
		v.derive(n.GetAlias())
	case *pg_query.RangeFunction:
		v.derive(n.GetAlias())
	case *pg_query.Alias:
		v.ranges[n.GetAliasname()] = true
	case *pg_query.CommonTableExpr:
		v.ranges[n.GetCtename()] = true
	case *pg_query.ResTarget: // SELECT x.* is not a row
		if fields := n.GetVal().GetColumnRef().GetFields(); len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil {
			return
		}
	case *pg_query.TypeName:
		_, name := pgparse.Name(n.GetNames())
		v.addNamed(name)
		v.addNamed(strings.TrimLeft(name, "_"))
	case *pg_query.FuncCall:
		v.calls = append(v.calls, n)
		_, name := pgparse.Name(n.GetFuncname())
		v.addType(name) // type(x) may be a cast
	case *pg_query.A_Expr:
		v.exprs = append(v.exprs, OperandsOf(n)...)
	case *pg_query.SubLink:
		if parts := pgparse.Strings(n.GetOperName()); len(parts) > 0 {
			v.exprs = append(v.exprs, Operands{Name: parts[len(parts)-1], Left: []*pg_query.Node{n.GetTestexpr()}})
		}
	case *pg_query.ColumnRef:
		fields := n.GetFields()
		last := fields[len(fields)-1].GetString_().GetSval()
		v.columns[last] = true
		v.stars = v.stars || last == ""
		if len(fields) > 1 {
			v.attribute(last)
		}
	case *pg_query.A_Indirection:
		for _, i := range n.GetIndirection() {
			v.attribute(i.GetString_().GetSval())
			v.addType(i.GetString_().GetSval()) // (x).type may be a cast
		}
	}
	pgparse.Children(m, v.visit)
}

// Has reports whether a value may be of a type outside pg_catalog.
func (v *Values) Has(t ident.Table) bool { return v.types[t] }

// IsRow reports whether an expression names the row of a relation, an alias or a WITH query.
func (v *Values) IsRow(n *pg_query.Node) bool {
	fields := n.GetColumnRef().GetFields()
	return v != nil && len(fields) == 1 && v.ranges[fields[0].GetString_().GetSval()]
}

// related notes that a name in FROM stands for a relation, whose system columns it has.
func (v *Values) related(n *pg_query.RangeVar) {
	name := n.GetRelname()
	if alias := n.GetAlias().GetAliasname(); alias != "" {
		name = alias
	}
	v.derived[name] = false
}

// derive notes an alias that stands for something without system columns, unless it stands for a relation elsewhere in
// the statement.
func (v *Values) derive(a *pg_query.Alias) {
	if _, known := v.derived[a.GetAliasname()]; !known && a != nil {
		v.derived[a.GetAliasname()] = true
	}
}

// IsDerived reports whether a name in FROM always stands for a subquery or a function.
func (v *Values) IsDerived(name string) bool { return v != nil && v.derived[name] }

// SameTypes reports whether every value has a type that is the same on all neighbours: one outside their schemas, and
// no row of a relation.
func (v *Values) SameTypes(neighbours []string) bool {
	if v == nil || len(v.catalogs) == 0 || v.stars || v.rows {
		return false
	}
	for t := range v.types {
		isRow := slices.ContainsFunc(v.catalogs, func(x *catalog.Index) bool { return x.Relations[t] != nil }) // of a relation that is named
		if slices.Contains(neighbours, t.Schema) && !isRow {
			return false
		}
	}
	for name := range v.columns {
		if v.ranges[name] {
			return false
		}
	}
	return true
}

// addNamed adds the types of every relation with a name, and every type with it.
func (v *Values) addNamed(name string) {
	for _, x := range v.catalogs {
		for _, r := range x.Named[name] {
			v.add(r.Types)
		}
	}
	v.addType(name)
}

// addType adds every type with a name.
func (v *Values) addType(name string) {
	for _, x := range v.catalogs {
		for _, t := range x.Types[name] {
			if t.Schema != "pg_catalog" {
				v.types[ident.Table{Schema: t.Schema, Name: t.Name}] = true
			}
			v.add(t.Holds)
		}
	}
}

// attribute adds the results of every function that x.name may call.
func (v *Values) attribute(name string) {
	for _, x := range v.catalogs {
		for _, f := range x.Functions[name] {
			v.add(f.Gives)
		}
	}
}

func (v *Values) add(types []ident.Table) {
	for _, t := range types {
		v.types[t] = true
		for _, x := range v.catalogs {
			v.rows = v.rows || x.Relations[t] != nil
		}
	}
}

// results adds the possible results of the functions and operators of one catalog.
func (v *Values) results(x *catalog.Index) {
	for _, call := range v.calls {
		_, name := pgparse.Name(call.GetFuncname())
		for _, f := range x.Functions[name] {
			if v.Callable(f, call) {
				v.add(f.Gives)
			}
		}
	}
	for _, e := range v.exprs {
		for _, o := range x.Operators[e.Name] {
			if !v.Applicable(o, e) {
				continue
			}
			for _, f := range x.Find(o.Function.Schema, o.Function.Name, nil) {
				v.add(f.Gives)
			}
		}
	}
}

// Callable reports whether a call may refer to a function, by the number and the types of its arguments. It returns
// true without a check for a function whose argument types are not in the catalog or that has none, and for a call with
// VARIADIC, WITHIN GROUP or named arguments.
func (v *Values) Callable(f *catalog.Function, call *pg_query.FuncCall) bool {
	args := call.GetArgs()
	if len(f.Takes) == 0 || call.GetFuncVariadic() || call.GetAggWithinGroup() {
		return true
	}
	if slices.ContainsFunc(args, func(arg *pg_query.Node) bool { return arg.GetNamedArgExpr() != nil }) {
		return true
	}
	last := len(f.Takes) - 1
	if len(args) < len(f.Takes)-f.Optional && !(f.Variadic && len(args) == last-f.Optional) || len(args) > len(f.Takes) && !f.Variadic {
		return false
	}
	for i, arg := range args {
		if !v.fits(f.Takes[min(i, last)], arg) {
			return false
		}
	}
	return true
}

// Applicable reports whether an expression may refer to an operator, by the types of its operands.
func (v *Values) Applicable(o catalog.Operator, e Operands) bool {
	return v.fits(o.Takes[0], e.Left...) && v.fits(o.Takes[1], e.Right...)
}

// fits reports whether one of some values may be of a type. The zero ident.Table is a type of pg_catalog, which any
// value may have.
func (v *Values) fits(t ident.Table, values ...*pg_query.Node) bool {
	if t == (ident.Table{}) || v.types[t] || slices.ContainsFunc(values, v.untyped) {
		return true
	}
	for _, x := range v.catalogs {
		for _, c := range x.Catalog.Coercions {
			if c.To == t && (c.From == (ident.Table{}) || v.types[c.From]) {
				return true
			}
		}
	}
	return false
}

// untyped reports whether a value gets its type from its context: a string, NULL, or a parameter without a type.
func (v *Values) untyped(n *pg_query.Node) bool {
	switch {
	case n.GetCollateClause() != nil:
		return v.untyped(n.GetCollateClause().GetArg())
	case n.GetAConst() != nil:
		return n.GetAConst().GetIsnull() || n.GetAConst().GetSval() != nil
	case n.GetParamRef() != nil:
		const unknownOID = 705
		i := int(n.GetParamRef().GetNumber()) - 1
		return i < 0 || i >= len(v.params) || v.params[i].OID == 0 || v.params[i].OID == unknownOID
	}
	return slices.ContainsFunc(n.GetList().GetItems(), v.untyped) || slices.ContainsFunc(n.GetRowExpr().GetArgs(), v.untyped)
}

// OperandsOf returns the operators of the expression n itself, not those below it. If one side may be untyped and the
// other is a list or a row, an operator can still be excluded by the type of its left operand.
func OperandsOf(n *pg_query.A_Expr) []Operands {
	left, right := []*pg_query.Node{n.GetLexpr()}, []*pg_query.Node{n.GetRexpr()}
	if n.GetLexpr() == nil {
		left = nil
	}
	names := operatorNames(n)
	all := make([]Operands, 0, len(names))
	for _, name := range names {
		all = append(all, Operands{name, left, right})
	}
	return all
}

// CaseOperands returns the = of CASE x WHEN y.
func CaseOperands(n *pg_query.CaseExpr) Operands {
	e := Operands{Name: "=", Left: []*pg_query.Node{n.GetArg()}}
	for _, when := range n.GetArgs() {
		e.Right = append(e.Right, when.GetCaseWhen().GetExpr())
	}
	return e
}

// operatorNames returns the unqualified operators of an expression.
func operatorNames(n *pg_query.A_Expr) []string {
	switch n.GetKind() {
	case pg_query.A_Expr_Kind_AEXPR_BETWEEN, pg_query.A_Expr_Kind_AEXPR_BETWEEN_SYM:
		return []string{">=", "<="}
	case pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return []string{"<", ">"}
	}
	if parts := pgparse.Strings(n.GetName()); len(parts) > 0 {
		return parts[len(parts)-1:]
	}
	return nil
}
