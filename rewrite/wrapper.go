package rewrite

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// notSelect refuses a statement that is neither a query nor one that runs a query. Rewriter.indirect refuses those that
// run a DP function all the same.
func notSelect(n *pg_query.Node, offset int) error {
	refusal := refuse(reasons.NotSelect, "the statement is not a query: only SELECT, VALUES, TABLE and statements that run one are audited", "")
	refusal.Node, refusal.Offset = nodeName(n), offset
	because := func(reason Reason, detail, hint string) {
		refusal.Reason, refusal.Detail, refusal.Hint = reason, detail, hint
	}
	switch {
	case n.GetExplainStmt() != nil:
		because(reasons.Explain, "EXPLAIN without ANALYZE runs no query", "plans show estimates from statistics of the true rows: let the engine reject EXPLAIN")
	case n.GetFetchStmt() != nil:
		because(reasons.NotSelect, "FETCH and MOVE return or skip a part of a cursor's rows", "the cursor's whole query counts when its rows are read: see what became of DECLARE")
	case n.GetPrepareStmt() != nil:
		because(reasons.NotSelect, "PREPARE runs no query", "the statement counts when EXECUTE runs it")
	case n.GetViewStmt() != nil:
		because(reasons.NotSelect, "CREATE VIEW runs no query", "a query on the view counts: it is audited if every neighbour has a copy of the view, and refused otherwise")
	case n.GetRefreshMatViewStmt().GetSkipData():
		because(reasons.NotSelect, "REFRESH MATERIALIZED VIEW WITH NO DATA runs no query", "")
	case n.GetRefreshMatViewStmt() != nil:
		because(reasons.Wrapper, "the query of the materialized view that REFRESH runs is not known", "set privacy.catalog")
	case n.GetExecuteStmt() != nil:
		because(reasons.Wrapper, "the statement that EXECUTE runs was not captured", "prepare it in the same session through the proxy")
	case n.GetCopyStmt() != nil && !n.GetCopyStmt().GetIsFrom():
		because(reasons.Wrapper, "COPY of a table returns its rows without a query", "COPY (SELECT ...) TO STDOUT is audited")
	}
	return refusal
}
