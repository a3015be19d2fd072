package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Called are the functions that a statement runs: by calls, and by its operators, types and attributes.
type Called struct {
	Implied map[Table]bool // functions outside pg_catalog of its operators and types, as far as a catalog shows them
	Unknown bool           // a name is in neither catalog, and was taken for what it is then

	findings  *findings
	names     *lookup
	rules     *Rules
	query     capture.Query
	protected map[Table]bool // Statement.Protected
	// callees collects, for a checker, the user-defined functions that the body of a function calls; nil outside of
	// bodies.
	callees map[Table]bool
	mayRead *Refusal // of the first call of a function that may read protected tables; see callMayRead
	// printed: the server printed the text from its own tree, in which x.f is a column and a call is printed as f(x).
	printed bool
}

// overloads returns the candidates for a call: the class of the name, and the user-defined functions of the name that
// its arguments fit.
func (c *Called) overloads(n *pg_query.FuncCall, schema, name string) (functionClass, []*catalog.Function) {
	functions := c.rules.functions
	class := functions.class(schema, name)
	if class == functionUser {
		c.findings.name(c.rules, "function", name, "FuncCall", n.GetLocation())
	}
	c.names.use(nameUse{kind: useFunction, schema: schema, name: name, call: n, node: "FuncCall", offset: n.GetLocation(), builtin: class != functionUser})
	if functions.source == nil {
		if schema == "" && class == functionSafe {
			c.findings.assume(AssumedBuiltin)
			if others := c.names.callable(functions.shadow.Find("", name, c.names.replayCandidates()), n); !allContrib(others) {
				return functionUser, nil
			}
		}
		return class, nil
	}
	users := functions.source.Find(schema, name, c.names.path.Known())
	anySchema := schema == "" && c.names.path.Uncertain
	if anySchema {
		users = functions.source.Functions[name]
	}
	if class != functionUser && class != functionSafe {
		return class, users
	}
	if c.callees == nil { // the checker of a body checks every overload
		users = c.names.callable(users, n)
	}
	switch {
	case len(users) > 0 && allContrib(users) && !(anySchema && c.callees == nil):
		class = functionSafe
	case len(users) > 0 && schema == "":
		class = functionUser // the types of the arguments decide which one is called
	}
	if anySchema {
		users = nil
	}
	return class, users
}

// namesakes checks the user-defined functions with the name of one that the parser resolved as built in.
func (c *Called) namesakes(name, node string, offset int32) {
	if c.rules.functions.source == nil || c.printed {
		return
	}
	for _, f := range c.rules.functions.source.Functions[name] {
		if c.names.path.Uncertain || c.names.path.Has(f.Schema) {
			c.implied(Table{Schema: f.Schema, Name: f.Name}, name, node, offset)
		}
	}
}

// callee records the call of a user-defined function in the body of another.
func (c *Called) callee(n *pg_query.FuncCall, schema, name string, users []*catalog.Function) {
	switch {
	case schema == "" && c.names.path.Uncertain:
		c.findings.refuseUncertain("FuncCall", n.GetLocation(), "function "+name, "")
	case len(users) == 0:
		c.findings.Refuse(reasons.UnknownFunction, "FuncCall", n.GetLocation(), "function "+name+" is not in the shadow database's catalog", "")
	}
	for _, f := range users {
		c.callees[Table{Schema: f.Schema, Name: f.Name}] = true
	}
}

// implied checks a function that the text does not name. An immutable one that reads no protected table needs no
// declaration; in the body of a function the checker decides.
func (c *Called) implied(f Table, what, node string, offset int32) {
	if f.Schema != "pg_catalog" {
		c.Implied[f] = true
	}
	if source := c.rules.functions.source; source != nil {
		c.callMayRead(f.Schema, f.Name, node, offset, source.Find(f.Schema, f.Name, nil))
	}
	switch functions := c.rules.functions; {
	case f.Schema == "pg_catalog":
		c.impliedBuiltin(f.Name, what, node, offset)
	case c.callees != nil:
		c.callees[f] = true
	case functions.readsProtected(c.rules.names, f.Schema, f.Name, functions.source.Find(f.Schema, f.Name, nil)):
		c.findings.Refuse(reasons.NoCopy, node, offset, what+" calls the function "+f.String()+", which reads a protected table", "call the function by its name: then the neighbours' copies of it can be used")
	case !functions.isHarmless(f):
		c.findings.Refuse(reasons.UnknownFunction, node, offset, what+" calls the "+describeFunctions(f.String(), functions.source.Find(f.Schema, f.Name, nil))+", which is neither immutable nor declared safe",
			"if it is safe to replay, list the function in claims.safe_functions")
	default:
		c.assumeFunction(f.String(), functions.source.Find(f.Schema, f.Name, nil))
	}
}

// impliedBuiltin checks a built-in function behind a user-defined operator or type.
func (c *Called) impliedBuiltin(name, what, node string, offset int32) {
	class := c.rules.functions.class("pg_catalog", name)
	detail := what + " calls the function pg_catalog." + name
	if why := class.why(); why != "" {
		detail += ", which" + why
	}
	switch {
	case class == functionSafe:
	case strings.HasPrefix(name, "reg") && strings.HasSuffix(name, "in"):
		c.findings.Refuse(reasons.NameInString, node, offset, what+" converts text to the name of an object", "")
	case class == functionNever || class == functionNeverVolatile:
		c.findings.Refuse(class.refusal(), node, offset, detail, "")
	case !c.rules.functions.isAllowed("pg_catalog", name, resolve.Path{}):
		c.findings.Refuse(class.refusal(), node, offset, detail, "if it is safe to replay, list pg_catalog."+name+" in claims.safe_functions")
	}
}

// assumeCasts records implicit casts that a query may use although its text does not name them.
func (c *Called) assumeCasts() {
	source := c.rules.functions.source
	if source == nil {
		return
	}
	for _, f := range source.Catalog.ImplicitCasts {
		if !c.rules.functions.isHarmless(f) || c.rules.functions.readsProtected(c.rules.names, f.Schema, f.Name, source.Find(f.Schema, f.Name, nil)) {
			c.findings.assume(AssumedCasts)
		}
	}
}

// operatorCall checks the user-defined operators to which a name may refer, depending on the types of the operands.
func (c *Called) operatorCall(schema string, e resolve.Operands, node string, offset int32) {
	functions, name := c.rules.functions, e.Name
	dotted := strings.TrimPrefix(schema+"."+name, ".")
	if schema == "pg_catalog" {
		if !functions.builtinOperators[name] {
			c.findings.Refuse(reasons.UnknownFunction, node, offset, "operator "+dotted+" is built into the server, but is not in the list of operators that dpwatch knows", "")
		}
		return
	}
	builtin := schema == "" && functions.builtinOperators[name]
	if !builtin {
		c.findings.name(c.rules, "operator", name, node, offset)
	}
	if functions.source == nil {
		if builtin {
			c.findings.assume(AssumedBuiltin)
			return
		}
		c.findings.Refuse(reasons.UnknownFunction, node, offset, "operator "+dotted+" is not built in, and its function is not known", "set privacy.catalog to read the engine's catalog")
		return
	}
	c.names.use(nameUse{kind: useOperator, schema: schema, name: name, operands: e, node: node, offset: offset, builtin: builtin})
	if schema == "" && c.names.path.Uncertain && c.names.applicable(functions.source.Operators[name], e) {
		c.findings.refuseUncertain(node, offset, "operator "+dotted, "write it as OPERATOR(schema."+name+")")
		return
	}
	found := false
	for _, o := range functions.source.Operators[name] {
		if o.Schema != schema && (schema != "" || !c.names.path.Has(o.Schema)) {
			continue
		}
		found = true
		if c.names.applicable([]catalog.Operator{o}, e) {
			c.implied(o.Function, "operator "+dotted, node, offset)
		}
	}
	if !found && !builtin {
		c.findings.Refuse(reasons.UnknownFunction, node, offset, "operator "+dotted+" is not in the engine's catalog", "")
	}
}

// callMayRead records the call of a function that may read protected tables, according to words. A statement that reads
// none otherwise is refused for it.
func (c *Called) callMayRead(schema, name, node string, offset int32, users []*catalog.Function) {
	n := c.rules.names
	if c.callees != nil || !slices.ContainsFunc(users, func(f *catalog.Function) bool { return n.mayRead[f] }) {
		return
	}
	if c.rules.options.OwnEngines {
		c.readByWords(users)
		return
	}
	if c.mayRead == nil {
		dotted := strings.TrimPrefix(schema+"."+name, ".")
		c.mayRead = &Refusal{
			Reason: reasons.NoCopy, Node: node, Offset: int(offset), Detail: describeFunctions(dotted, users) + " contains the name of a protected table, and its body is not analysed",
			Hint: "read the table in the statement itself",
		}
	}
}

// readByWords adds the protected tables whose names the bodies of foreign code contain: each engine has those of its
// world.
func (c *Called) readByWords(users []*catalog.Function) {
	for _, f := range users {
		text := strings.ToLower(f.Body)
		for t, kind := range c.rules.names.Kinds {
			if kind == resolve.KindProtected && c.rules.names.mayRead[f] && ident.ContainsWord(text, strings.ToLower(t.Name)) {
				c.protected[t] = true
			}
		}
	}
}

// assumeFunction records a user-defined function that a statement calls and whose reads cannot be derived. It reports
// whether the name may refer to such a function.
func (c *Called) assumeFunction(name string, users []*catalog.Function) bool {
	if c.rules.functions.source == nil {
		c.findings.assume(AssumedFunction(name))
		return true
	}
	opaque := len(users) == 0
	for _, f := range users {
		if c.rules.opaque[f] {
			opaque = true
			assumed := AssumedFunction
			if c.rules.names.readers[f] || c.rules.names.mayRead[f] {
				assumed = AssumedReader
			}
			c.findings.assume(assumed(Table{Schema: f.Schema, Name: f.Name}.String()))
		}
	}
	if len(users) == 0 {
		c.findings.assume(AssumedFunction(name))
	}
	return opaque
}
