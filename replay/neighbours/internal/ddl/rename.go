package ddl

import (
	"errors"
	"fmt"
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

// Names holds the names of the source that move to another schema. Relations are tables, views, indexes and sequences, and
// the row types of tables.
type Names struct {
	relations map[ident.Table]string // the names in that schema
	Functions map[ident.Table]string
}

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

// Rename returns a statement in which every qualified name in n has another schema. It works on the syntax tree of the text
// that the server prints with an empty search_path, where each name outside pg_catalog is qualified. Anything that is not a
// name to the parser, such as a string, stays, except strings cast to regclass. defined is the keyword before the name that
// the statement defines, if the tree has no location for it ("FUNCTION"); "" = none. Syntax that the parser does not
// support yet (NOT ENFORCED, JSON_TABLE) is renamed by its tokens.
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

// end returns the end offset of the token that starts at an offset.
func (r *renamer) end(at int32) int {
	for _, token := range r.tokens {
		if token.GetStart() == at {
			return int(token.GetEnd())
		}
	}
	return int(at)
}

func (r *renamer) visit(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		for _, item := range n.GetFromClause() {
			r.from(item)
		}
	case *pg_query.RangeVar:
		r.token(n.GetLocation(), ident.Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}, r.names.relations)
	case *pg_query.TypeName:
		if t, ok := qualified(n.GetNames()); ok {
			r.token(n.GetLocation(), t, r.names.relations)
		}
	case *pg_query.FuncCall:
		if t, ok := qualified(n.GetFuncname()); ok {
			r.token(n.GetLocation(), t, r.names.Functions)
		}
	case *pg_query.CreateFunctionStmt:
		if t, ok := qualified(n.GetFuncname()); ok && r.names.Functions[t] != t.Name {
			r.arguments(n, t)
		}
	case *pg_query.ColumnRef:
		t, ok := qualified(n.GetFields()[:min(2, len(n.GetFields()))])
		switch {
		case ok && len(n.GetFields()) == 3:
			r.token(n.GetLocation(), t, r.names.relations)
		case ok && len(n.GetFields()) == 2 && r.argument[t] != "":
			r.splices = append(r.splices, splice{int(n.GetLocation()), r.end(n.GetLocation()), ident.Quote(r.argument[t])})
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

// token replaces the schema at the token at an offset, where the qualified name t begins, if known contains t, and replaces
// its name by the new one.
func (r *renamer) token(at int32, t ident.Table, known map[ident.Table]string) {
	name, ok := known[t]
	if !ok {
		return
	}
	for i, token := range r.tokens {
		if token.GetStart() != at {
			continue
		}
		r.splices = append(r.splices, splice{int(at), int(token.GetEnd()), r.schema})
		if name == t.Name || i+2 >= len(r.tokens) {
			return
		}
		text := ident.Quote(name)
		if r.bare[at] {
			text += " AS " + ident.Quote(t.Name)
		}
		r.splices = append(r.splices, splice{int(r.tokens[i+2].GetStart()), int(r.tokens[i+2].GetEnd()), text})
		return
	}
}

// regclass renames 'schema.name'::regclass, the argument of nextval.
func (r *renamer) regclass(n *pg_query.TypeCast) {
	names := n.GetTypeName().GetNames()
	text := n.GetArg().GetAConst()
	if len(names) == 0 || names[len(names)-1].GetString_().GetSval() != "regclass" || text.GetSval() == nil {
		return
	}
	t, ok := splitQualified(text.GetSval().GetSval())
	name, known := r.names.relations[t]
	if !ok || !known {
		return
	}
	for _, token := range r.tokens {
		if token.GetStart() == text.GetLocation() {
			r.splices = append(r.splices, splice{int(token.GetStart()), int(token.GetEnd()), ident.Literal(r.schema + "." + ident.Quote(name))})
			return
		}
	}
}

// lexical renames every known schema.name, schema.name( and 'schema.name'::regclass. An alias equal to the schema's name
// before a column equal to a table's name would be mistaken for one; the server prints no such alias for a table of another
// name.
func (r *renamer) lexical() {
	text := func(i int) string {
		if i < 0 || i >= len(r.tokens) {
			return ""
		}
		return r.sql[r.tokens[i].GetStart():r.tokens[i].GetEnd()]
	}
	for i := range r.tokens {
		switch {
		case text(i+1) == "." && text(i-1) != ".":
			t, ok := splitQualified(text(i) + "." + text(i+2))
			if text(i+3) == "(" {
				r.token(r.tokens[i].GetStart(), t, r.names.Functions)
			}
			if ok {
				r.token(r.tokens[i].GetStart(), t, r.names.relations)
			}
		case text(i+1) == "::" && text(i+2) == "regclass" && strings.HasPrefix(text(i), "'"):
			value := strings.ReplaceAll(strings.Trim(text(i), "'"), "''", "'")
			t, ok := splitQualified(value)
			if name, known := r.names.relations[t]; ok && known {
				r.splices = append(r.splices, splice{int(r.tokens[i].GetStart()), int(r.tokens[i].GetEnd()), ident.Literal(r.schema + "." + ident.Quote(name))})
			}
		}
	}
}

// definition renames the qualified names after a keyword of the statement, if they belong to the copies.
func (r *renamer) definition(keyword string) {
	text := func(i int) string { return r.sql[r.tokens[i].GetStart():r.tokens[i].GetEnd()] }
	for i := range max(0, len(r.tokens)-3) {
		if !strings.EqualFold(text(i), keyword) || text(i+2) != "." {
			continue
		}
		t, ok := splitQualified(text(i+1) + "." + text(i+3))
		if !ok {
			continue
		}
		known := r.names.relations
		switch keyword {
		case "STATISTICS":
			known = map[ident.Table]string{t: t.Name}
		case "FUNCTION":
			known = r.names.Functions
		}
		r.token(r.tokens[i+1].GetStart(), t, known)
	}
}

// splitQualified parses "schema.name" with its quotes, as regclass prints it.
func splitQualified(text string) (ident.Table, bool) {
	var parts []string
	for rest := text; ; {
		var part strings.Builder
		if strings.HasPrefix(rest, `"`) {
			i := 1
			for i < len(rest) && (rest[i] != '"' || i+1 < len(rest) && rest[i+1] == '"') {
				if rest[i] == '"' {
					i++
				}
				part.WriteByte(rest[i])
				i++
			}
			if i >= len(rest) {
				return ident.Table{}, false
			}
			rest = rest[i+1:]
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			part.WriteString(rest[:i])
			rest = rest[i:]
		}
		parts = append(parts, part.String())
		if rest == "" {
			break
		}
		rest = rest[1:]
	}
	if len(parts) != 2 {
		return ident.Table{}, false
	}
	return ident.Table{Schema: parts[0], Name: parts[1]}, true
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
