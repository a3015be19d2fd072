package ddl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Names holds the names of the source that move to another schema. Relations are tables, views, indexes and sequences,
// and the row types of tables.
type Names struct {
	relations map[ident.Table]string // the names in that schema
	Functions map[ident.Table]string
}

// NewNames returns the names of the relations of a model; functions are added by the caller.
func NewNames(m *source.Model) *Names {
	n := &Names{map[ident.Table]string{}, map[ident.Table]string{}}
	for _, r := range m.Relations {
		for _, i := range r.Indexes {
			n.relations[ident.Table{Schema: r.Schema, Name: i.Name}] = i.Name
		}
	}
	for _, s := range m.Sequences {
		n.relations[s.Table] = s.Copy
	}
	for _, r := range m.Relations {
		n.relations[r.Table] = r.Copy
	}
	return n
}

// splice replaces the text from start to end, in byte offsets.
type splice struct {
	start, end int
	text       string
}

// Rename returns a statement in which every qualified name in n has another schema. It works on the syntax tree of the
// text that the server prints with an empty search_path, where each name outside pg_catalog is qualified. Anything that
// is not a name to the parser, such as a string, stays, except strings cast to regclass. defined is the keyword before
// the name that the statement defines, if the tree has no location for it ("FUNCTION"); "" = none. Syntax that the
// parser does not support yet (NOT ENFORCED, JSON_TABLE) is renamed by its tokens.
func (n *Names) Rename(sql, schema, defined string) (string, error) {
	tokens, err := pgparse.Scan(sql)
	if err != nil {
		return "", fmt.Errorf("a definition of the source does not scan: %w", err)
	}
	r := &renamer{names: n, sql: sql, schema: ident.Quote(schema), tokens: tokens, bare: map[int32]bool{}}
	if tree, err := pgparse.Parse(sql); err == nil {
		r.visit(tree.ProtoReflect())
	} else {
		r.lexical()
	}
	if defined != "" {
		r.definition(defined)
	}
	slices.SortFunc(r.splices, func(a, b splice) int { return a.start - b.start })
	var out strings.Builder
	from := 0
	for _, s := range r.splices {
		if s.start < from {
			continue // one name, found at two nodes
		}
		out.WriteString(sql[from:s.start])
		out.WriteString(s.text)
		from = s.end
	}
	out.WriteString(sql[from:])
	return out.String(), nil
}

type renamer struct {
	names   *Names
	sql     string
	schema  string // quoted
	tokens  []*pg_query.ScanToken
	splices []splice
	bare    map[int32]bool // locations of relations in FROM clauses without an alias
	// argument holds, for function.argument as the server prints arguments in bodies, the new name of the function.
	argument map[ident.Table]string
}

// arguments records the argument names of a function that gets another name.
func (r *renamer) arguments(n *pg_query.CreateFunctionStmt, function ident.Table) {
	r.argument = map[ident.Table]string{}
	for _, p := range n.GetParameters() {
		if name := p.GetFunctionParameter().GetName(); name != "" {
			r.argument[ident.Table{Schema: function.Name, Name: name}] = r.names.Functions[function]
		}
	}
}

// index returns the index of the token that starts at an offset, or -1.
func (r *renamer) index(at int32) int {
	return slices.IndexFunc(r.tokens, func(t *pg_query.ScanToken) bool { return t.GetStart() == at })
}

// text returns the text of token i; "" = there is no such token.
func (r *renamer) text(i int) string {
	if i < 0 || i >= len(r.tokens) {
		return ""
	}
	return r.sql[r.tokens[i].GetStart():r.tokens[i].GetEnd()]
}

// replace replaces token i.
func (r *renamer) replace(i int, text string) {
	if i >= 0 && i < len(r.tokens) {
		r.splices = append(r.splices, splice{int(r.tokens[i].GetStart()), int(r.tokens[i].GetEnd()), text})
	}
}

// replaceLiteral replaces token i, a string that is cast to regclass, if it names a relation.
func (r *renamer) replaceLiteral(i int, value string) {
	t, ok := splitQualified(value)
	if name, known := r.names.relations[t]; ok && known {
		r.replace(i, ident.Literal(r.schema+"."+ident.Quote(name)))
	}
}

func (r *renamer) visit(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		for _, item := range n.GetFromClause() {
			r.from(item)
		}
	case *pg_query.RangeVar:
		r.rename(r.index(n.GetLocation()), ident.Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}, r.names.relations)
	case *pg_query.TypeName:
		if t, ok := qualified(n.GetNames()); ok {
			r.rename(r.index(n.GetLocation()), t, r.names.relations)
		}
	case *pg_query.FuncCall:
		if t, ok := qualified(n.GetFuncname()); ok {
			r.rename(r.index(n.GetLocation()), t, r.names.Functions)
		}
	case *pg_query.CreateFunctionStmt:
		if t, ok := qualified(n.GetFuncname()); ok && r.names.Functions[t] != t.Name {
			r.arguments(n, t)
		}
	case *pg_query.ColumnRef:
		t, ok := qualified(n.GetFields()[:min(2, len(n.GetFields()))])
		switch {
		case ok && len(n.GetFields()) == 3:
			r.rename(r.index(n.GetLocation()), t, r.names.relations)
		case ok && len(n.GetFields()) == 2 && r.argument[t] != "":
			r.replace(r.index(n.GetLocation()), ident.Quote(r.argument[t]))
		}
	case *pg_query.TypeCast:
		r.regclass(n)
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for list, i := v.List(), 0; i < list.Len(); i++ {
				r.visit(list.Get(i).Message())
			}
		default:
			r.visit(v.Message())
		}
		return true
	})
}

// qualified reads schema.name from a list of String nodes.
func qualified(nodes []*pg_query.Node) (ident.Table, bool) {
	if len(nodes) != 2 || nodes[0].GetString_() == nil || nodes[1].GetString_() == nil {
		return ident.Table{}, false
	}
	return ident.Table{Schema: nodes[0].GetString_().GetSval(), Name: nodes[1].GetString_().GetSval()}, true
}

// from finds the relations in a FROM clause without an alias: columns are qualified by the name of such a relation.
func (r *renamer) from(item *pg_query.Node) {
	if join := item.GetJoinExpr(); join != nil {
		r.from(join.GetLarg())
		r.from(join.GetRarg())
	}
	if v := item.GetRangeVar(); v != nil && v.GetAlias() == nil {
		r.bare[v.GetLocation()] = true
	}
}

// rename replaces the schema at token i, where the qualified name t begins, if known contains t, and replaces its name
// by the new one.
func (r *renamer) rename(i int, t ident.Table, known map[ident.Table]string) {
	name, ok := known[t]
	if !ok || i < 0 {
		return
	}
	r.replace(i, r.schema)
	if name == t.Name {
		return
	}
	text := ident.Quote(name)
	if r.bare[r.tokens[i].GetStart()] {
		text += " AS " + ident.Quote(t.Name)
	}
	r.replace(i+2, text)
}

// regclass renames 'schema.name'::regclass, the argument of nextval.
func (r *renamer) regclass(n *pg_query.TypeCast) {
	names := n.GetTypeName().GetNames()
	text := n.GetArg().GetAConst()
	if len(names) > 0 && names[len(names)-1].GetString_().GetSval() == "regclass" && text.GetSval() != nil {
		r.replaceLiteral(r.index(text.GetLocation()), text.GetSval().GetSval())
	}
}

// lexical renames every known schema.name, schema.name( and 'schema.name'::regclass. An alias equal to the schema's
// name before a column equal to a table's name would be mistaken for one; the server prints no such alias for a table
// of another name.
func (r *renamer) lexical() {
	for i := range r.tokens {
		switch {
		case r.text(i+1) == "." && r.text(i-1) != ".":
			t, ok := splitQualified(r.text(i) + "." + r.text(i+2))
			if r.text(i+3) == "(" {
				r.rename(i, t, r.names.Functions)
			}
			if ok {
				r.rename(i, t, r.names.relations)
			}
		case r.text(i+1) == "::" && r.text(i+2) == "regclass" && strings.HasPrefix(r.text(i), "'"):
			r.replaceLiteral(i, strings.ReplaceAll(strings.Trim(r.text(i), "'"), "''", "'"))
		}
	}
}

// definition renames the qualified names after a keyword of the statement, if they belong to the copies.
func (r *renamer) definition(keyword string) {
	for i := range max(0, len(r.tokens)-3) {
		t, ok := splitQualified(r.text(i+1) + "." + r.text(i+3))
		if !ok || !strings.EqualFold(r.text(i), keyword) || r.text(i+2) != "." {
			continue
		}
		known := r.names.relations
		switch keyword {
		case "STATISTICS":
			known = map[ident.Table]string{t: t.Name}
		case "FUNCTION":
			known = r.names.Functions
		}
		r.rename(i+1, t, known)
	}
}

var qualifiedName = regexp.MustCompile(`^("(?:[^"]|"")*"|[^".]*)\.("(?:[^"]|"")*"|[^".]*)$`)

// splitQualified parses "schema.name" with its quotes, as regclass prints it.
func splitQualified(text string) (ident.Table, bool) {
	parts := qualifiedName.FindStringSubmatch(text)
	if parts == nil {
		return ident.Table{}, false
	}
	for i, part := range parts {
		if strings.HasPrefix(part, `"`) {
			parts[i] = strings.ReplaceAll(part[1:len(part)-1], `""`, `"`)
		}
	}
	return ident.Table{Schema: parts[1], Name: parts[2]}, true
}

// RenameBody returns the body of an SQL function in which the tables of the source are in schema; a body that
// Options.RenameBody rejects cannot be copied. reads is false for a body that reads no copied table.
func RenameBody(f source.Function, m *source.Model, o *spec.Options, schema string) (renamed string, reads bool, err error) {
	if o.RenameBody == nil {
		return "", false, errors.New("bodies of functions are not read")
	}
	scope := body.Scope{SearchPath: o.SearchPath, Arguments: f.Arguments}
	if f.Path != "" {
		scope.SearchPath = nil
		for s := range strings.SplitSeq(f.Path, ",") {
			scope.SearchPath = append(scope.SearchPath, strings.Trim(strings.TrimSpace(s), `"`))
		}
	}
	for _, r := range m.Relations {
		if r.Copy != r.Name { // a body keeps the names of tables: a body that reads this one is rejected
			scope.Others = append(scope.Others, r.Table)
			continue
		}
		scope.Moved = append(scope.Moved, r.Table)
	}
	for _, t := range o.Public {
		if m.Named(t) == nil {
			scope.Public = append(scope.Public, t)
		}
	}
	return o.RenameBody(f.Body, schema, scope)
}
