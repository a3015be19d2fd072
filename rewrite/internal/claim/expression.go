package claim

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Value is the value of an expression according to a server, or the claim that an engine states, or why there is none.
type Value struct {
	Number float64     // of an expression, or the epsilon
	Delta  float64     // of a stated claim
	Curve  curve.Curve // of a stated claim; "" = none
	None   bool        // the engine states nothing
	Fault  string      // continues a text after "the epsilon", or "the engine's answer"; "" = none
}

// MaxExpression is the greatest length of an expression in bytes.
const MaxExpression = 2000

// functions are the immutable built-in functions of numbers that an expression may call; operators are its operators.
var (
	functions = []string{"abs", "cbrt", "ceil", "ceiling", "div", "exp", "floor", "ln", "log", "log10", "mod", "pi", "pow", "power", "round", "sign", "sqrt", "trunc"}
	operators = []string{"+", "-", "*", "/", "%", "^"}
	numbers   = map[string]string{"float8": "float8", "float4": "float4", "numeric": "numeric", "decimal": "numeric", "int2": "int2", "int4": "int4", "int8": "int8"}
	typeNames = map[uint32]string{oidInt2: "int2", oidInt4: "int4", oidInt8: "int8", oidFloat4: "float4", oidFloat8: "float8", oidNumeric: "numeric"}
)

// expressionOf returns the SQL text of an expression of constants and parameters, in which every function, operator and
// type is one of pg_catalog; "" if the argument is anything else. It reads no relation and depends on no setting.
func expressionOf(n *pg_query.Node, q capture.Query, statement *pg_query.SelectStmt) string {
	w := &writer{query: q, constants: constantsOf(statement)}
	if !w.write(n) || w.text.Len() > MaxExpression {
		return ""
	}
	return w.text.String()
}

type writer struct {
	query     capture.Query
	constants *constants
	text      strings.Builder
	depth     int
}

// maxNested bounds the recursion.
const maxNested = 50

// write writes an expression. false = it is not one of constants and parameters.
func (w *writer) write(n *pg_query.Node) bool {
	if w.depth++; w.depth > maxNested || w.text.Len() > MaxExpression {
		return false
	}
	defer func() { w.depth-- }()
	switch {
	case n.GetAConst() != nil:
		return w.constant(n.GetAConst())
	case n.GetParamRef() != nil:
		return w.parameter(int(n.GetParamRef().GetNumber()))
	case n.GetTypeCast() != nil:
		return w.cast(n.GetTypeCast())
	case n.GetAExpr() != nil:
		return w.operation(n.GetAExpr())
	case n.GetFuncCall() != nil:
		return w.call(n.GetFuncCall())
	case n.GetCoalesceExpr() != nil:
		return w.list("COALESCE(", n.GetCoalesceExpr().GetArgs())
	case n.GetMinMaxExpr() != nil:
		name := "GREATEST("
		if n.GetMinMaxExpr().GetOp() == pg_query.MinMaxOp_IS_LEAST {
			name = "LEAST("
		}
		return w.list(name, n.GetMinMaxExpr().GetArgs())
	case n.GetSubLink() != nil:
		value := w.constants.scalar(n.GetSubLink())
		return value != nil && w.write(value)
	case n.GetColumnRef() != nil:
		value := w.constants.column(n.GetColumnRef())
		return value != nil && w.write(value)
	}
	return false
}

func (w *writer) constant(c *pg_query.A_Const) bool {
	switch v := c.GetVal().(type) {
	case *pg_query.A_Const_Ival:
		w.text.WriteString(strconv.Itoa(int(v.Ival.GetIval())))
		return true
	case *pg_query.A_Const_Fval:
		w.text.WriteString(v.Fval.GetFval())
		_, err := parseNumber(v.Fval.GetFval())
		return err == nil
	case *pg_query.A_Const_Sval:
		w.text.WriteString(ident.Literal(v.Sval.GetSval()))
		_, err := parseNumber(v.Sval.GetSval())
		return err == nil
	}
	return false
}

// parameter writes the value of a parameter, with the type that the client has given it, if any.
func (w *writer) parameter(number int) bool {
	if number < 1 || number > len(w.query.Params) {
		return false
	}
	p := w.query.Params[number-1]
	v, err := paramValue(p)
	if err != nil {
		return false
	}
	text := ident.Literal(strconv.FormatFloat(v, 'g', -1, 64))
	switch name := typeNames[p.OID]; {
	case name != "":
		text = "CAST(" + text + " AS pg_catalog." + name + ")"
	case p.OID != 0 && p.OID != oidUnknown && p.OID != oidText && p.OID != oidVarchar:
		return false
	}
	w.text.WriteString(text)
	return true
}

func (w *writer) cast(c *pg_query.TypeCast) bool {
	parts := pgparse.Strings(c.GetTypeName().GetNames())
	if len(parts) == 0 || len(parts) > 2 || len(parts) == 2 && parts[0] != "pg_catalog" || len(c.GetTypeName().GetArrayBounds()) > 0 || len(c.GetTypeName().GetTypmods()) > 0 {
		return false
	}
	name := numbers[parts[len(parts)-1]]
	w.text.WriteString("CAST(")
	ok := name != "" && w.write(c.GetArg())
	w.text.WriteString(" AS pg_catalog." + name + ")")
	return ok
}

func (w *writer) operation(e *pg_query.A_Expr) bool {
	name := pgparse.Strings(e.GetName())
	if e.GetKind() != pg_query.A_Expr_Kind_AEXPR_OP || len(name) == 0 || len(name) == 2 && name[0] != "pg_catalog" || len(name) > 2 || !slices.Contains(operators, name[len(name)-1]) {
		return false
	}
	w.text.WriteString("(")
	if e.GetLexpr() != nil && !w.write(e.GetLexpr()) {
		return false
	}
	w.text.WriteString(" OPERATOR(pg_catalog." + name[len(name)-1] + ") ")
	ok := w.write(e.GetRexpr())
	w.text.WriteString(")")
	return ok
}

func (w *writer) call(f *pg_query.FuncCall) bool {
	schema, name := pgparse.Name(f.GetFuncname())
	if len(f.GetFuncname()) > 2 || schema != "" && schema != "pg_catalog" || !slices.Contains(functions, name) ||
		f.GetAggOrder() != nil || f.GetAggFilter() != nil || f.GetOver() != nil || f.GetAggStar() || f.GetAggDistinct() || f.GetFuncVariadic() || f.GetAggWithinGroup() {
		return false
	}
	return w.list("pg_catalog."+name+"(", f.GetArgs())
}

func (w *writer) list(before string, args []*pg_query.Node) bool {
	w.text.WriteString(before)
	for i, arg := range args {
		if i > 0 {
			w.text.WriteString(", ")
		}
		if !w.write(arg) {
			return false
		}
	}
	w.text.WriteString(")")
	return true
}
