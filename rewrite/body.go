package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// bodyStatement is one statement or expression of a function's body.
type bodyStatement struct {
	node    *pg_query.Node
	dynamic bool // its value is executed as a statement
}

// bodyStatements parses the body of an SQL or PL/pgSQL function under the limits of a client's statement. It returns "" or
// the fault, a text that continues after the function's name.
func bodyStatements(limits Options, f *catalog.Function) ([]bodyStatement, string) {
	if f.Language != "sql" && f.Language != "plpgsql" {
		return nil, "is written in " + f.Language + ", which cannot be judged"
	}
	if fault := bodyTooLarge(limits, f.Body); fault != "" {
		return nil, fault
	}
	const unparsed = "has a body that cannot be parsed"
	switch {
	case f.Language == "plpgsql":
		parts, ok := plpgsqlParts(f.Body)
		if !ok {
			return nil, unparsed
		}
		return partStatements(limits, parts)
	case isAtomic(f.Body):
		tree, _, err := parseTree("CREATE FUNCTION f() RETURNS int LANGUAGE sql " + f.Body)
		if err != nil || len(tree.GetStmts()) != 1 {
			return nil, unparsed
		}
		node := tree.GetStmts()[0].GetStmt().GetCreateFunctionStmt().GetSqlBody()
		if value := node.GetReturnStmt().GetReturnval(); value != nil {
			node = value
		}
		return []bodyStatement{{node: node}}, ""
	}
	tree, _, err := parseTree(f.Body)
	if err != nil {
		return nil, unparsed
	}
	statements := make([]bodyStatement, len(tree.GetStmts()))
	for i, s := range tree.GetStmts() {
		statements[i].node = s.GetStmt()
	}
	return statements, ""
}

// partStatements parses all parts of a PL/pgSQL body together. It also parses a constant argument of EXECUTE.
func partStatements(limits Options, parts []bodyPart) ([]bodyStatement, string) {
	const unparsed = "has a body that cannot be parsed"
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.sql + "\n;\n")
	}
	if fault := bodyTooLarge(limits, all.String()); fault != "" {
		return nil, fault
	}
	tree, _, err := parseTree(all.String())
	if err != nil || len(tree.GetStmts()) != len(parts) {
		return nil, unparsed
	}
	var statements []bodyStatement
	for i, s := range tree.GetStmts() {
		if !parts[i].dynamic {
			statements = append(statements, bodyStatement{node: s.GetStmt()})
			continue
		}
		targets := s.GetStmt().GetSelectStmt().GetTargetList()
		constant := (*pg_query.String)(nil)
		if len(targets) == 1 {
			constant = targets[0].GetResTarget().GetVal().GetAConst().GetSval()
		}
		if constant == nil {
			statements = append(statements, bodyStatement{node: s.GetStmt(), dynamic: true})
			continue
		}
		inner, fault := bodyStatements(limits, &catalog.Function{Language: "sql", Body: constant.GetSval()})
		if fault != "" {
			return nil, unparsed
		}
		statements = append(statements, inner...)
	}
	return statements, ""
}

// bodyTooLarge applies the limits of a client's statement to a body.
func bodyTooLarge(limits Options, body string) string {
	if err := (&Rewriter{options: limits}).guard(capture.Query{SQL: body}); err != nil {
		return "has a body that is too large, or no text"
	}
	if pgparse.Check(body) != nil {
		return "has a body that is nested too deeply"
	}
	return ""
}

// isAtomic reports whether body is that of an SQL function that the server parsed at creation, as pg_get_function_sqlbody
// prints it: its dependencies are in the catalog.
func isAtomic(body string) bool {
	return strings.HasPrefix(body, "BEGIN ATOMIC") || strings.HasPrefix(body, "RETURN ")
}

// runsText is the fault of a body that executes a text built at run time.
const runsText = "runs a text as a statement (EXECUTE)"

// describeBody returns the fault of a statement of a body.
func describeBody(r refusal) string {
	switch r.Reason {
	case ReasonSettingsUncertain:
		return "names " + r.Detail + " without its schema"
	case ReasonUnsupportedNode:
		return "holds what cannot be replayed: " + r.Node
	}
	return "holds what cannot be replayed: " + r.Detail
}
