package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
)

// funcCall judges a call and returns the place for its arguments.
func (w *walker) funcCall(n *pg_query.FuncCall, at place) place {
	parts := pgparse.Strings(n.GetFuncname())
	dotted := strings.Join(parts, ".")
	w.functions[dotted] = true
	if len(parts) == 0 || len(parts) > 2 {
		w.refuse(ReasonUnknownFunction, "FuncCall", n.GetLocation(), "function "+dotted, "name it without the database")
		return at
	}
	schema, name := pgparse.Name(n.GetFuncname())
	if dotted == "pg_catalog.json_object" { // the parser returns this for json_object(...)
		w.namesakes(name, "FuncCall", n.GetLocation())
	}
	class, users := w.overloads(n, schema, name)
	if w.callees != nil && class == functionUser {
		w.callee(n, schema, name, users)
		return at
	}
	if w.r.functions.readsProtected(w.r.names, schema, name, users) && !w.readerCall(n, schema, name, users) {
		return at
	}
	if class == functionUser && schema == "" && w.path.Uncertain {
		w.refuse(ReasonSettingsUncertain, "FuncCall", n.GetLocation(), "function "+dotted, "qualify the name with its schema")
	}
	if s, ok := w.r.functions.signature(schema, name, w.path); ok {
		w.calls = append(w.calls, &claim.Call{Signature: s, Call: n})
		return w.declaredCall(class, dotted, users, at)
	}
	switch {
	case class == functionSafe:
		return at
	case name == "current_setting" && class == functionNever && w.readsKnownSetting(n):
		return at
	case name == "pg_typeof" && class == functionNever && w.values().BuiltinOnly():
		return at
	case class == functionNever || class == functionNeverVolatile:
		w.refuse(class.refusal(), "FuncCall", n.GetLocation(), "function "+dotted, "")
	case w.r.functions.isAllowed(schema, name, w.path):
		return w.declaredCall(class, dotted, users, at)
	case w.isColumn(n, schema, name, users):
		w.columnCall(name, n.GetLocation())
	case class == functionVolatile || isForeignFamily(name):
		w.refuse(ReasonSideEffects, "FuncCall", n.GetLocation(), "function "+dotted, "if it is safe to replay, list it in claims.safe_functions")
	default:
		w.refuse(ReasonUnknownFunction, "FuncCall", n.GetLocation(), describeFunctions(dotted, users),
			"if it is safe to replay, list it in claims.safe_functions, or in claims.functions with its epsilon argument")
	}
	return at
}

// overloads returns the candidates for a call: the class of the name, and the user-defined functions of the name that its
// arguments fit.
func (w *walker) overloads(n *pg_query.FuncCall, schema, name string) (functionClass, []*catalog.Function) {
	functions := w.r.functions
	class := functions.class(schema, name)
	w.use(nameUse{kind: useFunction, schema: schema, name: name, call: n, node: "FuncCall", offset: n.GetLocation(), builtin: class != functionUser})
	if functions.source == nil {
		if schema == "" && class == functionSafe {
			w.assume(AssumedBuiltin)
			if others := w.callable(functions.shadow.Find("", name, w.replayCandidates()), n); !allContrib(others) {
				return functionUser, nil
			}
		}
		return class, nil
	}
	users := functions.source.Find(schema, name, w.path.Known())
	anySchema := schema == "" && w.path.Uncertain
	if anySchema {
		users = functions.source.Functions[name]
	}
	if class != functionUser && class != functionSafe {
		return class, users
	}
	if w.callees == nil { // the judge of a body checks every overload
		users = w.callable(users, n)
	}
	switch {
	case len(users) > 0 && allContrib(users) && !(anySchema && w.callees == nil):
		class = functionSafe
	case len(users) > 0 && schema == "":
		class = functionUser // the types of the arguments decide which one is called
	}
	if anySchema {
		users = nil
	}
	return class, users
}

// replayCandidates returns the longest possible path of a replay.
func (w *walker) replayCandidates() []string {
	return slices.Concat(w.path.Schemas, w.r.options.ShadowPath)
}

// declaredCall records the assumptions about a declared function and returns the place for its arguments, where a text may
// become a name.
func (w *walker) declaredCall(class functionClass, dotted string, users []*catalog.Function, at place) place {
	if class == functionUser && w.assumeFunction(dotted, users) {
		at.userArgs = true
	}
	return at
}

// isColumn reports whether name(x) is the column x.name: PostgreSQL resolves it so if there is no function and no type of
// that name.
func (w *walker) isColumn(n *pg_query.FuncCall, schema, name string, users []*catalog.Function) bool {
	functions := w.r.functions
	return functions.source != nil && schema == "" && len(n.GetArgs()) == 1 && n.GetArgs()[0].GetNamedArgExpr() == nil && !w.path.Uncertain &&
		n.GetAggOrder() == nil && n.GetAggFilter() == nil && n.GetOver() == nil && !n.GetAggStar() && !n.GetAggDistinct() && !n.GetFuncVariadic() && !n.GetAggWithinGroup() &&
		functions.class("", name) == functionUser && len(functions.source.Functions[name]) == 0 && (functions.shadow == nil || len(functions.shadow.Functions[name]) == 0) &&
		functions.source.TypeIn(name, w.path.Schemas) == "" && !isNameType(name)
}

// isNameType reports whether the values of a type are names of objects.
func isNameType(name string) bool {
	switch name {
	case "regclass", "regnamespace", "regrole", "regproc", "regprocedure", "regoper", "regoperator", "regtype", "regconfig", "regdictionary", "regcollation":
		return true
	}
	return false
}

// columnCall judges a column in function notation.
func (w *walker) columnCall(name string, offset int32) {
	if isSystemColumn(name) {
		w.refuse(ReasonSystemColumn, "FuncCall", offset, "system column "+name, "")
	}
}

// readerCall redirects the call of a function that reads protected tables to the neighbours' copies of it, if they are
// correct.
func (w *walker) readerCall(n *pg_query.FuncCall, schema, name string, users []*catalog.Function) bool {
	dotted, detail := strings.Join(pgparse.Strings(n.GetFuncname()), "."), "but the engine's catalog does not show it"
	var f Table
	if slices.ContainsFunc(users, w.r.names.isReader) {
		_, builtin := w.r.functions.builtin[name]
		f, detail = w.r.names.callOfReader(schema, name, users, builtin)
	}
	if detail != "" {
		w.refuse(ReasonNoCopy, "FuncCall", n.GetLocation(), describeFunctions(dotted, users)+" reads a protected table, "+detail,
			"create it, with the same arguments, in shadow.d0 and in every schema of shadow.d1, over the tables of that schema alone, or write its query in the statement").touches = true
		return false
	}
	for t := range w.r.names.copies[f].tables {
		w.protected[t] = true
	}
	qualifiers := 0
	if schema != "" {
		qualifiers = 1
	}
	w.edit(edit{node: nodeFuncCall, at: n.GetLocation(), qualifiers: qualifiers, table: f, protected: true})
	return true
}

// jsonSyntax judges SQL/JSON syntax that a server before PostgreSQL 16 reads as a call of a user-defined function.
func (w *walker) jsonSyntax(m protoreflect.Message, at place) {
	name := "json_array"
	switch m.Interface().(type) {
	case *pg_query.JsonObjectConstructor:
		name = "json_object"
	case *pg_query.JsonObjectAgg:
		name = "json_objectagg"
	case *pg_query.JsonArrayAgg:
		name = "json_arrayagg"
	}
	w.namesakes(name, string(m.Descriptor().Name()), at.near)
}

// namesakes judges the user-defined functions with the name of one that the parser resolved as built in.
func (w *walker) namesakes(name, node string, offset int32) {
	if w.r.functions.source == nil || w.printed {
		return
	}
	for _, f := range w.r.functions.source.Functions[name] {
		if w.path.Uncertain || w.path.Has(f.Schema) {
			w.implied(Table{Schema: f.Schema, Name: f.Name}, name, node, offset)
		}
	}
}

// callee records the call of a user-defined function in the body of another.
func (w *walker) callee(n *pg_query.FuncCall, schema, name string, users []*catalog.Function) {
	switch {
	case schema == "" && w.path.Uncertain:
		w.refuse(ReasonSettingsUncertain, "FuncCall", n.GetLocation(), "function "+name, "")
	case len(users) == 0:
		w.refuse(ReasonUnknownFunction, "FuncCall", n.GetLocation(), "function "+name, "")
	}
	for _, f := range users {
		w.callees[Table{Schema: f.Schema, Name: f.Name}] = true
	}
}

// userAttribute judges x.name, which PostgreSQL resolves as the call name(x) if x has no such column, by the user-defined
// functions that it may refer to. row: x is a row.
func (w *walker) userAttribute(name string, row bool, node string, offset int32) {
	source := w.r.functions.source
	switch {
	case name == "": // x.*
		return
	case source == nil:
		w.assume(AssumedAttribute)
		return
	case slices.ContainsFunc(source.Functions[name], w.r.names.isReader):
		w.refuse(ReasonNoCopy, node, offset, "function "+name+" in attribute notation reads a protected table", "write it as a call, or give the column another name")
		return
	}
	for _, f := range source.Functions[name] {
		if f.OfOne && (f.OfRow || !row) && (w.path.Uncertain || w.path.Has(f.Schema)) {
			w.implied(Table{Schema: f.Schema, Name: f.Name}, name+" in attribute notation", node, offset)
		}
	}
}

// readsKnownSetting reports whether a call of current_setting reads a setting that a replay sets from Plan.Settings.
func (w *walker) readsKnownSetting(n *pg_query.FuncCall) bool {
	if len(n.GetArgs()) == 0 {
		return false
	}
	name := strings.ToLower(pgparse.Text(n.GetArgs()[0]))
	return !w.q.SettingsUncertain && (isCustomSetting(name) || isKeySetting(name))
}

// attribute judges x.name, which PostgreSQL also resolves as the call name(x).
func (w *walker) attribute(name, node string, offset int32) {
	if reason := w.r.functions.class("", name).refusal(); reason != "" {
		w.refuse(reason, node, offset, "function "+name+" in attribute notation", "")
	}
}

// indirection judges the attributes in (x).a.b[1].
func (w *walker) indirection(n *pg_query.A_Indirection, at place) {
	for _, i := range n.GetIndirection() {
		name := i.GetString_().GetSval()
		if isSystemColumn(name) {
			w.refuse(ReasonSystemColumn, "A_Indirection", at.near, "system column "+name, "")
		}
		if w.printed {
			continue
		}
		w.castAttribute(name, at.near)
		w.attribute(name, "A_Indirection", at.near)
		w.userAttribute(name, false, "A_Indirection", at.near)
	}
}

// constant refuses strings that name a protected table where a user-defined function may use them as a name.
func (w *walker) constant(n *pg_query.A_Const, at place) {
	if at.userArgs && n.GetSval() != nil {
		w.textArgument(n.GetSval().GetSval(), "A_Const", "a string that names a protected table, in the arguments of a function", n.GetLocation())
	}
}

// textArgument refuses a text that names a protected table.
func (w *walker) textArgument(text, node, detail string, offset int32) {
	switch {
	case w.r.names.Protected[AnyTable]:
		w.anyTable = append(w.anyTable, anyName{text: text, node: node, detail: detail, offset: offset})
	case w.r.names.Mentions(text):
		w.refuse(ReasonNameInString, node, offset, detail, "")
	}
}

// firstNormalOID is the first OID of user-defined objects, which differ in another database (access/transam.h).
const firstNormalOID = 16384

// paramRef checks the bound parameter of $n.
func (w *walker) paramRef(n *pg_query.ParamRef, at place) {
	if n.GetNumber() < 1 || int(n.GetNumber()) > len(w.q.Params) {
		w.refuse(ReasonParameter, "ParamRef", n.GetLocation(), "a parameter without a bound value", "")
		return
	}
	p := w.q.Params[n.GetNumber()-1]
	switch {
	case p.OID >= firstNormalOID:
		w.refuse(ReasonParameter, "ParamRef", n.GetLocation(), "a parameter of a user-defined type", "cast it in the statement and let the server infer its type")
	case isRegOID(p.OID):
		w.refuse(ReasonParameter, "ParamRef", n.GetLocation(), "a parameter that is the name of an object", "")
	case at.userArgs:
		w.textArgument(string(p.Value), "ParamRef", "a parameter that names a protected table, in the arguments of a function", n.GetLocation())
	}
}

// isRegOID reports whether a type is one whose text form is the name of an object, or an array of it (pg_type.dat).
func isRegOID(oid uint32) bool {
	switch oid {
	case 24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191,
		1008, 2207, 2208, 2209, 2210, 2211, 3735, 3770, 4090, 4097, 4192:
		return true
	}
	return false
}

// sqlValue refuses keywords that return properties of the session: a replay runs as another role.
func (w *walker) sqlValue(n *pg_query.SQLValueFunction) {
	switch n.GetOp() {
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg_query.SQLValueFunctionOp_SVFOP_CURRENT_USER,
		pg_query.SQLValueFunctionOp_SVFOP_USER, pg_query.SQLValueFunctionOp_SVFOP_SESSION_USER,
		pg_query.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG, pg_query.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		what := strings.ToLower(strings.TrimPrefix(n.GetOp().String(), "SVFOP_"))
		w.refuse(ReasonSessionDependent, "SQLValueFunction", n.GetLocation(), what, "a replay runs in another session, as another role: leave it out")
	}
}

// tableSample allows the two built-in methods and those declared safe.
func (w *walker) tableSample(n *pg_query.RangeTableSample) {
	parts := pgparse.Strings(n.GetMethod())
	schema, name := pgparse.Name(n.GetMethod())
	builtin := (schema == "" || schema == "pg_catalog") && (name == "bernoulli" || name == "system")
	if len(parts) <= 2 && (builtin || w.r.functions.isAllowed(schema, name, w.path)) {
		return
	}
	w.refuse(ReasonUnknownFunction, "RangeTableSample", n.GetLocation(), "sampling method "+strings.Join(parts, "."), "if it is safe to replay, list it in claims.safe_functions")
}
