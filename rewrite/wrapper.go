package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// notSelect refuses a statement that is not a query, or that wraps one so that the client did not receive its rows.
func notSelect(n *pg_query.Node, offset int) error {
	refusal := refuse(ReasonNotSelect, "only SELECT, VALUES, TABLE and COPY (query) TO STDOUT are audited", "")
	refusal.Node, refusal.Offset = nodeName(n), offset
	wrapper := func(detail, hint string) { refusal.Reason, refusal.Detail, refusal.Hint = ReasonWrapper, detail, hint }
	switch {
	case n.GetExplainStmt() != nil:
		refusal.Reason, refusal.Detail = ReasonExplain, "the client got a plan, not an answer"
		refusal.Hint = "run the query itself; a plan shows true row counts, so a private engine should not answer EXPLAIN"
	case n.GetFetchStmt() != nil:
		wrapper("FETCH or MOVE: a part of a cursor's rows", "the cursor's query is audited when DECLARE runs, as a whole")
	case n.GetPrepareStmt() != nil:
		wrapper("PREPARE gives no answer yet", "")
	case n.GetExecuteStmt() != nil:
		wrapper("EXECUTE of a statement that was not captured", "")
	case n.GetCreateTableAsStmt() != nil:
		wrapper("CREATE TABLE AS and CREATE MATERIALIZED VIEW keep the answer in the database", "")
	case n.GetCopyStmt() != nil:
		wrapper("this form of COPY is not a query whose rows the client got", "COPY (SELECT ...) TO STDOUT is audited")
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
		from, to = behindFor(tokens), len(sql)
	}
	if from < 0 || to < from || to > len(sql) {
		return "", nil, refuse(ReasonVerifyFailed, "the query within the statement was not found in the text", reportBug)
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

// behindFor returns the offset after the word FOR before a cursor's query: the first FOR, because a cursor can be named for
// only in quotes.
func behindFor(tokens []*pg_query.ScanToken) int {
	for _, t := range tokens {
		if t.GetToken() == pg_query.Token_FOR {
			return int(t.GetEnd())
		}
	}
	return -1
}
