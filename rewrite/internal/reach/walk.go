package reach

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// walker compares the names of a statement with the two sets.
type walker struct {
	question             *Question
	statement            Statement
	functions, protected *Set // for a statement that is only planned, both are Question.planned
	answer               Answer
	values               *resolve.Values // of the statement that is visited
	depth                int             // of texts and bodies within each other
}

// maxDepth bounds the texts and bodies within each other.
const maxDepth = 4

// found records that something reaches the functions or the relations.
func (w *walker) found(functions, protected bool, through string) {
	w.answer.Hidden = w.answer.Hidden || functions
	if functions && w.answer.Function == "" {
		w.answer.Function = through
	}
	if protected && w.answer.Relation == "" {
		w.answer.Relation = through
	}
}

func (w *walker) isPlanned() bool { return w.functions == w.question.planned }

// visit handles one message and all below it; ctes are in scope.
func (w *walker) visit(m protoreflect.Message, ctes *pgparse.CTEs) {
	skip := protoreflect.Name("with_clause")
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		if n.GetSchemaname() != "" || !ctes.Has(n.GetRelname()) {
			w.relation(n)
		}
	case *pg_query.FuncCall:
		w.call(n)
	case *pg_query.A_Expr:
		for _, o := range resolve.OperandsOf(n) {
			w.operator(n.GetName(), o)
		}
	case *pg_query.SubLink:
		w.operator(n.GetOperName(), resolve.Operands{Name: pgparse.Last(n.GetOperName()), Left: []*pg_query.Node{n.GetTestexpr()}})
	case *pg_query.CaseExpr:
		if n.GetArg() != nil {
			w.operator(nil, resolve.CaseOperands(n))
		}
	case *pg_query.JoinExpr:
		if n.GetIsNatural() || len(n.GetUsingClause()) > 0 {
			w.operator(nil, resolve.Operands{Name: "="})
		}
	case *pg_query.SortBy:
		w.operator(n.GetUseOp(), resolve.Operands{Name: pgparse.Last(n.GetUseOp()), Left: []*pg_query.Node{n.GetNode()}})
	case *pg_query.TypeName:
		w.typeName(n)
	case *pg_query.TypeCast:
		w.cast(n.GetTypeName().GetNames(), n.GetArg())
	case *pg_query.ColumnRef:
		if fields := n.GetFields(); len(fields) > 1 {
			w.attribute(pgparse.Last(fields), true)
		}
	case *pg_query.A_Indirection:
		for _, i := range n.GetIndirection() {
			w.attribute(i.GetString_().GetSval(), false)
		}
	}
	for r, events := range body.Targets(m) {
		w.change(m.Interface(), r, events)
		if m.Descriptor().Name() == "InsertStmt" { // it reads nothing of its relation
			ctes = ctes.With(withOf(m), func(query *pg_query.Node, in *pgparse.CTEs) { w.visit(query.ProtoReflect(), in) })
			pgparse.Children(m, func(c protoreflect.Message) {
				if _, isRelation := c.Interface().(*pg_query.RangeVar); isRelation {
					return
				}
				w.visit(c, ctes)
			}, skip)
			return
		}
	}
	ctes = ctes.With(withOf(m), func(query *pg_query.Node, in *pgparse.CTEs) { w.visit(query.ProtoReflect(), in) })
	pgparse.Children(m, func(c protoreflect.Message) { w.visit(c, ctes) }, skip)
}

// withOf returns the WITH clause of a statement; nil = none.
func withOf(m protoreflect.Message) *pg_query.WithClause {
	if n, ok := m.Interface().(interface{ GetWithClause() *pg_query.WithClause }); ok {
		return n.GetWithClause()
	}
	return nil
}

// relations returns the relations to which a name may refer.
func (w *walker) relations(n *pg_query.RangeVar) (all []Table) {
	schema, name, o := n.GetSchemaname(), n.GetRelname(), w.question.options
	switch {
	case resolve.IsTempSchema(schema), schema == "" && slices.Contains(w.statement.Query.Temporary, name):
		return nil
	case o.Catalog == nil && schema != "":
		return []Table{{Schema: schema, Name: name}, {Schema: "", Name: name}}
	case o.Catalog == nil || o.ByName:
		for _, set := range []*Set{w.functions, w.protected} {
			for t := range set.Relations {
				if t.Name == name {
					all = append(all, t)
				}
			}
		}
		if o.Catalog != nil {
			for _, r := range o.Catalog.Named[name] {
				all = append(all, r.Table)
			}
		}
		return all
	case schema != "":
		return []Table{{Schema: schema, Name: name}}
	case w.statement.Path.Uncertain:
		for _, r := range o.Catalog.Named[name] {
			all = append(all, r.Table)
		}
		return all
	}
	for _, s := range w.statement.Path.Schemas {
		if t := (Table{Schema: s, Name: name}); o.Catalog.Relations[t] != nil {
			return []Table{t}
		}
	}
	return nil
}

// relation handles one that is read.
func (w *walker) relation(n *pg_query.RangeVar) {
	for _, t := range w.relations(n) {
		anyTable := Table{Schema: t.Schema, Name: resolve.AnyTable}
		w.found(w.functions.Relations[t], w.protected.Relations[t] || w.protected.Relations[anyTable], "relation "+n.GetRelname())
	}
}

// change handles a relation whose rows are changed by the statement m.
func (w *walker) change(m proto.Message, n *pg_query.RangeVar, events catalog.Event) {
	through := "what the server runs when rows of " + n.GetRelname() + " change (a rule, trigger, default, constraint, index or policy)"
	for _, t := range w.relations(n) {
		r := (*catalog.Relation)(nil)
		if w.question.options.Catalog != nil {
			r = w.question.options.Catalog.Relations[t]
		}
		if r == nil {
			continue
		}
		for i := range r.Effects {
			if e := &r.Effects[i]; applies(e, m, events) {
				w.found(w.functions.effect(e), w.protected.effect(e), through)
			}
		}
		if r.Kind == catalog.KindMaterialized || r.RowSecurity {
			continue
		}
		for _, part := range r.Reads { // of a view that can be updated; partitions
			w.found(w.functions.Changes[part]&events != 0, w.protected.Changes[part]&events != 0, through)
		}
	}
}

// effect reports whether an effect reaches the start of the set.
func (s *Set) effect(e *catalog.Effect) bool {
	return slices.ContainsFunc(e.Calls, s.Has) ||
		slices.ContainsFunc(e.Reads, func(t Table) bool { return s.Relations[t] }) ||
		slices.ContainsFunc(e.Types, func(t Table) bool { return s.Types[t] }) ||
		slices.ContainsFunc(e.Writes, func(t Table) bool { return s.Changes[t]&catalog.Change != 0 }) ||
		e.Text != "" && s.Speaks(bodyWords(strings.ToLower(e.Text)))
}

// operator handles one by its name as written; nil for an implied one.
func (w *walker) operator(written []*pg_query.Node, e resolve.Operands) {
	x := w.question.options.Catalog
	if x == nil || e.Name == "" {
		return
	}
	schema, _ := pgparse.Name(written)
	for _, o := range x.Operators[e.Name] {
		if w.inPath(schema, o.Schema) && (o.Takes == [2]Table{} || w.values.Applicable(o, e)) {
			w.found(w.functions.Has(o.Function), w.protected.Has(o.Function), "operator "+e.Name)
		}
	}
}

// inPath reports whether a name with a schema, or "", may refer to an object in a schema.
func (w *walker) inPath(written, schema string) bool {
	if written != "" {
		return written == schema
	}
	return w.question.options.ByName || w.statement.Path.Uncertain || w.statement.Path.Has(schema)
}

// typeName handles a type, of which values are made.
func (w *walker) typeName(n *pg_query.TypeName) {
	for _, t := range w.types(n) {
		at := Table{Schema: t.Schema, Name: t.Name}
		w.found(w.functions.Types[at], w.protected.Types[at], "type "+t.Name)
	}
}

// types returns the types to which a name may refer.
func (w *walker) types(n *pg_query.TypeName) (all []catalog.Type) {
	if w.question.options.Catalog == nil {
		return nil
	}
	schema, name := pgparse.Name(n.GetNames())
	for _, t := range w.question.options.Catalog.Types[name] {
		if w.inPath(schema, t.Schema) {
			all = append(all, t)
		}
	}
	return all
}

// cast handles an explicit cast.
func (w *walker) cast(to []*pg_query.Node, value *pg_query.Node) {
	if w.question.options.Catalog == nil || value.GetAConst() != nil && value.GetAConst().GetSval() != nil {
		return
	}
	_, name := pgparse.Name(to)
	for _, c := range w.question.options.Catalog.Catalog.Casts {
		if c.To.Name == strings.TrimLeft(name, "_") && (c.From.Schema == "pg_catalog" || w.values.Has(c.From)) {
			w.found(w.functions.Has(c.Function), w.protected.Has(c.Function), "cast to "+name)
		}
	}
}

// casts handles those that do not appear in the text.
func (w *walker) casts(assigns bool) {
	if w.question.options.Catalog == nil {
		return
	}
	may := func(t Table) bool { return t.Schema == "pg_catalog" || w.values.Has(t) }
	for _, c := range w.question.options.Catalog.Catalog.Casts {
		if (c.Context == "i" || c.Context == "a" && assigns) && may(c.From) && may(c.To) {
			w.found(w.functions.Has(c.Function), w.protected.Has(c.Function), "cast from "+c.From.Name+" to "+c.To.Name)
		}
	}
}

// attribute handles x.name, which may be the call name(x).
func (w *walker) attribute(name string, row bool) {
	x := w.question.options.Catalog
	if x == nil || name == "" {
		return
	}
	for _, f := range x.Functions[name] {
		if f.OfOne && (f.OfRow || !row) && w.inPath("", f.Schema) {
			w.found(w.functions.Functions[f], w.protected.Functions[f], "function "+name)
		}
	}
}
