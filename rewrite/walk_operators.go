package rewrite

import (
	"cmp"
	_ "embed"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

//go:embed builtin_operators.txt
var builtinOperators string

// operators judges every operator of an expression: an operator is a call of its function.
func (w *walker) operators(n *pg_query.A_Expr) {
	for _, o := range resolve.OperandsOf(n) {
		w.operator(n.GetName(), o, "A_Expr", n.GetLocation())
	}
}

// subLink judges the operator of x op ANY (SELECT ...); without one, as in x IN (SELECT ...), it is =.
func (w *walker) subLink(n *pg_query.SubLink) {
	e := resolve.Operands{Name: pgparse.Last(n.GetOperName()), Left: []*pg_query.Node{n.GetTestexpr()}}
	if e.Name == "" && n.GetSubLinkType() == pg_query.SubLinkType_ANY_SUBLINK {
		e.Name = "="
	}
	w.operator(n.GetOperName(), e, "SubLink", n.GetLocation())
}

// operator judges an operator by its name as written, which may be OPERATOR(schema.name); without a name there is none.
func (w *walker) operator(written []*pg_query.Node, e resolve.Operands, node string, offset int32) {
	switch schema, _ := pgparse.Name(written); {
	case len(written) > 2:
		w.refuse(ReasonUnknownFunction, node, offset, "operator "+strings.Join(pgparse.Strings(written), "."), "name it without the database")
	case e.Name != "":
		w.operatorCall(schema, e, node, offset)
	}
}

// operatorCall judges the user-defined operators to which a name may refer, depending on the types of the operands.
func (w *walker) operatorCall(schema string, e resolve.Operands, node string, offset int32) {
	if schema == "pg_catalog" {
		return
	}
	functions, name := w.r.functions, e.Name
	dotted := strings.TrimPrefix(schema+"."+name, ".")
	builtin := schema == "" && functions.builtinOperators[name]
	if functions.source == nil {
		if builtin {
			w.assume(AssumedBuiltin)
			return
		}
		w.refuse(ReasonUnknownFunction, node, offset, "operator "+dotted, "set privacy.catalog, so that its function is known")
		return
	}
	w.use(nameUse{kind: useOperator, schema: schema, name: name, operands: e, node: node, offset: offset, builtin: builtin})
	if schema == "" && w.path.Uncertain && w.applicable(functions.source.Operators[name], e) {
		w.refuse(ReasonSettingsUncertain, node, offset, "operator "+dotted, "write it as OPERATOR(schema."+name+")")
		return
	}
	found := false
	for _, o := range functions.source.Operators[name] {
		if o.Schema != schema && (schema != "" || !w.path.Has(o.Schema)) {
			continue
		}
		found = true
		if w.applicable([]catalog.Operator{o}, e) {
			w.implied(o.Function, "operator "+dotted, node, offset)
		}
	}
	if !found && !builtin {
		w.refuse(ReasonUnknownFunction, node, offset, "operator "+dotted, "the engine's catalog does not contain it")
	}
}

// userType judges the functions that are called to create a value of a user-defined type: its input function, casts to it,
// and the checks of a domain.
func (w *walker) userType(parts []string, offset int32) {
	functions, name := w.r.functions, parts[len(parts)-1]
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	if functions.source == nil {
		if schema != "pg_catalog" {
			w.assume(AssumedBuiltin)
		}
		return
	}
	w.use(nameUse{kind: useType, schema: schema, name: name, node: "TypeName", offset: offset, builtin: schema == "pg_catalog"})
	for _, t := range functions.source.Types[name] {
		switch {
		case t.Schema == schema, schema == "" && (t.Schema == "pg_catalog" || w.path.Has(t.Schema)):
			for _, f := range t.Calls {
				w.implied(f, "type "+strings.Join(parts, "."), "TypeName", offset)
			}
		case schema == "" && w.path.Uncertain:
			w.refuse(ReasonSettingsUncertain, "TypeName", offset, "type "+name, "qualify the name with its schema")
		}
	}
}

// implied judges a function that the text does not name. An immutable one that reads no protected table needs no
// declaration; in the body of a function the judge checks it.
func (w *walker) implied(f Table, what, node string, offset int32) {
	switch functions := w.r.functions; {
	case f.Schema == "pg_catalog":
		w.impliedBuiltin(f.Name, what, node, offset)
	case w.callees != nil:
		w.callees[f] = true
	case functions.readsProtected(w.r.names, f.Schema, f.Name, functions.source.Find(f.Schema, f.Name, nil)):
		w.refuse(ReasonNoCopy, node, offset, what+" calls the function "+f.String()+", which reads a protected table", "call a function by its name instead: it can have copies")
	case !functions.quiet(f):
		w.refuse(ReasonUnknownFunction, node, offset, what+" calls the "+describeFunctions(f.String(), functions.source.Find(f.Schema, f.Name, nil)),
			"if it is safe to replay, list the function in claims.safe_functions")
	default:
		w.assumeFunction(f.String(), functions.source.Find(f.Schema, f.Name, nil))
	}
}

// impliedBuiltin judges a built-in function behind a user-defined operator or type.
func (w *walker) impliedBuiltin(name, what, node string, offset int32) {
	class := w.r.functions.builtin[name]
	detail := what + " calls the function pg_catalog." + name
	switch {
	case class == functionSafe:
	case strings.HasPrefix(name, "reg") && strings.HasSuffix(name, "in"):
		w.refuse(ReasonNameInString, node, offset, what+", which turns text into the name of an object", "")
	case class == functionNever || class == functionNeverVolatile:
		w.refuse(class.refusal(), node, offset, detail, "")
	case !w.r.functions.isAllowed("pg_catalog", name, resolve.Path{}):
		w.refuse(cmp.Or(class.refusal(), ReasonUnknownFunction), node, offset, detail, "if it is safe to replay, list pg_catalog."+name+" in claims.safe_functions")
	}
}

// quiet reports whether a function of the source is declared, or immutable in all its overloads.
func (f *functions) quiet(name Table) bool {
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
func (w *walker) assumeCasts() {
	source := w.r.functions.source
	if source == nil {
		return
	}
	for _, f := range source.Catalog.ImplicitCasts {
		if !w.r.functions.quiet(f) || w.r.functions.readsProtected(w.r.names, f.Schema, f.Name, source.Find(f.Schema, f.Name, nil)) {
			w.assume(AssumedCasts)
		}
	}
}
