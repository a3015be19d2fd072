package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// bodyNames holds the names in the body of a function, whatever they refer to. A Table without a Schema is an unqualified
// name.
type bodyNames struct {
	relations map[Table]bool // types too: the row type of a relation has its name
	functions map[Table]bool
	// texts are constants that may become names of objects, or parts of statements.
	texts []string
	// dynamic: the body executes a text built at run time, so it may read and call more than it names.
	dynamic bool
	// byName: a function or a type converts a text to the name of an object, or to a statement.
	byName bool
}

// namesOf returns the names in a body; the second result is "" or the reason why it could not be parsed.
func namesOf(limits Options, functions *functions, f *catalog.Function) (*bodyNames, string) {
	statements, fault := bodyStatements(limits, f)
	if fault != "" {
		return nil, fault
	}
	v := &bodyVisitor{
		functions: functions,
		found:     &bodyNames{relations: map[Table]bool{}, functions: map[Table]bool{}},
	}
	for _, s := range statements {
		v.found.dynamic = v.found.dynamic || s.dynamic
	}
	for _, s := range statements {
		v.visit(s.node.ProtoReflect(), nil, v.found.dynamic)
	}
	return v.found, ""
}

// bodyVisitor collects names.
type bodyVisitor struct {
	functions *functions
	found     *bodyNames
}

// visit handles one message; ctes are in scope, and risky reports that a constant may become a name.
func (v *bodyVisitor) visit(m protoreflect.Message, ctes *scope, risky bool) {
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		if n.GetSchemaname() != "" || !ctes.has(n.GetRelname()) {
			v.found.relations[Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}] = true
		}
	case *pg_query.FuncCall:
		schema, name := splitParts(stringParts(n.GetFuncname()))
		v.found.functions[Table{Schema: schema, Name: name}] = true
		class := v.functions.class(schema, name)
		risky = risky || class != functionSafe
		v.found.byName = v.found.byName || (class == functionNever || class == functionNeverVolatile) && name != "current_setting" && name != "set_config"
	case *pg_query.ColumnRef:
		if fields := n.GetFields(); len(fields) > 1 { // x.f may be the call f(x)
			v.found.functions[Table{Schema: "", Name: fields[len(fields)-1].GetString_().GetSval()}] = true
		}
	case *pg_query.A_Indirection:
		for _, i := range n.GetIndirection() {
			v.found.functions[Table{Schema: "", Name: i.GetString_().GetSval()}] = true
		}
	case *pg_query.TypeName:
		schema, name := splitParts(stringParts(n.GetNames()))
		v.found.relations[Table{Schema: schema, Name: strings.TrimLeft(name, "_")}] = true
		v.found.relations[Table{Schema: schema, Name: name}] = true
	case *pg_query.TypeCast:
		_, name := splitParts(stringParts(n.GetTypeName().GetNames()))
		if strings.HasPrefix(strings.TrimLeft(name, "_"), "reg") {
			risky, v.found.byName = true, true
		}
	case *pg_query.A_Const:
		if n.GetSval() != nil && risky {
			v.found.texts = append(v.found.texts, strings.ToLower(n.GetSval().GetSval()))
		}
	}
	if with, ok := withOf(m); ok {
		ctes = v.with(with, ctes, risky)
	}
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind || fd.Name() == "with_clause":
		case fd.IsList():
			for list, i := value.List(), 0; i < list.Len(); i++ {
				v.visit(list.Get(i).Message(), ctes, risky)
			}
		default:
			v.visit(value.Message(), ctes, risky)
		}
		return true
	})
}

// withOf returns the WITH clause of a statement.
func withOf(m protoreflect.Message) (*pg_query.WithClause, bool) {
	n, ok := m.Interface().(interface{ GetWithClause() *pg_query.WithClause })
	if !ok || n.GetWithClause() == nil {
		return nil, false
	}
	return n.GetWithClause(), true
}

// with visits the queries of WITH, each in its scope, like walker.withClause.
func (v *bodyVisitor) with(with *pg_query.WithClause, ctes *scope, risky bool) *scope {
	if with.GetRecursive() {
		for _, n := range with.GetCtes() {
			ctes = &scope{name: n.GetCommonTableExpr().GetCtename(), outer: ctes}
		}
	}
	for _, n := range with.GetCtes() {
		v.visit(n.GetCommonTableExpr().ProtoReflect(), ctes, risky)
		if !with.GetRecursive() {
			ctes = &scope{name: n.GetCommonTableExpr().GetCtename(), outer: ctes}
		}
	}
	return ctes
}

// splitParts splits a name of up to three parts into schema and name.
func splitParts(parts []string) (schema, name string) {
	switch n := len(parts); {
	case n == 0:
	case n == 1:
		name = parts[0]
	default:
		schema, name = parts[n-2], parts[n-1]
	}
	return schema, name
}

// relation reports whether the body names a relation, with its schema or without.
func (b *bodyNames) relation(t Table) bool {
	return b.relations[t] || b.relations[Table{Schema: "", Name: t.Name}] || b.text(t.Name)
}

// relationOfAnySchema reports whether the body names a relation of that name.
func (b *bodyNames) relationOfAnySchema(name string) bool {
	for t := range b.relations {
		if t.Name == name {
			return true
		}
	}
	return false
}

// function reports whether the body names a function.
func (b *bodyNames) function(t Table) bool {
	return b.functions[t] || b.functions[Table{Schema: "", Name: t.Name}] || b.text(t.Name)
}

// text reports whether a constant that may become a name contains name as a word.
func (b *bodyNames) text(name string) bool {
	name = strings.ToLower(name)
	for _, text := range b.texts {
		if containsWord(text, name) {
			return true
		}
	}
	return false
}
