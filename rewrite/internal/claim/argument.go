package claim

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Faults of an argument. Their texts contain nothing of the query.
var (
	errNotNumber   = errors.New("is not a number")
	errNotConstant = errors.New("is not a constant")
	errChanged     = errors.New("is a setting that may have changed")
	errNull        = errors.New("is NULL")
	errFormat      = errors.New("is a binary parameter of an unknown or non-numeric type")
)

// Call is one call of a DP function, as written.
type Call struct {
	Signature Signature
	Call      *pg_query.FuncCall
}

// argumentClaim combines the claims in the arguments of all DP calls: their sum or maximum. nil = no call has one. If
// only some calls have an epsilon, the claims cannot be combined and the query is refused.
func (c *Claimer) argumentClaim(in Input) (*part, error) {
	slices.SortFunc(in.Calls, func(a, b *Call) int { return cmp.Compare(a.Call.GetLocation(), b.Call.GetLocation()) })
	var total *part
	var names []string
	withoutEpsilon := false
	for _, call := range in.Calls {
		p, err := call.claim(in)
		if err != nil {
			return nil, err
		}
		if p == nil {
			withoutEpsilon = true
			continue
		}
		if name := call.Signature.Function; !slices.Contains(names, name) {
			names = append(names, name)
		}
		if total, err = c.join(total, p); err != nil { // a call without delta claims 0
			return nil, bad("the claims of all DP calls "+err.Error(), -1)
		}
	}
	switch {
	case total == nil:
		return nil, nil
	case withoutEpsilon:
		return nil, bad("some calls of DP functions have an epsilon argument and some do not", -1)
	}
	if err := check(total.claim.Epsilon, total.claim.Delta); err != nil {
		return nil, bad("the combined claim of all DP calls: "+err.Error(), -1)
	}
	total.claim.Source, total.claim.Rule = SourceArgument, strings.Join(names, ",")
	return total, nil
}

// claim returns the claim of one call; nil = it has no epsilon argument.
func (d *Call) claim(in Input) (*part, error) {
	epsilon, ok, err := d.argument("epsilon", d.Signature.Epsilon, d.Signature.EpsilonName, in)
	if !ok || err != nil {
		return nil, err
	}
	if d.Signature.Unit != "" {
		c, err := curve.New(d.Signature.Unit, epsilon)
		if err != nil {
			return nil, d.bad(err.Error())
		}
		return curvePart(c), nil
	}
	delta, hasDelta, err := d.argument("delta", d.Signature.Delta, d.Signature.DeltaName, in)
	if err != nil {
		return nil, err
	}
	if err := check(epsilon, delta); err != nil {
		return nil, d.bad(err.Error())
	}
	return &part{claim: Claim{Epsilon: epsilon, Delta: delta}, hasDelta: hasDelta}, nil
}

func (d *Call) bad(detail string) error {
	return bad("call of "+d.Signature.Function+": "+detail, int(d.Call.GetLocation()))
}

// fault returns the error of an argument.
func (d *Call) fault(what string, err error) error {
	fault := d.bad(what + " " + err.Error())
	if e := (*Error)(nil); errors.Is(err, errChanged) && errors.As(fault, &e) {
		e.Uncertain, e.Hint = true, "set it again after calls of functions that change settings"
	}
	return fault
}

// argument returns the number at a position or of a name; ok is false if the call has no such argument.
func (d *Call) argument(what string, position int, name string, in Input) (v float64, ok bool, err error) {
	if d.Call.GetFuncVariadic() && (position != 0 || name != "") {
		return 0, false, d.bad("the " + what + " is hidden in a VARIADIC argument")
	}
	node, err := d.find(position, name)
	if err != nil || node == nil {
		return 0, false, err
	}
	v, err = constantValue(node, in.Query)
	if errors.Is(err, errNotConstant) {
		if text := expressionOf(node, in.Query, in.Statement); text != "" {
			v, err = d.evaluated(text, what, in)
		}
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return 0, false, err
	}
	if err != nil {
		return 0, false, d.fault(what, err)
	}
	return v, true, nil
}

// evaluated returns the value of an expression.
func (d *Call) evaluated(text, what string, in Input) (float64, error) {
	value, known := in.Values[text]
	switch {
	case !known:
		fault := d.bad(what + " is an expression, which a server must evaluate")
		if e := (*Error)(nil); errors.As(fault, &e) {
			e.Expression, e.Hint = text, "write the number itself: dpwatch run and dpwatch audit --config evaluate expressions, other commands do not"
		}
		return 0, fault
	case value.Fault != "":
		return 0, d.bad(what + " " + value.Fault)
	}
	return value.Number, nil
}

// find returns the node of an argument: by name, then by position. If a call uses names, positions from the end are
// meaningless and are refused.
func (d *Call) find(position int, name string) (*pg_query.Node, error) {
	args := d.Call.GetArgs()
	named := 0
	for _, a := range args {
		n := a.GetNamedArgExpr()
		if n == nil {
			continue
		}
		named++
		if name != "" && n.GetName() == name {
			return n.GetArg(), nil
		}
	}
	i := position - 1
	if position < 0 {
		i = len(args) + position
		if named > 0 {
			return nil, d.bad("the call has named arguments, and claims.functions declares no epsilon_name or delta_name for the function")
		}
	}
	if position == 0 || i < 0 || i >= len(args)-named {
		return nil, nil
	}
	return args[i], nil
}

// constantValue evaluates a literal with signs and casts, a bound parameter, or current_setting of a known setting.
func constantValue(n *pg_query.Node, q capture.Query) (float64, error) {
	switch {
	case n.GetAConst() != nil:
		return literal(n.GetAConst())
	case n.GetTypeCast() != nil:
		return castValue(n.GetTypeCast(), q)
	case n.GetParamRef() != nil:
		i := int(n.GetParamRef().GetNumber()) - 1
		if i < 0 || i >= len(q.Params) {
			return 0, errNotConstant
		}
		return paramValue(q.Params[i])
	case n.GetAExpr() != nil:
		return signedValue(n.GetAExpr(), q)
	case n.GetFuncCall() != nil:
		return settingValue(n.GetFuncCall(), q)
	case n.GetAArrayExpr() != nil, n.GetRowExpr() != nil:
		return 0, errCurve
	}
	return 0, errNotConstant
}

func literal(c *pg_query.A_Const) (float64, error) {
	switch v := c.GetVal().(type) {
	case *pg_query.A_Const_Ival:
		return float64(v.Ival.GetIval()), nil
	case *pg_query.A_Const_Fval:
		return parseNumber(v.Fval.GetFval())
	case *pg_query.A_Const_Sval:
		if v, err := parseNumber(v.Sval.GetSval()); err == nil {
			return v, nil
		}
		if isCurve(v.Sval.GetSval()) {
			return 0, errCurve
		}
		return 0, errNotNumber
	}
	if c.GetIsnull() {
		return 0, errNull
	}
	return 0, errNotNumber
}

// castValue follows casts that preserve the number: to float8, real and numeric without a scale, and to an integer type
// if the number is already whole.
func castValue(c *pg_query.TypeCast, q capture.Query) (float64, error) {
	v, err := constantValue(c.GetArg(), q)
	if err != nil {
		return 0, err
	}
	parts := pgparse.Strings(c.GetTypeName().GetNames())
	if len(parts) == 0 || len(parts) > 1 && parts[0] != "pg_catalog" || len(c.GetTypeName().GetArrayBounds()) > 0 || len(c.GetTypeName().GetTypmods()) > 0 {
		return 0, errNotConstant
	}
	switch parts[len(parts)-1] {
	case "float8", "numeric", "decimal", "text", "varchar":
		return v, nil
	case "float4":
		return float64(float32(v)), nil
	case "int2", "int4", "int8":
		if v == math.Trunc(v) {
			return v, nil
		}
	}
	return 0, errNotConstant
}

func signedValue(e *pg_query.A_Expr, q capture.Query) (float64, error) {
	name := pgparse.Strings(e.GetName())
	if e.GetKind() != pg_query.A_Expr_Kind_AEXPR_OP || e.GetLexpr() != nil || len(name) != 1 {
		return 0, errNotConstant
	}
	v, err := constantValue(e.GetRexpr(), q)
	switch {
	case err != nil:
		return 0, err
	case name[0] == "-":
		return -v, nil
	case name[0] == "+":
		return v, nil
	}
	return 0, errNotConstant
}

// settingValue evaluates current_setting('name').
func settingValue(f *pg_query.FuncCall, q capture.Query) (float64, error) {
	name := pgparse.Strings(f.GetFuncname())
	if len(name) == 0 || name[len(name)-1] != "current_setting" || len(f.GetArgs()) == 0 {
		return 0, errNotConstant
	}
	setting := strings.ToLower(pgparse.Text(f.GetArgs()[0]))
	if q.Doubt.Has(setting) {
		return 0, errChanged
	}
	value, ok := q.Settings[setting]
	if !ok {
		return 0, errNotConstant
	}
	return parseNumber(value)
}
