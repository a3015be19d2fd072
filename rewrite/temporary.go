package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// maxInlined bounds the temporary views that a statement reads, directly or through each other.
const maxInlined = 32

// Inline returns the query with its temporary views as subqueries, since a replay does not see them. The names in a
// view have the meaning that they had when it was created. Temps keeps the temporary relations that cannot be
// replaced: such a query is refused.
func (r *Rewriter) Inline(q capture.Query) capture.Query {
	if len(q.Temps) == 0 {
		return q
	}
	sql, doubt, kept := q.SQL, q.Doubt, map[string]bool{}
	for range maxInlined {
		stmt, tokens, ok := r.read(sql)
		if !ok {
			return q
		}
		if !runs(stmt) {
			q.Temps = nil
			return q
		}
		clear(kept)
		replaced := false
		for _, d := range q.Temps {
			u := viewUses{name: d.Name, other: stmt.GetDoStmt() != nil}
			u.visit(stmt.ProtoReflect(), nil)
			switch text, ok := "", len(u.found) > 0 && !replaced; {
			case ok:
				if text, ok = r.inlined(q, d, sql, stmt, tokens, u.found); ok {
					sql, doubt, replaced = text, doubt.Add(d.Doubt), true
				}
				kept[d.Name] = true
			case u.other || len(u.found) > 0:
				kept[d.Name] = true
			}
		}
		if !replaced {
			break
		}
	}
	if sql != q.SQL {
		q.SQL, q.Doubt = sql, doubt
	}
	inlined := func(name string) bool {
		return !kept[name] && slices.ContainsFunc(q.Temps, func(d capture.Temp) bool { return d.Name == name })
	}
	q.Temporary = slices.DeleteFunc(slices.Clone(q.Temporary), inlined)
	q.Temps = slices.DeleteFunc(slices.Clone(q.Temps), func(d capture.Temp) bool { return !kept[d.Name] })
	return q
}

// runs reports whether a statement runs what the relations that it names define, rather than changing the definition.
func runs(n *pg_query.Node) bool {
	switch n.GetNode().(type) {
	case *pg_query.Node_SelectStmt, *pg_query.Node_InsertStmt, *pg_query.Node_UpdateStmt, *pg_query.Node_DeleteStmt,
		*pg_query.Node_MergeStmt, *pg_query.Node_CopyStmt, *pg_query.Node_ExplainStmt, *pg_query.Node_DeclareCursorStmt,
		*pg_query.Node_CreateTableAsStmt, *pg_query.Node_DoStmt, *pg_query.Node_CallStmt, *pg_query.Node_ExecuteStmt,
		*pg_query.Node_RefreshMatViewStmt:
		return true
	}
	return false
}

// inlined returns a statement with a temporary view as a subquery where found reads it; false = it cannot be replaced.
func (r *Rewriter) inlined(q capture.Query, d capture.Temp, sql string, stmt *pg_query.Node, tokens words, found []*pg_query.RangeVar) (string, bool) {
	subquery, ok := r.subquery(q, d, cteNames(stmt))
	if !ok {
		return "", false
	}
	slices.SortFunc(found, func(a, b *pg_query.RangeVar) int { return int(a.GetLocation() - b.GetLocation()) })
	var b strings.Builder
	from := 0
	for _, n := range found {
		at := tokens.at(n.GetLocation())
		end := tokens.afterName(at)
		if at < 0 || end > len(tokens) || n.GetCatalogname() != "" || at > 0 && tokens[at-1].GetToken() == pg_query.Token_ONLY {
			return "", false
		}
		start, before := int(tokens[at].GetStart()), ""
		if at > 0 && tokens[at-1].GetToken() == pg_query.Token_TABLE {
			start, before = int(tokens[at-1].GetStart()), "SELECT * FROM "
		}
		b.WriteString(sql[from:start] + before + "(" + subquery + ")")
		if n.GetAlias() == nil {
			b.WriteString(" AS " + ident.Quote(d.Name))
		}
		from = int(tokens[end-1].GetEnd())
	}
	b.WriteString(sql[from:])
	_, _, ok = r.read(b.String())
	return b.String(), ok
}

// read parses a text of one statement, within the limits; the tokens are without comments.
func (r *Rewriter) read(sql string) (*pg_query.Node, words, bool) {
	if r.guard(capture.Query{SQL: sql}) != nil {
		return nil, nil, false
	}
	tokens, err := pgparse.Scan(sql)
	if err != nil {
		return nil, nil, false
	}
	stmt, _, err := parseOne(sql, tokens)
	if err != nil {
		return nil, nil, false
	}
	return stmt.GetStmt(), wordsOf(tokens), true
}

// viewUses finds where a statement reads a temporary view.
type viewUses struct {
	name  string
	found []*pg_query.RangeVar // in FROM
	other bool                 // it is named elsewhere, as what a statement writes, for example
}

// visit handles one message; ctes are in scope.
func (u *viewUses) visit(m protoreflect.Message, ctes *pgparse.CTEs) {
	if n, ok := m.Interface().(interface{ GetWithClause() *pg_query.WithClause }); ok {
		ctes = ctes.With(n.GetWithClause(), func(query *pg_query.Node, in *pgparse.CTEs) {
			u.visit(query.GetCommonTableExpr().ProtoReflect(), in)
		})
	}
	var from []*pg_query.Node
	skip := []protoreflect.Name{"with_clause"}
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		u.other = u.other || u.isView(n, ctes)
	case *pg_query.TypeName:
		schema, name := pgparse.Name(n.GetNames())
		u.other = u.other || name == u.name && (schema == "" || resolve.IsTempSchema(schema))
	case *pg_query.LockingClause: // it names what is in FROM
		return
	case *pg_query.SelectStmt:
		from, skip = n.GetFromClause(), append(skip, "from_clause")
	case *pg_query.UpdateStmt:
		from, skip = n.GetFromClause(), append(skip, "from_clause")
	case *pg_query.DeleteStmt:
		from, skip = n.GetUsingClause(), append(skip, "using_clause")
	case *pg_query.MergeStmt:
		from, skip = []*pg_query.Node{n.GetSourceRelation()}, append(skip, "source_relation")
	case *pg_query.JoinExpr:
		from, skip = []*pg_query.Node{n.GetLarg(), n.GetRarg()}, append(skip, "larg", "rarg")
	}
	for _, n := range from {
		switch v := n.GetRangeVar(); {
		case v != nil && u.isView(v, ctes):
			u.found = append(u.found, v)
		case v == nil && n != nil:
			u.visit(n.ProtoReflect(), ctes)
		}
	}
	pgparse.Children(m, func(c protoreflect.Message) { u.visit(c, ctes) }, skip...)
}

func (u *viewUses) isView(n *pg_query.RangeVar, ctes *pgparse.CTEs) bool {
	return n.GetRelname() == u.name && (resolve.IsTempSchema(n.GetSchemaname()) || n.GetSchemaname() == "" && !ctes.Has(u.name))
}

// cteNames returns the names of the WITH queries anywhere in a statement.
func cteNames(stmt *pg_query.Node) (names []string) {
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		if n, ok := m.(*pg_query.CommonTableExpr); ok {
			names = append(names, n.GetCtename())
		}
		return true
	})
	return names
}

// subquery returns the query of a temporary view, with the names of its columns and without comments, which would claim.
// hidden are names that would refer to something else in the statement.
func (r *Rewriter) subquery(q capture.Query, d capture.Temp, hidden []string) (string, bool) {
	stmt, tokens, ok := r.read(d.View)
	view := stmt.GetViewStmt()
	if !ok || view == nil {
		return "", false
	}
	start, end := tokens.after(0, pg_query.Token_AS), len(tokens)
	if view.GetWithCheckOption() > pg_query.ViewCheckOption_NO_CHECK_OPTION {
		for end--; end > start && tokens[end].GetToken() != pg_query.Token_WITH; end-- {
		}
	}
	if start < 0 || start >= end {
		return "", false
	}
	qualify := map[int32]string{}
	hides := func(n *pg_query.RangeVar) bool {
		return n.GetSchemaname() == "" && slices.Contains(hidden, n.GetRelname())
	}
	if !sameNames(q.Settings, d.Settings) || anyRelation(view.GetQuery(), hides) {
		then := q
		then.Settings, then.Doubt = r.source.Settings(q.User, d.Settings), d.Doubt
		if qualify, ok = r.qualified(then, view.GetQuery()); !ok {
			return "", false
		}
		if anyRelation(view.GetQuery(), func(n *pg_query.RangeVar) bool { return hides(n) && qualify[n.GetLocation()] == "" }) {
			return "", false
		}
	}
	var b strings.Builder
	for i := start; i < end; i++ {
		if i > start && tokens[i-1].GetEnd() < tokens[i].GetStart() {
			b.WriteByte(' ')
		}
		b.WriteString(qualify[tokens[i].GetStart()])
		b.WriteString(pgparse.TokenText(d.View, tokens[i]))
	}
	text, name, columns := b.String(), ident.Quote(d.Name), pgparse.Strings(view.GetAliases())
	switch {
	case slices.ContainsFunc(tokens[:start], func(t *pg_query.ScanToken) bool { return t.GetToken() == pg_query.Token_RECURSIVE }):
		text = "WITH RECURSIVE " + name + " (" + ident.List(columns) + ") AS (" + text + ") SELECT * FROM " + name
	case len(columns) > 0:
		text = "SELECT * FROM (" + text + ") AS " + name + " (" + ident.List(columns) + ")"
	}
	return text, true
}

// anyRelation reports whether a relation in a query fulfils a condition.
func anyRelation(query *pg_query.Node, is func(*pg_query.RangeVar) bool) (found bool) {
	pgparse.Inspect(query.ProtoReflect(), func(m proto.Message) bool {
		n, ok := m.(*pg_query.RangeVar)
		found = found || ok && is(n)
		return true
	})
	return found
}

// nameSettings are the settings on which the meaning of names depends.
var nameSettings = []string{"search_path", "role", "session_authorization"}

// sameNames reports whether names mean the same with the settings of a query and with those of a definition.
func sameNames(query, definition map[string]string) bool {
	return !slices.ContainsFunc(nameSettings, func(name string) bool {
		a, set := query[name]
		b, was := definition[name]
		return a != b || set != was
	})
}

// qualified returns, by their offsets, the schemas to be written before the names of a query that was parsed under other
// settings; false if they are not known.
func (r *Rewriter) qualified(q capture.Query, query *pg_query.Node) (map[int32]string, bool) {
	if r.source == nil {
		return nil, false
	}
	path := resolve.PathOf(q, r.options.SearchPath).Seen(r.source)
	x := qualifier{r: r, path: path.Known(), temporary: q.Temporary, schemas: map[int32]string{}, ok: !path.Uncertain}
	x.visit(query.ProtoReflect(), nil)
	return x.schemas, x.ok
}

// qualifier finds the schemas of names.
type qualifier struct {
	r         *Rewriter
	path      []string
	temporary []string // relations without a schema
	schemas   map[int32]string
	ok        bool
}

func (x *qualifier) visit(m protoreflect.Message, ctes *pgparse.CTEs) {
	if n, ok := m.Interface().(interface{ GetWithClause() *pg_query.WithClause }); ok {
		ctes = ctes.With(n.GetWithClause(), func(query *pg_query.Node, in *pgparse.CTEs) {
			x.visit(query.GetCommonTableExpr().ProtoReflect(), in)
		})
	}
	source := x.r.source
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		if n.GetSchemaname() == "" && !ctes.Has(n.GetRelname()) && !slices.Contains(x.temporary, n.GetRelname()) {
			x.in(n.GetLocation(), func(schema string) bool { return source.Relations[Table{Schema: schema, Name: n.GetRelname()}] != nil })
		}
	case *pg_query.FuncCall:
		if schema, name := pgparse.Name(n.GetFuncname()); schema == "" && len(source.Functions[name]) > 0 {
			x.ok = x.ok && len(source.Find("", name, x.path)) == 1
			x.in(n.GetLocation(), func(schema string) bool { return len(source.Find(schema, name, nil)) > 0 })
		}
	case *pg_query.TypeName:
		schema, name := pgparse.Name(n.GetNames())
		x.ok = x.ok && (schema != "" || source.TypeIn(strings.TrimLeft(name, "_"), source.Catalog.Schemas) == "")
	case *pg_query.A_Expr:
		schema, name := pgparse.Name(n.GetName())
		x.ok = x.ok && (schema != "" || len(source.Operators[name]) == 0)
	}
	pgparse.Children(m, func(c protoreflect.Message) { x.visit(c, ctes) }, "with_clause")
}

// in writes the first schema of the path that fulfils a condition before the name at an offset.
func (x *qualifier) in(offset int32, has func(schema string) bool) {
	i := slices.IndexFunc(x.path, has)
	if i < 0 {
		x.ok = false
		return
	}
	x.schemas[offset] = ident.Quote(x.path[i]) + "."
}
