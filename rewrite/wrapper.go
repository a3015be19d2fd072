package rewrite

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// notSelect refuses a statement that is no query, or that wraps one so that the client did not get its rows.
func notSelect(n *pg_query.Node, offset int) error {
	refusal := refuse(ReasonNotSelect, "only SELECT, VALUES, TABLE and COPY (query) TO STDOUT are audited", "")
	refusal.Node, refusal.Offset = nodeName(n), offset
	wrapper := func(detail, hint string) { refusal.Reason, refusal.Detail, refusal.Hint = ReasonWrapper, detail, hint }
	switch {
	case n.GetExplainStmt() != nil:
		refusal.Reason, refusal.Detail = ReasonExplain, "the client got a plan, not an answer"
		refusal.Hint = "a plan shows true row counts: a private engine should not answer EXPLAIN"
	case n.GetDeclareCursorStmt() != nil:
		wrapper("DECLARE CURSOR: which rows the client fetched is not known", "run the query itself")
	case n.GetFetchStmt() != nil:
		wrapper("FETCH or MOVE: a part of a cursor's rows", "run the cursor's query itself")
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

// copied returns the query within COPY (query) TO STDOUT at its own place: everything else but comments becomes
// blank, so that offsets stay and comments may still claim. It also returns the tokens that are left.
func copied(sql string, tokens []*pg_query.ScanToken) (string, []*pg_query.ScanToken, error) {
	depth, from, to := 0, -1, -1
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
	if from < 0 || to < from || to > len(sql) {
		return "", nil, refuse(ReasonVerifyFailed, "no parentheses around the query of COPY", "report this as a bug")
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
		case isComment(t.GetToken()) && start >= 0 && start <= end && end <= len(sql):
			copy(text[start:end], sql[start:end])
		default:
			continue
		}
		left = append(left, t)
	}
	return string(text), left, nil
}
