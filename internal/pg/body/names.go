package body

import (
	"iter"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Names holds the names in the body of a function, whatever they refer to. A Table without a Schema is an unqualified
// name.
type Names struct {
	relations map[ident.Table]bool // types too: the row type of a relation has its name
	// Functions are the functions that the body calls, or may call as x.f.
	Functions map[ident.Table]bool
	operators map[ident.Table]bool
	changes   map[ident.Table]catalog.Event // what its statements do with relations, besides reading them
	// texts are constants that may become names of objects, or parts of statements.
	texts []string
	// Dynamic: the body executes a text built at run time, so it may read and call more than it names.
	Dynamic bool
	// ByName: a function or a type converts a text to the name of an object, or to a statement.
	ByName bool
	calls  func(schema, name string) (risky, byName bool)
}

// NamesOf returns the names in a body; the second result is "" or the reason why it could not be parsed. calls judges a
// function: risky, if a text among its arguments may become a name, byName, if it always does.
func NamesOf(limits Limits, language, text string, calls func(schema, name string) (risky, byName bool)) (*Names, string) {
	statements, fault := Statements(limits, language, text)
	if fault != "" {
		return nil, fault
	}
	b := &Names{
		relations: map[ident.Table]bool{}, Functions: map[ident.Table]bool{}, operators: map[ident.Table]bool{}, changes: map[ident.Table]catalog.Event{}, calls: calls,
	}
	for _, s := range statements {
		b.Dynamic = b.Dynamic || s.Dynamic
	}
	for _, s := range statements {
		b.visit(s.Node.ProtoReflect(), nil, b.Dynamic)
	}
	return b, ""
}

// visit handles one message; ctes are in scope, and risky reports that a constant may become a name.
func (b *Names) visit(m protoreflect.Message, ctes *pgparse.CTEs, risky bool) {
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		if n.GetSchemaname() != "" || !ctes.Has(n.GetRelname()) {
			b.relations[ident.Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}] = true
		}
	case *pg_query.FuncCall:
		schema, name := pgparse.Name(n.GetFuncname())
		b.Functions[ident.Table{Schema: schema, Name: name}] = true
		mayName, byName := b.calls(schema, name)
		risky, b.ByName = risky || mayName, b.ByName || byName
	case *pg_query.ColumnRef:
		if fields := n.GetFields(); len(fields) > 1 { // x.f may be the call f(x)
			b.Functions[ident.Table{Schema: "", Name: pgparse.Last(fields)}] = true
		}
	case *pg_query.A_Indirection:
		for _, name := range pgparse.Strings(n.GetIndirection()) {
			b.Functions[ident.Table{Schema: "", Name: name}] = true
		}
	case *pg_query.TypeName:
		schema, name := pgparse.Name(n.GetNames())
		b.relations[ident.Table{Schema: schema, Name: strings.TrimLeft(name, "_")}] = true
		b.relations[ident.Table{Schema: schema, Name: name}] = true
	case *pg_query.TypeCast:
		if strings.HasPrefix(strings.TrimLeft(pgparse.Last(n.GetTypeName().GetNames()), "_"), "reg") {
			risky, b.ByName = true, true
		}
	case *pg_query.A_Expr:
		schema, name := pgparse.Name(n.GetName())
		b.operators[ident.Table{Schema: schema, Name: name}] = true
	case *pg_query.SubLink:
		schema, name := pgparse.Name(n.GetOperName())
		b.operators[ident.Table{Schema: schema, Name: name}] = true
	case *pg_query.A_Const:
		if n.GetSval() != nil && risky {
			b.texts = append(b.texts, strings.ToLower(n.GetSval().GetSval()))
		}
	}
	for r, event := range Targets(m) {
		b.changes[ident.Table{Schema: r.GetSchemaname(), Name: r.GetRelname()}] |= event
	}
	if n, ok := m.Interface().(interface{ GetWithClause() *pg_query.WithClause }); ok {
		ctes = ctes.With(n.GetWithClause(), func(query *pg_query.Node, in *pgparse.CTEs) {
			b.visit(query.GetCommonTableExpr().ProtoReflect(), in, risky)
		})
	}
	pgparse.Children(m, func(c protoreflect.Message) { b.visit(c, ctes, risky) }, "with_clause")
}

// Targets yields the relations that a statement changes, without the statements within it, and how.
func Targets(m protoreflect.Message) iter.Seq2[*pg_query.RangeVar, catalog.Event] {
	return func(yield func(*pg_query.RangeVar, catalog.Event) bool) {
		switch n := m.Interface().(type) {
		case *pg_query.InsertStmt:
			event := catalog.Insert
			if n.GetOnConflictClause().GetAction() == pg_query.OnConflictAction_ONCONFLICT_UPDATE {
				event |= catalog.Update
			}
			yield(n.GetRelation(), event)
		case *pg_query.UpdateStmt:
			yield(n.GetRelation(), catalog.Update)
		case *pg_query.DeleteStmt:
			yield(n.GetRelation(), catalog.Delete)
		case *pg_query.MergeStmt:
			event := catalog.Event(0)
			for _, when := range n.GetMergeWhenClauses() {
				switch when.GetMergeWhenClause().GetCommandType() {
				case pg_query.CmdType_CMD_INSERT:
					event |= catalog.Insert
				case pg_query.CmdType_CMD_UPDATE:
					event |= catalog.Update
				case pg_query.CmdType_CMD_DELETE:
					event |= catalog.Delete
				}
			}
			yield(n.GetRelation(), event)
		case *pg_query.CopyStmt:
			if n.GetIsFrom() && n.GetRelation() != nil {
				yield(n.GetRelation(), catalog.Insert)
			}
		case *pg_query.TruncateStmt:
			for _, r := range n.GetRelations() {
				if !yield(r.GetRangeVar(), catalog.Truncate) {
					return
				}
			}
		}
	}
}

// Relation reports whether the body names a relation, with its schema or without.
func (b *Names) Relation(t ident.Table) bool {
	return b.relations[t] || b.relations[ident.Table{Schema: "", Name: t.Name}] || b.text(t.Name)
}

// RelationOfAnySchema reports whether the body names a relation of that name.
func (b *Names) RelationOfAnySchema(name string) bool {
	for t := range b.relations {
		if t.Name == name {
			return true
		}
	}
	return false
}

// Function reports whether the body names a function.
func (b *Names) Function(t ident.Table) bool {
	return b.Functions[t] || b.Functions[ident.Table{Schema: "", Name: t.Name}] || b.text(t.Name)
}

// FunctionOfAnySchema reports whether the body names a function of that name.
func (b *Names) FunctionOfAnySchema(name string) bool {
	for t := range b.Functions {
		if t.Name == name {
			return true
		}
	}
	return b.text(name)
}

// Executes reports whether the body calls a function with one of some names.
func (b *Names) Executes(names func(string) bool) bool {
	for t := range b.Functions {
		if names(t.Name) {
			return true
		}
	}
	return false
}

// Operator reports whether the body names an operator.
func (b *Names) Operator(t ident.Table) bool {
	return b.operators[t] || b.operators[ident.Table{Schema: "", Name: t.Name}]
}

// Changes returns what the statements of the body do with a relation, besides reading it.
func (b *Names) Changes(t ident.Table) catalog.Event {
	if b.text(t.Name) {
		return catalog.Change
	}
	return b.changes[t] | b.changes[ident.Table{Schema: "", Name: t.Name}]
}

// text reports whether a constant that may become a name contains name as a word.
func (b *Names) text(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(b.texts, func(text string) bool { return ident.ContainsWord(text, name) })
}
