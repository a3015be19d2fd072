package judge

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/reach"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// graph returns what uses what in a catalog.
func (n *names) graph(x *catalog.Index, o Options, f *functions) *reach.Graph {
	if n.graphs[x] == nil {
		n.graphs[x] = reach.New(x, o.Limits, f.textArguments)
	}
	return n.graphs[x]
}

// question asks about the client's database, of which the shadow database's catalog tells what it can if there is no
// other.
func (n *names) question(o Options, f *functions) *reach.Question {
	x, byName := o.Source, false
	if x == nil {
		x, byName = o.Shadow, o.Shadow != nil
	}
	if n.runsDP == nil {
		n.runsDP = n.graph(x, o, f).From(reach.Start{Routines: declared(o), Executed: true})
	}
	protected := n.protectedIn(o, x == nil || byName)
	if byName {
		for name := range n.Protected {
			for _, r := range x.Named[name] {
				protected[r.Table] = true
			}
		}
	}
	return reach.NewQuestion(reach.Options{
		Graph: n.graph(x, o, f), Catalog: x, Protected: protected, Declared: declared(o), Functions: n.runsDP, ByName: byName, Limits: o.Limits,
	})
}

// declared returns the names of the DP functions.
func declared(o Options) (all []Table) {
	for _, s := range o.Signatures {
		schema, name, _ := ident.ParseFunction(s.Function)
		all = append(all, Table{Schema: schema, Name: name})
	}
	return all
}

// Indirect refuses a statement that is no query to audit, and whose execution runs a DP function and touches a protected
// table all the same; nil = it does not. beside: of a query to audit, only what the statement runs beside it counts,
// and either of both suffices. claims: its text makes a claim. calls are those of DP functions, nil if they are not all.
func (r *Rules) Indirect(n *pg_query.Node, q capture.Query, path resolve.Path, beside, claims bool) (refused *Refusal, calls []*claim.Call) {
	a := r.reach.Of(reach.Statement{Node: n, Query: q, Path: path.Seen(r.options.Source), Beside: beside, Claims: claims && !beside})
	detail := ""
	switch {
	case !beside && a.Function != "" && a.Relation != "":
		detail = "the statement is no query that can be audited, and runs a DP function (" + a.Function + ") and reads a protected table (" + a.Relation + ")"
	case beside && a.Function != "":
		detail = "the statement runs a DP function beside its query (" + a.Function + ")"
	case beside && a.Relation != "":
		detail = "the statement reads a protected table beside its query (" + a.Relation + ")"
	default:
		return nil, nil
	}
	for _, call := range a.Calls {
		schema, name := pgparse.Name(call.GetFuncname())
		if signature, ok := r.functions.signature(schema, name, path); ok && !a.Hidden && !beside {
			calls = append(calls, &claim.Call{Signature: signature, Call: call})
		}
	}
	return &Refusal{Reason: reasons.IndirectUse, Detail: detail, Offset: -1, Hint: usualHints[reasons.IndirectUse]}, calls
}
