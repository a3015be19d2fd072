package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Call checks a call. copied is the function if the call must go to the neighbours' copies of it, otherwise zero; texts
// reports that a text among the arguments may become a name.
func (s *Statement) Call(n *pg_query.FuncCall) (copied Table, texts bool) {
	parts := pgparse.Strings(n.GetFuncname())
	dotted := strings.Join(parts, ".")
	if isSystemUser(n) {
		s.systemUser(n)
		return Table{}, false
	}
	s.Functions[dotted] = true
	if len(parts) == 0 || len(parts) > 2 {
		s.Refuse(reasons.UnknownFunction, "FuncCall", n.GetLocation(), "function "+dotted+" is qualified with a database", "qualify it with its schema alone")
		return Table{}, false
	}
	schema, name := pgparse.Name(n.GetFuncname())
	if dotted == "pg_catalog.json_object" { // the parser returns this for json_object(...)
		s.namesakes(name, "FuncCall", n.GetLocation())
	}
	class, users := s.overloads(n, schema, name)
	if s.callees != nil && class == functionUser {
		s.callee(n, schema, name, users)
		return Table{}, false
	}
	if s.rules.functions.readsProtected(s.rules.names, schema, name, users) {
		var ok bool
		if copied, ok = s.readerCall(n, schema, name, users); !ok {
			return Table{}, false
		}
	}
	s.callMayRead(schema, name, "FuncCall", n.GetLocation(), users)
	if !class.isListed() && schema == "" && s.path.Uncertain {
		s.refuseUncertain("FuncCall", n.GetLocation(), "function "+dotted, "")
	}
	if class == functionUser {
		s.changed("FuncCall", n.GetLocation(), dotted, s.rules.setters.reads(name)...)
	}
	if signature, ok := s.rules.functions.signature(schema, name, s.path); ok {
		s.Calls = append(s.Calls, &claim.Call{Signature: signature, Call: n})
		return copied, !class.isListed() && s.assumeFunction(dotted, users)
	}
	switch {
	case class == functionSafe:
		s.counted(n, name)
	case class == functionNever && s.isShownName(n, name):
	case name == "current_setting" && class == functionNever && s.readsKnownSetting(n):
	case name == "pg_typeof" && class == functionNever && s.values().SameTypes(s.rules.options.Neighbours):
	case class == functionNever || class == functionNeverVolatile:
		s.Refuse(class.refusal(), "FuncCall", n.GetLocation(), "function "+dotted+class.why(), "")
	case s.rules.functions.isAllowed(schema, name, s.path):
		texts = !class.isListed() && s.assumeFunction(dotted, users)
	case s.isColumn(n, schema, name):
		s.Unknown = true
		s.columnCall(name, n.GetLocation())
	case class == functionVolatile || isForeignFamily(name):
		s.Refuse(reasons.SideEffects, "FuncCall", n.GetLocation(), "function "+dotted+" has side effects", "if it is safe to replay, list it in claims.safe_functions")
	case class == functionUnlisted:
		s.Refuse(class.refusal(), "FuncCall", n.GetLocation(), "function "+dotted+class.why(), "if it is safe to replay, list it in claims.safe_functions")
	default:
		s.Refuse(reasons.UnknownFunction, "FuncCall", n.GetLocation(), describeFunctions(dotted, users)+" is neither built in nor declared safe",
			"if it is safe to replay, list it in claims.safe_functions, or, if it takes the epsilon, in claims.functions")
	}
	return copied, texts
}

// overloads returns the candidates for a call: the class of the name, and the user-defined functions of the name that
// its arguments fit.
func (s *Statement) overloads(n *pg_query.FuncCall, schema, name string) (functionClass, []*catalog.Function) {
	functions := s.rules.functions
	class := functions.class(schema, name)
	s.use(nameUse{kind: useFunction, schema: schema, name: name, call: n, node: "FuncCall", offset: n.GetLocation(), builtin: class != functionUser})
	if functions.source == nil {
		if schema == "" && class == functionSafe {
			s.assume(AssumedBuiltin)
			if others := s.callable(functions.shadow.Find("", name, s.replayCandidates()), n); !allContrib(others) {
				return functionUser, nil
			}
		}
		return class, nil
	}
	users := functions.source.Find(schema, name, s.path.Known())
	anySchema := schema == "" && s.path.Uncertain
	if anySchema {
		users = functions.source.Functions[name]
	}
	if class != functionUser && class != functionSafe {
		return class, users
	}
	if s.callees == nil { // the checker of a body checks every overload
		users = s.callable(users, n)
	}
	switch {
	case len(users) > 0 && allContrib(users) && !(anySchema && s.callees == nil):
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
func (s *Statement) replayCandidates() []string {
	return slices.Concat(s.path.Schemas, s.rules.options.ShadowPath)
}

// isColumn reports whether name(x) is the column x.name: PostgreSQL resolves it so if x is a row, and there is no
// function and no type of that name. Only the row of a relation in FROM counts: a call with any other argument is one
// of a function that the catalogs do not have yet.
func (s *Statement) isColumn(n *pg_query.FuncCall, schema, name string) bool {
	functions := s.rules.functions
	return functions.source != nil && schema == "" && len(n.GetArgs()) == 1 && s.values().IsRow(n.GetArgs()[0]) && !s.path.Uncertain &&
		n.GetAggOrder() == nil && n.GetAggFilter() == nil && n.GetOver() == nil && !n.GetAggStar() && !n.GetAggDistinct() && !n.GetFuncVariadic() && !n.GetAggWithinGroup() &&
		functions.class("", name) == functionUser && len(functions.source.Functions[name]) == 0 && (functions.shadow == nil || len(functions.shadow.Functions[name]) == 0) &&
		functions.source.TypeIn(name, s.path.Schemas) == "" && !isNameType(name)
}

// isNameType reports whether the values of a type are names of objects.
func isNameType(name string) bool {
	switch name {
	case "regclass", "regnamespace", "regrole", "regproc", "regprocedure", "regoper", "regoperator", "regtype", "regconfig", "regdictionary", "regcollation":
		return true
	}
	return false
}

// columnCall checks a column in function notation.
func (s *Statement) columnCall(name string, offset int32) {
	if isSystemColumn(name) {
		s.Refuse(reasons.SystemColumn, "FuncCall", offset, "system column "+name, "")
	}
}

// readerCall returns the function that reads protected tables and is called, if the neighbours' copies of it are
// correct.
func (s *Statement) readerCall(n *pg_query.FuncCall, schema, name string, users []*catalog.Function) (Table, bool) {
	dotted, detail := strings.Join(pgparse.Strings(n.GetFuncname()), "."), "but only according to the shadow database's catalog"
	var f Table
	if slices.ContainsFunc(users, s.rules.names.isReader) {
		f, detail = s.rules.names.callOfReader(schema, name, users, s.rules.functions.class("", name) != functionUser)
	}
	if detail != "" {
		hint := "create it with the same arguments in shadow.d0 and in every schema of shadow.d1, so that it reads only the tables of that schema, or write its query into the statement"
		if slices.ContainsFunc(users, isForeignCode) {
			hint = "let it take arrays, and let an SQL function, or the statement, read the tables for it: f(array_agg(x)); or create it in shadow.d0 and in every schema of shadow.d1, with a body in which that schema is before the name of each table"
		}
		s.Refuse(reasons.NoCopy, "FuncCall", n.GetLocation(), describeFunctions(dotted, users)+" reads a protected table, "+detail, hint).mayBeProtected = true
		return Table{}, false
	}
	for t := range s.rules.names.copies[f].tables {
		s.Protected[t] = true
	}
	return f, true
}

// JSON checks SQL/JSON syntax that a server before PostgreSQL 16 reads as a call of a user-defined function.
func (s *Statement) JSON(m protoreflect.Message, near int32) {
	name := "json_array"
	switch m.Interface().(type) {
	case *pg_query.JsonObjectConstructor:
		name = "json_object"
	case *pg_query.JsonObjectAgg:
		name = "json_objectagg"
	case *pg_query.JsonArrayAgg:
		name = "json_arrayagg"
	}
	s.namesakes(name, string(m.Descriptor().Name()), near)
}

// namesakes checks the user-defined functions with the name of one that the parser resolved as built in.
func (s *Statement) namesakes(name, node string, offset int32) {
	if s.rules.functions.source == nil || s.printed {
		return
	}
	for _, f := range s.rules.functions.source.Functions[name] {
		if s.path.Uncertain || s.path.Has(f.Schema) {
			s.implied(Table{Schema: f.Schema, Name: f.Name}, name, node, offset)
		}
	}
}

// callee records the call of a user-defined function in the body of another.
func (s *Statement) callee(n *pg_query.FuncCall, schema, name string, users []*catalog.Function) {
	switch {
	case schema == "" && s.path.Uncertain:
		s.refuseUncertain("FuncCall", n.GetLocation(), "function "+name, "")
	case len(users) == 0:
		s.Refuse(reasons.UnknownFunction, "FuncCall", n.GetLocation(), "function "+name+" is not in the shadow database's catalog", "")
	}
	for _, f := range users {
		s.callees[Table{Schema: f.Schema, Name: f.Name}] = true
	}
}

// changed reports whether a function reads a setting that may have changed, and then refuses the call.
func (s *Statement) changed(node string, offset int32, function string, settings ...string) bool {
	for _, name := range settings {
		if s.query.Doubt.Has(name) {
			s.Refuse(reasons.SettingsUncertain, node, offset, "function "+function+" reads the setting "+name+", which the session may have changed",
				"set it again after calls of functions that change settings")
			return true
		}
	}
	return false
}

// readsKnownSetting reports whether a call of current_setting reads a setting that a replay sets from Plan.Settings.
func (s *Statement) readsKnownSetting(n *pg_query.FuncCall) bool {
	if len(n.GetArgs()) == 0 {
		return false
	}
	name := strings.ToLower(pgparse.Text(n.GetArgs()[0]))
	return AffectsResult(name) && !s.changed("FuncCall", n.GetLocation(), "current_setting", name)
}

// Sample allows the two built-in sampling methods and those declared safe.
func (s *Statement) Sample(n *pg_query.RangeTableSample) {
	parts := pgparse.Strings(n.GetMethod())
	schema, name := pgparse.Name(n.GetMethod())
	builtin := (schema == "" || schema == "pg_catalog") && (name == "bernoulli" || name == "system")
	if len(parts) <= 2 && (builtin || s.rules.functions.isAllowed(schema, name, s.path)) {
		return
	}
	s.Refuse(reasons.UnknownFunction, "RangeTableSample", n.GetLocation(), "sampling method "+strings.Join(parts, ".")+" is neither built in nor declared safe", "if it is safe to replay, list it in claims.safe_functions")
}
