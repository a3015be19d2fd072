package rewrite

import (
	"errors"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Parts returns the queries that a DO block in PL/pgSQL runs and that concern the auditor, as queries of their own: the
// block can show their answers by RAISE, by a setting or by what it does then. nil = there are none, or they are not
// known: one depends on variables, runs more than once, or is a text built at run time.
func (r *Rewriter) Parts(q capture.Query) (queries []capture.Query) {
	text, ok := r.block(q.SQL)
	if !ok {
		return nil
	}
	parts, ok := body.Parts(body.Limits{Bytes: r.options.MaxBytes, Tokens: r.options.MaxTokens}, text)
	if !ok {
		return nil
	}
	for _, part := range parts {
		if part.Dynamic {
			return nil
		}
		one := q
		one.SQL, one.Tag = part.SQL, ""
		one = r.Inline(one)
		_, err := r.Analyze(one)
		var refused *UnsupportedError
		switch {
		case errors.As(err, &refused) && !Concerns(refused.Reason):
		case part.Repeated || part.Bound:
			return nil
		default:
			queries = append(queries, one)
		}
	}
	return queries
}

// Concerns reports whether a statement that is refused for a reason concerns the auditor: whether it may use what is
// declared or protected.
func Concerns(reason Reason) bool {
	switch reason {
	case reasons.NoProtectedTable, reasons.SystemCatalogOnly, reasons.NotSelect, reasons.Explain, reasons.Empty:
		return false
	}
	return true
}

// block returns the body of a DO statement in PL/pgSQL.
func (r *Rewriter) block(sql string) (text string, ok bool) {
	stmt, _, ok := r.read(sql)
	if !ok || stmt.GetDoStmt() == nil {
		return "", false
	}
	for _, arg := range stmt.GetDoStmt().GetArgs() {
		switch d := arg.GetDefElem(); d.GetDefname() {
		case "as":
			text = d.GetArg().GetString_().GetSval()
		case "language":
			ok = d.GetArg().GetString_().GetSval() == "plpgsql"
		}
	}
	return text, ok
}
