package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Call checks a call. copied is the function if the call must go to the neighbours' copies of it, otherwise zero; texts
// reports that a text among the arguments may become a name.
func (s *Statement) Call(n *pg_query.FuncCall) (copied Table, texts bool) {
	parts := pgparse.Strings(n.GetFuncname())
	dotted := strings.Join(parts, ".")
	if isSystemUser(n) {
		s.session.systemUser(n)
		return Table{}, false
	}
	s.Functions[dotted] = true
	if len(parts) == 0 || len(parts) > 2 {
		s.Refuse(reasons.UnknownFunction, "FuncCall", n.GetLocation(), "function "+dotted+" is qualified with a database", "qualify it with its schema alone")
		return Table{}, false
	}
	schema, name := pgparse.Name(n.GetFuncname())
	if dotted == "pg_catalog.json_object" { // the parser returns this for json_object(...)
		s.Called.namesakes(name, "FuncCall", n.GetLocation())
	}
	if resolve.IsTempSchema(schema) {
		s.Refuse(reasons.UnknownFunction, "FuncCall", n.GetLocation(), "function "+dotted+" is temporary: its body is not known", "create it in a schema of the database").mayBeProtected = true
		return Table{}, false
	}
	class, users := s.Called.overloads(n, schema, name)
	if s.Called.callees != nil && class == functionUser {
		s.Called.callee(n, schema, name, users)
		return Table{}, false
	}
	if s.rules.functions.readsProtected(s.rules.names, schema, name, users) {
		var ok bool
		if copied, ok = s.readerCall(n, schema, name, users); !ok {
			return Table{}, false
		}
	}
	s.Called.callMayRead(schema, name, "FuncCall", n.GetLocation(), users)
	if !class.isListed() && schema == "" && s.names.path.Uncertain {
		s.refuseUncertain("FuncCall", n.GetLocation(), "function "+dotted, "")
	}
	if class == functionUser {
		s.session.changed("FuncCall", n.GetLocation(), dotted, s.rules.setters.reads(name)...)
	}
	if signature, ok := s.rules.functions.signature(schema, name, s.names.path); ok {
		s.Calls = append(s.Calls, &claim.Call{Signature: signature, Call: n})
		return copied, !class.isListed() && s.Called.assumeFunction(dotted, users)
	}
	switch {
	case class == functionSafe:
		s.shown.counted(n, name)
	case class == functionNever && s.shown.isShownName(n, name):
	case name == "current_setting" && class == functionNever && s.session.readsKnownSetting(n):
	case name == "pg_typeof" && class == functionNever && s.names.values().SameTypes(s.rules.options.Neighbours):
	case class == functionNever || class == functionNeverVolatile:
		s.Refuse(class.refusal(), "FuncCall", n.GetLocation(), "function "+dotted+class.why(), "")
	case s.rules.functions.isAllowed(schema, name, s.names.path):
		texts = !class.isListed() && s.Called.assumeFunction(dotted, users)
	case s.names.isColumn(n, schema, name):
		s.Called.Unknown = true
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

// replayCandidates returns the longest possible path of a replay.
func (l *lookup) replayCandidates() []string {
	return slices.Concat(l.path.Schemas, l.rules.options.ShadowPath)
}

// isColumn reports whether name(x) is the column x.name: PostgreSQL resolves it so if x is a row, and there is no
// function and no type of that name. Only the row of a relation in FROM counts: a call with any other argument is one
// of a function that the catalogs do not have yet.
func (l *lookup) isColumn(n *pg_query.FuncCall, schema, name string) bool {
	functions := l.rules.functions
	return functions.source != nil && schema == "" && len(n.GetArgs()) == 1 && l.values().IsRow(n.GetArgs()[0]) && !l.path.Uncertain &&
		n.GetAggOrder() == nil && n.GetAggFilter() == nil && n.GetOver() == nil && !n.GetAggStar() && !n.GetAggDistinct() && !n.GetFuncVariadic() && !n.GetAggWithinGroup() &&
		functions.class("", name) == functionUser && len(functions.source.Functions[name]) == 0 && (functions.shadow == nil || len(functions.shadow.Functions[name]) == 0) &&
		functions.source.TypeIn(name, l.path.Schemas) == "" && !isNameType(name)
}

// isNameType reports whether the values of a type are names of objects.
func isNameType(name string) bool {
	switch name {
	case "regclass", "regnamespace", "regrole", "regproc", "regprocedure", "regoper", "regoperator", "regtype", "regconfig", "regdictionary", "regcollation":
		return true
	}
	return false
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
	s.Called.namesakes(name, string(m.Descriptor().Name()), near)
}

// Sample allows the two built-in sampling methods and those declared safe.
func (s *Statement) Sample(n *pg_query.RangeTableSample) {
	parts := pgparse.Strings(n.GetMethod())
	schema, name := pgparse.Name(n.GetMethod())
	builtin := (schema == "" || schema == "pg_catalog") && (name == "bernoulli" || name == "system")
	if len(parts) <= 2 && (builtin || s.rules.functions.isAllowed(schema, name, s.names.path)) {
		return
	}
	s.Refuse(reasons.UnknownFunction, "RangeTableSample", n.GetLocation(), "sampling method "+strings.Join(parts, ".")+" is neither built in nor declared safe", "if it is safe to replay, list it in claims.safe_functions")
}
