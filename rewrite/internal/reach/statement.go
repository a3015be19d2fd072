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

// run handles one statement: what it executes, which for many is nothing.
func (w *walker) run(n *pg_query.Node) {
	before := w.values
	defer func() { w.values = before }()
	w.values = resolve.NewValues(n.ProtoReflect(), w.statement.Query.Params, w.question.options.Catalog)
	w.ddl(n)
	switch {
	case n.GetSelectStmt() != nil:
		w.expression(n)
		w.casts(false)
	case n.GetInsertStmt() != nil, n.GetUpdateStmt() != nil, n.GetDeleteStmt() != nil, n.GetMergeStmt() != nil:
		w.expression(n)
		w.casts(true)
	case n.GetExplainStmt() != nil:
		if pgparse.IsAnalyze(n.GetExplainStmt()) {
			w.run(n.GetExplainStmt().GetQuery())
		} else {
			w.plan(n.GetExplainStmt().GetQuery())
		}
	case n.GetPrepareStmt() != nil:
		w.plan(n.GetPrepareStmt().GetQuery())
	case n.GetDeclareCursorStmt() != nil:
		w.run(n.GetDeclareCursorStmt().GetQuery())
	case n.GetCreateTableAsStmt() != nil:
		if !n.GetCreateTableAsStmt().GetInto().GetSkipData() {
			w.run(n.GetCreateTableAsStmt().GetQuery())
		}
	case n.GetCallStmt() != nil:
		w.message(n.GetCallStmt().GetFunccall().ProtoReflect())
		w.casts(true)
	case n.GetExecuteStmt() != nil:
		w.expressions(n.GetExecuteStmt().GetParams())
	case n.GetDoStmt() != nil:
		w.do(n.GetDoStmt())
	case n.GetCopyStmt() != nil:
		w.copy(n.GetCopyStmt())
	case n.GetTruncateStmt() != nil:
		w.message(n.GetTruncateStmt().ProtoReflect())
	case n.GetRefreshMatViewStmt() != nil:
		w.refresh(n.GetRefreshMatViewStmt())
	default:
		w.define(n)
	}
}

// plan handles a statement that the server plans and does not execute.
func (w *walker) plan(n *pg_query.Node) {
	functions, protected := w.functions, w.protected
	w.functions, w.protected = w.question.planned, w.question.planned
	w.run(n)
	w.functions, w.protected = functions, protected
}

// beside handles what a statement with a query runs beside that query.
func (w *walker) beside(n *pg_query.Node) {
	w.values = resolve.NewValues(n.ProtoReflect(), w.statement.Query.Params, w.question.options.Catalog)
	w.ddl(n)
	switch insert := n.GetInsertStmt(); {
	case n.GetExplainStmt() != nil:
		w.beside(n.GetExplainStmt().GetQuery())
	case n.GetCopyStmt() != nil:
		w.beside(n.GetCopyStmt().GetQuery())
	case n.GetRefreshMatViewStmt() != nil:
		w.change(nil, n.GetRefreshMatViewStmt().GetRelation(), catalog.Analyze)
	case insert != nil:
		for r, events := range body.Targets(insert.ProtoReflect()) {
			w.change(insert, r, events)
		}
		w.expressions(insert.GetReturningList())
		w.message(insert.GetOnConflictClause().ProtoReflect())
		w.casts(true)
	}
}

// message visits a part of a statement.
func (w *walker) message(m protoreflect.Message) {
	if m.IsValid() {
		w.visit(m, nil)
	}
}

func (w *walker) expression(n *pg_query.Node) { w.message(n.ProtoReflect()) }

func (w *walker) expressions(nodes []*pg_query.Node) {
	for _, n := range nodes {
		w.expression(n)
	}
}

// do handles the body of a DO block.
func (w *walker) do(n *pg_query.DoStmt) {
	const through = "the body of DO"
	language, text := "plpgsql", ""
	for _, arg := range n.GetArgs() {
		switch d := arg.GetDefElem(); d.GetDefname() {
		case "language":
			language = d.GetArg().GetString_().GetSval()
		case "as":
			text = d.GetArg().GetString_().GetSval()
			for _, part := range d.GetArg().GetList().GetItems() {
				text += part.GetString_().GetSval()
			}
		}
	}
	statements, fault := body.Statements(w.question.options.Limits, language, text)
	if fault != "" || w.depth >= maxDepth {
		w.words(text, through)
		return
	}
	dynamic := slices.ContainsFunc(statements, func(s body.Statement) bool { return s.Dynamic })
	var texts []string
	w.depth++
	for _, s := range statements {
		w.run(s.Node)
		if !dynamic {
			continue
		}
		constants := constantsIn(s.Node)
		if texts = append(texts, constants...); s.Dynamic && len(constants) == 0 {
			w.found(true, true, "a text that DO executes, which is not known")
		}
	}
	w.text(texts, through, true)
	w.depth--
}

// constantsIn returns the strings in a statement.
func constantsIn(n *pg_query.Node) (all []string) {
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		if c, ok := m.(*pg_query.A_Const); ok && c.GetSval() != nil {
			all = append(all, c.GetSval().GetSval())
		}
		return true
	})
	return all
}

func (w *walker) copy(n *pg_query.CopyStmt) {
	switch {
	case n.GetQuery() != nil:
		w.run(n.GetQuery())
	case n.GetIsFrom():
		w.change(n, n.GetRelation(), catalog.Insert)
		w.expression(n.GetWhereClause())
		w.casts(true)
	case n.GetRelation() != nil:
		w.relation(n.GetRelation())
	}
}

// refresh handles what the definition of a materialized view uses.
func (w *walker) refresh(n *pg_query.RefreshMatViewStmt) {
	if n.GetSkipData() || w.question.options.Catalog == nil {
		return
	}
	through := "the definition of " + n.GetRelation().GetRelname()
	for _, t := range w.relations(n.GetRelation()) {
		r := w.question.options.Catalog.Relations[t]
		if r == nil {
			continue
		}
		e := catalog.Effect{Calls: r.Calls, Reads: r.Reads}
		if slices.ContainsFunc(bodyWords(strings.ToLower(r.Definition)), Executes) {
			e.Text = r.Definition
		}
		w.found(w.functions.effect(&e), w.protected.effect(&e), through)
	}
	w.change(nil, n.GetRelation(), catalog.Analyze)
}

// applies reports whether a statement on a relation has an effect.
func applies(e *catalog.Effect, m proto.Message, events catalog.Event) bool {
	if e.Column == "" {
		return e.Events&events != 0
	}
	byDefault := e.Events&catalog.Insert != 0
	switch n := m.(type) {
	case *pg_query.InsertStmt:
		set, toDefault := sets(n.GetOnConflictClause().GetTargetList(), e.Column)
		if byDefault {
			return toDefault || !gives(n, e)
		}
		return set
	case *pg_query.UpdateStmt:
		set, toDefault := sets(n.GetTargetList(), e.Column)
		return toDefault || set && !byDefault
	case *pg_query.CopyStmt:
		names := pgparse.Strings(n.GetAttlist())
		return byDefault && len(names) > 0 && !slices.Contains(names, e.Column)
	}
	return e.Events&events != 0
}

// sets reports whether a SET clause sets a column, and whether to its default.
func sets(targets []*pg_query.Node, column string) (set, toDefault bool) {
	for _, t := range targets {
		if t.GetResTarget().GetName() == column {
			value := t.GetResTarget().GetVal()
			set, toDefault = true, toDefault || value.GetSetToDefault() != nil || value.GetMultiAssignRef() != nil && holdsDefault(value)
		}
	}
	return set, toDefault
}

// holdsDefault reports whether (a, b) = (...) has a DEFAULT.
func holdsDefault(n *pg_query.Node) bool {
	return slices.ContainsFunc(n.GetMultiAssignRef().GetSource().GetRowExpr().GetArgs(), func(v *pg_query.Node) bool { return v.GetSetToDefault() != nil })
}

// gives reports whether an INSERT gives the column of an effect a value in each row.
func gives(n *pg_query.InsertStmt, e *catalog.Effect) bool {
	at := e.Place - 1
	if len(n.GetCols()) > 0 {
		at = slices.IndexFunc(n.GetCols(), func(c *pg_query.Node) bool { return c.GetResTarget().GetName() == e.Column })
	}
	query := pgparse.Leftmost(n.GetSelectStmt().GetSelectStmt())
	if at < 0 || query == nil {
		return false
	}
	if rows := query.GetValuesLists(); len(rows) > 0 {
		return !slices.ContainsFunc(rows, func(row *pg_query.Node) bool {
			values := row.GetList().GetItems()
			return at >= len(values) || values[at].GetSetToDefault() != nil
		})
	}
	return len(n.GetCols()) > 0 || at < len(query.GetTargetList())
}
