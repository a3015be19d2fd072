package body

import (
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Limits are the limits of a text that is parsed.
type Limits struct{ Bytes, Tokens int }

// Statement is one statement or expression of a function's body.
type Statement struct {
	Node    *pg_query.Node
	Dynamic bool // its value is executed as a statement
}

const unparsed = "has a body that cannot be parsed"

// Statements parses the body of an SQL or PL/pgSQL function. It returns "" or the fault, a text that continues after
// the function's name.
func Statements(limits Limits, language, text string) ([]Statement, string) {
	if language != "sql" && language != "plpgsql" {
		return nil, "is written in " + language + ", which cannot be judged"
	}
	if fault := limits.Exceeded(text); fault != "" {
		return nil, fault
	}
	switch {
	case language == "plpgsql":
		parts, ok := plpgsqlParts(text)
		if !ok {
			return nil, unparsed
		}
		return partStatements(limits, parts)
	case IsAtomic(text):
		tree, err := pgparse.Parse("CREATE FUNCTION f() RETURNS int LANGUAGE sql " + text)
		if err != nil || len(tree.GetStmts()) != 1 {
			return nil, unparsed
		}
		node := tree.GetStmts()[0].GetStmt().GetCreateFunctionStmt().GetSqlBody()
		if value := node.GetReturnStmt().GetReturnval(); value != nil {
			node = value
		}
		return []Statement{{Node: node}}, ""
	}
	tree, err := pgparse.Parse(text)
	if err != nil {
		return nil, unparsed
	}
	statements := make([]Statement, len(tree.GetStmts()))
	for i, s := range tree.GetStmts() {
		statements[i].Node = s.GetStmt()
	}
	return statements, ""
}

// partStatements parses all parts of a PL/pgSQL body together. It also parses a constant argument of EXECUTE.
func partStatements(limits Limits, parts []bodyPart) ([]Statement, string) {
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.sql + "\n;\n")
	}
	if fault := limits.Exceeded(all.String()); fault != "" {
		return nil, fault
	}
	tree, err := pgparse.Parse(all.String())
	if err != nil || len(tree.GetStmts()) != len(parts) {
		return nil, unparsed
	}
	var statements []Statement
	for i, s := range tree.GetStmts() {
		if !parts[i].dynamic {
			statements = append(statements, Statement{s.GetStmt(), false})
			continue
		}
		constant := constantOf(s.GetStmt())
		if constant == nil {
			statements = append(statements, Statement{s.GetStmt(), true})
			continue
		}
		inner, fault := Statements(limits, "sql", constant.GetSval())
		if fault != "" {
			return nil, unparsed
		}
		statements = append(statements, inner...)
	}
	return statements, ""
}

// Exceeded returns "" or why a body must not be parsed.
func (l Limits) Exceeded(text string) string {
	if len(text) > l.Bytes || strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) || pgparse.TooManyTokens(text, l.Tokens) {
		return "has a body that is too large, or no text"
	}
	if pgparse.Check(text) != nil {
		return "has a body that is nested too deeply"
	}
	return ""
}

// IsAtomic reports whether text is the body of an SQL function that the server parsed at creation, as
// pg_get_function_sqlbody prints it: its dependencies are in the catalog.
func IsAtomic(text string) bool {
	return strings.HasPrefix(text, "BEGIN ATOMIC") || strings.HasPrefix(text, "RETURN ")
}
