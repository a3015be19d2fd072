package rewrite

import (
	"errors"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Parts returns the queries that a DO block, or a procedure that is called, runs and that concern the auditor, as queries
// of their own: its code can show their answers by RAISE, by a setting or by what it does then. nil = there are none, or
// they are not known: one depends on variables, runs more than once, or is a text built at run time.
func (r *Rewriter) Parts(q capture.Query) (queries []capture.Query) {
	code, ok := r.codeOf(q)
	if !ok {
		return nil
	}
	parts, ok := body.Parts(body.Limits{Bytes: r.options.MaxBytes, Tokens: r.options.MaxTokens}, code)
	if !ok {
		return nil
	}
	for _, part := range parts {
		if part.Dynamic {
			return nil
		}
		one := q
		one.SQL, one.Tag, one.Protocol, one.Params, one.Named = part.SQL, "", capture.Simple, nil, false
		one = r.Inline(one)
		_, err := r.Analyze(one)
		var refused *UnsupportedError
		switch {
		case errors.As(err, &refused) && reasons.NotDP(refused.Reason):
		case part.Repeated || part.Bound:
			return nil
		default:
			queries = append(queries, one)
		}
	}
	return queries
}

// codeOf returns the code that a DO statement or a CALL runs, if it is known.
func (r *Rewriter) codeOf(q capture.Query) (code body.Code, ok bool) {
	stmt, _, ok := r.read(q.SQL)
	if call := stmt.GetCallStmt().GetFunccall(); ok && call != nil {
		return r.procedure(q, call)
	}
	if !ok || stmt.GetDoStmt() == nil {
		return body.Code{}, false
	}
	code.Language = "plpgsql"
	for _, arg := range stmt.GetDoStmt().GetArgs() {
		switch d := arg.GetDefElem(); d.GetDefname() {
		case "as":
			code.Text = d.GetArg().GetString_().GetSval()
		case "language":
			code.Language = d.GetArg().GetString_().GetSval()
		}
	}
	return code, true
}

// procedure returns the code of a procedure of which there is one of that name, and which changes no setting.
func (r *Rewriter) procedure(q capture.Query, call *pg_query.FuncCall) (code body.Code, ok bool) {
	if r.source == nil {
		return body.Code{}, false
	}
	path := resolve.PathOf(q, r.options.SearchPath).Seen(r.source)
	schema, name := pgparse.Name(call.GetFuncname())
	found := r.source.Find(schema, name, path.Known())
	if len(found) != 1 || len(found[0].Settings) > 0 {
		return body.Code{}, false
	}
	return body.Code{Language: found[0].Language, Text: found[0].Body, Arguments: found[0].Arguments}, true
}
