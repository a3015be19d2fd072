package judge

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// view returns the references of a view of the shadow database other than those to relations: a query that depends on
// the current user, reads a system catalog or column, or has side effects gives another result in a replay, although no
// dependency of the view shows it. It is checked like a client's query. The caller checks the relations that it reads,
// from the catalog. A materialised view holds rows.
func (j *checker) view(neighbour string, r *catalog.Relation, before string) (out []reference) {
	if r.Definition == "" || r.Kind != catalog.KindView {
		return nil
	}
	fault := func(text string) []reference { return []reference{{before: before, fault: text}} }
	if j.options.Limits.Exceeded(r.Definition) != "" {
		return fault("has a query that is too large")
	}
	tree, err := pgparse.Parse(r.Definition)
	if err != nil || len(tree.GetStmts()) != 1 || tree.GetStmts()[0].GetStmt().GetSelectStmt() == nil {
		return fault("has a query that cannot be parsed" + pgparse.Because(err))
	}
	s := j.bodyRules(neighbour).statement(capture.Query{}, resolve.Path{})
	s.body(map[Table]bool{}, true)
	j.options.Walk(s, tree.GetStmts()[0].GetStmt().ProtoReflect())
	for _, f := range s.refusals {
		if f.Reason != reasons.UnknownTable {
			return fault(notReplayable + f.Detail)
		}
	}
	for _, f := range ident.Sorted(s.Called.callees) {
		if !j.isPure(f) {
			out = append(out, j.calls(neighbour, f, before)...)
		}
	}
	return out
}

// isPure reports whether a function of the shadow database is immutable and reads no protected table.
func (j *checker) isPure(f Table) bool {
	found := j.shadow.Find(f.Schema, f.Name, nil)
	return len(found) > 0 && !slices.ContainsFunc(found, func(g *catalog.Function) bool { return g.Volatility != "immutable" || j.names.isReader(g) })
}
