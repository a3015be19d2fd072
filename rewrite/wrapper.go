package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// notSelect refuses a statement that is not a query, or that wraps one so that the client did not receive its rows.
func notSelect(n *pg_query.Node, offset int) error {
	refusal := refuse(ReasonNotSelect, "the statement is not a query: only SELECT, VALUES, TABLE, COPY (query) TO STDOUT and DECLARE CURSOR are audited", "")
	refusal.Node, refusal.Offset = nodeName(n), offset
	wrapper := func(detail, hint string) { refusal.Reason, refusal.Detail, refusal.Hint = ReasonWrapper, detail, hint }
	switch {
	case n.GetExplainStmt() != nil:
		refusal.Reason, refusal.Detail = ReasonExplain, "EXPLAIN returns a plan, not the result of the query"
		refusal.Hint = "run the query itself; plans show true row counts, so the engine should reject EXPLAIN"
	case n.GetFetchStmt() != nil:
		wrapper("FETCH and MOVE return or skip a part of a cursor's rows", "nothing to do: the cursor's whole query is audited when DECLARE runs")
	case n.GetPrepareStmt() != nil:
		wrapper("PREPARE returns no rows", "nothing to do: the statement is audited when EXECUTE runs it")
	case n.GetExecuteStmt() != nil:
		wrapper("the statement that EXECUTE runs was not captured", "prepare it in the same session through the proxy")
	case n.GetCreateTableAsStmt() != nil:
		wrapper("CREATE TABLE AS and CREATE MATERIALIZED VIEW store the result in the database", "")
	case n.GetCopyStmt() != nil:
		wrapper("this form of COPY does not return the rows of a query to the client", "COPY (SELECT ...) TO STDOUT is audited")
	}
	return refusal
}

// wrapped returns the query within COPY (query) TO STDOUT or DECLARE ... CURSOR FOR query; nil for other statements.
func wrapped(n *pg_query.Node) *pg_query.SelectStmt {
	if c := n.GetCopyStmt(); c != nil && !c.GetIsFrom() && !c.GetIsProgram() && c.GetFilename() == "" {
		return c.GetQuery().GetSelectStmt()
	}
	return n.GetDeclareCursorStmt().GetQuery().GetSelectStmt()
}

// unwrap leaves the query of such a statement at its own offset and replaces everything else except comments by blanks, so
// that offsets stay and comments can still claim. It also returns the remaining tokens.
func unwrap(sql string, n *pg_query.Node, tokens []*pg_query.ScanToken) (string, []*pg_query.ScanToken, error) {
	from, to := parenthesised(tokens)
	if n.GetDeclareCursorStmt() != nil {
		from, to = afterFor(tokens), len(sql)
	}
	if from < 0 || to < from || to > len(sql) {
		return "", nil, refuse(ReasonVerifyFailed, "the query inside COPY or DECLARE CURSOR was not found in the text", reportBug)
	}
	text := []byte(strings.Repeat(" ", len(sql)))
	for i := range len(sql) {
		if sql[i] == '\n' {
			text[i] = '\n'
		}
	}
	copy(text[from:to], sql[from:to])
	var left []*pg_query.ScanToken
	for _, t := range tokens {
		start, end := int(t.GetStart()), int(t.GetEnd())
		switch {
		case start >= from && end <= to:
		case pgparse.IsComment(t) && start >= 0 && start <= end && end <= len(sql):
			copy(text[start:end], sql[start:end])
		default:
			continue
		}
		left = append(left, t)
	}
	return string(text), left, nil
}

// parenthesised returns the range of the first parentheses.
func parenthesised(tokens []*pg_query.ScanToken) (from, to int) {
	depth := 0
	from, to = -1, -1
	for _, t := range tokens {
		switch t.GetToken() {
		case pg_query.Token_ASCII_40:
			if depth == 0 && from < 0 {
				from = int(t.GetEnd())
			}
			depth++
		case pg_query.Token_ASCII_41:
			if depth--; depth == 0 && to < 0 {
				to = int(t.GetStart())
			}
		}
	}
	return from, to
}

// afterFor returns the offset after the word FOR before a cursor's query: the first FOR, because a cursor can be named for
// only in quotes.
func afterFor(tokens []*pg_query.ScanToken) int {
	for _, t := range tokens {
		if t.GetToken() == pg_query.Token_FOR {
			return int(t.GetEnd())
		}
	}
	return -1
}
