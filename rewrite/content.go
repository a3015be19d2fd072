package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// The values of Plan.Destination, besides those with the name of a relation.
const (
	intoTemporary = "into a temporary table"
	intoFile      = "into a file of the server"
	intoProgram   = "into a program of the server"
	byCursor      = "through a cursor"
	asRowCounts   = "as row counts (EXPLAIN ANALYZE)"
)

// content is the statement that another one runs: the query of CREATE TABLE AS, of INSERT, of EXPLAIN ANALYZE and so
// on.
type content struct {
	node  *pg_query.Node // with its offsets in the whole text
	spans []span         // its parts of the text, in order
	comma int            // the offset of a WITH that a comma replaces; -1 = none
	to    string         // where its rows go; "" = to the client
}

// span is a range of bytes.
type span struct{ from, to int }

// contentOf returns what a statement runs; nil if it is not one of those that run another. The error is a refusal.
func contentOf(n *pg_query.Node, sql string, tokens words, q capture.Query) (*content, error) {
	x := contentReader{sql: sql, tokens: tokens, temporary: q.Temporary}
	switch {
	case n.GetSelectStmt() != nil:
		return x.selectInto(n.GetSelectStmt())
	case n.GetCopyStmt().GetQuery() != nil && !n.GetCopyStmt().GetIsFrom():
		return x.copyTo(n.GetCopyStmt())
	case n.GetDeclareCursorStmt() != nil:
		return x.rest(n.GetDeclareCursorStmt().GetQuery(), x.tokens.after(0, pg_query.Token_FOR), byCursor)
	case n.GetExplainStmt() != nil && pgparse.IsAnalyze(n.GetExplainStmt()):
		return x.rest(n.GetExplainStmt().GetQuery(), x.explained(), asRowCounts)
	case n.GetCreateTableAsStmt() != nil:
		return x.createTableAs(n.GetCreateTableAsStmt(), q.Tag)
	case n.GetInsertStmt().GetSelectStmt() != nil:
		return x.insert(n.GetInsertStmt())
	}
	return nil, nil
}

// contentReader finds the text of a content.
type contentReader struct {
	sql       string
	tokens    words
	temporary []string // names of temporary relations
}

// rest returns the content that begins with a token and ends with the text.
func (x *contentReader) rest(n *pg_query.Node, token int, to string) (*content, error) {
	return x.between(n, token, len(x.sql), to)
}

// between returns the content that begins with a token and ends at an offset.
func (x *contentReader) between(n *pg_query.Node, token, end int, to string) (*content, error) {
	if token < 0 || token >= len(x.tokens) || int(x.tokens[token].GetStart()) > end {
		return nil, notFound()
	}
	return &content{node: n, spans: []span{{int(x.tokens[token].GetStart()), end}}, comma: -1, to: to}, nil
}

func notFound() error {
	return refuse(reasons.VerifyFailed, "the query inside the statement was not found in the text", reportBug)
}

// copyTo handles COPY (query) TO.
func (x *contentReader) copyTo(n *pg_query.CopyStmt) (*content, error) {
	open := x.tokens.find(0, pg_query.Token_ASCII_40)
	end := x.tokens.closing(open)
	if end < 0 {
		return nil, notFound()
	}
	to := ""
	switch {
	case n.GetIsProgram():
		to = intoProgram
	case n.GetFilename() != "":
		to = intoFile
	}
	return x.between(n.GetQuery(), open+1, int(x.tokens[end].GetStart()), to)
}

// explained returns the token with which the statement of an EXPLAIN with options begins.
func (x *contentReader) explained() int {
	i := 1
	if i < len(x.tokens) && x.tokens[i].GetToken() == pg_query.Token_ASCII_40 {
		return x.tokens.closing(i) + 1
	}
	for i < len(x.tokens) {
		switch x.tokens[i].GetToken() {
		case pg_query.Token_ANALYZE, pg_query.Token_ANALYSE, pg_query.Token_VERBOSE:
			i++
			continue
		}
		break
	}
	return i
}

// createTableAs handles CREATE TABLE AS and CREATE MATERIALIZED VIEW, which run nothing with NO DATA, or, with IF NOT
// EXISTS, if the relation exists: then the command tag is not that of a SELECT.
func (x *contentReader) createTableAs(n *pg_query.CreateTableAsStmt, tag string) (*content, error) {
	into := n.GetInto()
	if into.GetSkipData() || RanNothing(tag) {
		return nil, refuse(reasons.NotSelect, "the statement created a relation without rows, or none: it ran no query", "")
	}
	start, end := x.tokens.at(into.GetRel().GetLocation()), len(x.sql)
	if last := len(x.tokens) - 1; last > 0 && x.tokens[last].GetToken() == pg_query.Token_DATA_P && x.tokens[last-1].GetToken() == pg_query.Token_WITH {
		end = int(x.tokens[last-1].GetStart())
	}
	return x.between(n.GetQuery(), x.tokens.after(start, pg_query.Token_AS), end, x.into(into.GetRel(), n.GetObjtype()))
}

// RanNothing reports whether a command tag is that of a CREATE TABLE AS or CREATE MATERIALIZED VIEW that ran no query.
func RanNothing(tag string) bool {
	return tag == "CREATE TABLE AS" || tag == "CREATE MATERIALIZED VIEW"
}

// into returns the destination for a relation.
func (x *contentReader) into(r *pg_query.RangeVar, kind pg_query.ObjectType) string {
	name := Table{Schema: r.GetSchemaname(), Name: r.GetRelname()}
	if r.GetRelpersistence() == "t" || resolve.IsTempSchema(name.Schema) || name.Schema == "" && slices.Contains(x.temporary, name.Name) {
		return intoTemporary
	}
	if kind == pg_query.ObjectType_OBJECT_MATVIEW {
		return intoRelation("materialized view", name)
	}
	return intoRelation("table", name)
}

func intoRelation(kind string, t Table) string {
	return "into " + kind + " " + strings.TrimPrefix(t.String(), ".")
}

// selectInto handles SELECT INTO, whose clause is in the first SELECT of a set operation.
func (x *contentReader) selectInto(n *pg_query.SelectStmt) (*content, error) {
	if pgparse.Leftmost(n).GetIntoClause() == nil {
		return nil, nil
	}
	query := proto.Clone(n).(*pg_query.SelectStmt)
	leaf := pgparse.Leftmost(query)
	rel := leaf.GetIntoClause().GetRel()
	leaf.IntoClause = nil
	name := x.tokens.at(rel.GetLocation())
	from := name - 1
	for from >= 0 && x.tokens[from].GetToken() != pg_query.Token_INTO {
		from--
	}
	last := x.tokens.afterName(name) - 1
	if from < 0 || last < name {
		return nil, notFound()
	}
	return &content{
		node:  &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}},
		spans: []span{{0, int(x.tokens[from].GetStart())}, {int(x.tokens[last].GetEnd()), len(x.sql)}},
		comma: -1, to: x.into(rel, pg_query.ObjectType_OBJECT_TABLE),
	}, nil
}

// insert handles INSERT with a query. Its WITH clause becomes that of the query.
func (x *contentReader) insert(n *pg_query.InsertStmt) (*content, error) {
	if inner := queryBeside(n); inner != nil {
		refusal := refuse(reasons.Wrapper, "RETURNING or ON CONFLICT of an INSERT has a query of its own", "move that query into the SELECT")
		refusal.Node, refusal.Offset = "SubLink", int(inner.GetLocation())
		return nil, refusal
	}
	name := x.tokens.at(n.GetRelation().GetLocation())
	i := x.tokens.afterName(name)
	if n.GetRelation().GetAlias() != nil {
		i += 2
	}
	if len(n.GetCols()) > 0 {
		i = x.tokens.closing(i) + 1
	}
	if n.GetOverride() == pg_query.OverridingKind_OVERRIDING_USER_VALUE || n.GetOverride() == pg_query.OverridingKind_OVERRIDING_SYSTEM_VALUE {
		i += 3
	}
	end := len(x.sql)
	switch returning := x.tokens.find(max(i, 0), pg_query.Token_RETURNING); {
	case n.GetOnConflictClause() != nil:
		end = int(n.GetOnConflictClause().GetLocation())
	case len(n.GetReturningList()) > 0 && returning >= 0:
		end = int(x.tokens[returning].GetStart())
	}
	to := x.into(n.GetRelation(), pg_query.ObjectType_OBJECT_TABLE)
	if len(n.GetReturningList()) > 0 {
		to += ", and to the client"
	}
	c, err := x.between(n.GetSelectStmt(), i, end, to)
	if err != nil || n.GetWithClause() == nil {
		return c, err
	}
	return c, x.prepend(c, n.GetWithClause(), name)
}

// queryBeside returns a subquery of an INSERT that is not in its query; nil if there is none.
func queryBeside(n *pg_query.InsertStmt) (found *pg_query.SubLink) {
	inspect := func(m protoreflect.Message) {
		pgparse.Inspect(m, func(m proto.Message) bool {
			if s, ok := m.(*pg_query.SubLink); ok && found == nil {
				found = s
			}
			return found == nil
		})
	}
	for _, r := range n.GetReturningList() {
		inspect(r.ProtoReflect())
	}
	if c := n.GetOnConflictClause(); c != nil {
		inspect(c.ProtoReflect())
	}
	return found
}

// prepend puts the WITH clause before INSERT, whose relation is at the token name, before the query c.
func (x *contentReader) prepend(c *content, with *pg_query.WithClause, name int) error {
	if name < 2 {
		return notFound()
	}
	query := proto.Clone(c.node.GetSelectStmt()).(*pg_query.SelectStmt)
	if own := query.GetWithClause(); own != nil {
		if with.GetRecursive() || own.GetRecursive() || sharesName(with, own) {
			return refuse(reasons.Wrapper, "an INSERT and its SELECT both have a WITH clause, which cannot be joined", "write one WITH clause")
		}
		c.comma = int(own.GetLocation())
		with = proto.Clone(with).(*pg_query.WithClause)
		with.Ctes = append(with.Ctes, own.GetCtes()...)
	}
	query.WithClause = with
	c.node = &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}
	c.spans = append([]span{{int(with.GetLocation()), int(x.tokens[name-2].GetStart())}}, c.spans...)
	return nil
}

func sharesName(a, b *pg_query.WithClause) bool {
	names := map[string]bool{}
	for _, c := range a.GetCtes() {
		names[c.GetCommonTableExpr().GetCtename()] = true
	}
	for _, c := range b.GetCtes() {
		if names[c.GetCommonTableExpr().GetCtename()] {
			return true
		}
	}
	return false
}

// text returns the text of a statement in which everything but its content and comments is blank, so that offsets stay
// and comments can still claim, and the remaining tokens.
func (c *content) text(sql string, tokens []*pg_query.ScanToken) (string, []*pg_query.ScanToken) {
	text := []byte(strings.Repeat(" ", len(sql)))
	for i := range len(sql) {
		if sql[i] == '\n' {
			text[i] = '\n'
		}
	}
	for _, s := range c.spans {
		copy(text[s.from:s.to], sql[s.from:s.to])
	}
	if c.comma >= 0 {
		copy(text[c.comma:], ",   ")
	}
	var left []*pg_query.ScanToken
	for _, t := range tokens {
		from, to := int(t.GetStart()), int(t.GetEnd())
		switch {
		case from == c.comma:
			left = append(left, &pg_query.ScanToken{Start: t.GetStart(), End: t.GetStart() + 1, Token: pg_query.Token_ASCII_44})
			continue
		case c.holds(from, to):
		case pgparse.IsComment(t) && from >= 0 && from <= to && to <= len(sql):
			copy(text[from:to], sql[from:to])
		default:
			continue
		}
		left = append(left, t)
	}
	return string(text), left
}

func (c *content) holds(from, to int) bool {
	for _, s := range c.spans {
		if from >= s.from && to <= s.to {
			return true
		}
	}
	return false
}
