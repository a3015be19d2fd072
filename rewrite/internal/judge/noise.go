package judge

import (
	"errors"
	"maps"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/reach"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// noise holds the views and materialized views of the source that call DP functions, directly or through views.
type noise struct {
	noisy     map[Table]bool          // views: every query on one draws fresh noise
	stored    map[Table]bool          // materialized views that are not listed: they hold answers, and a query on one is no new release
	calls     map[Table][]*claim.Call // the calls of DP functions that a query on a noisy view makes
	unclaimed map[Table]string        // noisy views whose calls are not known: why
}

// maxViewCalls bounds the calls of DP functions in one view, with the views that it reads.
const maxViewCalls = 1000

// findNoise finds the views that call DP functions.
func (n *names) findNoise(o Options, f *functions) {
	n.runsDP = n.graph(n.Source, o, f).From(reach.Start{Routines: declared(o), Executed: true})
	n.noise = noise{noisy: map[Table]bool{}, stored: map[Table]bool{}, calls: map[Table][]*claim.Call{}, unclaimed: map[Table]string{}}
	calls := func(r *catalog.Relation) bool {
		return slices.ContainsFunc(r.Calls, func(c Table) bool {
			_, ok := f.signature(c.Schema, c.Name, resolve.Path{})
			return ok || r.Kind == catalog.KindMaterialized && n.runsDP.Has(c)
		})
	}
	for changed := true; changed; {
		changed = false
		for t, r := range n.Source.Relations {
			if n.noisy[t] || n.stored[t] || r.Kind != catalog.KindView && r.Kind != catalog.KindMaterialized || slices.Contains(o.Protected, t) && r.Kind == catalog.KindMaterialized {
				continue
			}
			if calls(r) || slices.ContainsFunc(r.Reads, func(read Table) bool { return n.noisy[read] }) {
				changed = true
				if r.Kind == catalog.KindView {
					n.noisy[t] = true
				} else {
					n.stored[t] = true
				}
			}
		}
	}
	for t := range n.noisy {
		n.callsOf(t, o, f)
	}
}

// callsOf returns the calls of DP functions of a noisy view. Views do not read each other in cycles.
func (n *names) callsOf(t Table, o Options, f *functions) []*claim.Call {
	if all, done := n.calls[t]; done || n.unclaimed[t] != "" {
		return all
	}
	definition := n.Source.Relations[t].Definition
	tree, err := parseWithin(o, definition)
	if err != nil {
		n.unclaimed[t] = "calls a DP function, and its query cannot be parsed"
		return nil
	}
	var all []*claim.Call
	fault := ""
	pgparse.Inspect(tree.ProtoReflect(), func(m proto.Message) bool {
		switch x := m.(type) {
		case *pg_query.FuncCall:
			schema, name := pgparse.Name(x.GetFuncname())
			if signature, ok := f.signature(schema, name, resolve.Path{}); ok {
				call := proto.Clone(x).(*pg_query.FuncCall)
				call.Location = -1 // it is not in the client's text
				all = append(all, &claim.Call{Signature: signature, Call: call})
			}
		case *pg_query.RangeVar:
			if read := (Table{Schema: x.GetSchemaname(), Name: x.GetRelname()}); n.noisy[read] && read != t {
				all = append(all, n.callsOf(read, o, f)...)
				fault = n.unclaimed[read]
			}
		}
		if len(all) > maxViewCalls {
			fault = "has too many calls of DP functions"
		}
		return fault == ""
	})
	if fault != "" {
		n.unclaimed[t] = fault
		return nil
	}
	n.calls[t] = all
	return all
}

// parseWithin parses a definition, unless it exceeds the limits.
func parseWithin(o Options, definition string) (*pg_query.ParseResult, error) {
	if what := o.Limits.Exceeded(definition); what != "" {
		return nil, errors.New(what)
	}
	return pgparse.Parse(definition)
}

// addNoisy makes the noisy views that read no relation dependents of protected tables: the DP function reads them.
func (n *names) addNoisy() {
	for t := range n.noisy {
		if _, known := n.bases[t]; !known && n.Kinds[t] == resolve.KindUnknown && len(n.tablesOf(t)) == 0 {
			n.bases[t] = nil
		}
	}
}

// tablesOf returns the relations, except views, that a view reads.
func (n *names) tablesOf(t Table) (all []Table) {
	for other := range n.Source.Closure(t) {
		if r := n.Source.Relations[other]; r == nil || r.Kind != catalog.KindView {
			all = append(all, other)
		}
	}
	return all
}

// callsIn returns the calls of DP functions that a query on a relation makes, except on a view over public tables
// alone.
func (n *names) callsIn(t Table) []*claim.Call {
	if !n.noisy[t] {
		return nil
	}
	if tables := n.tablesOf(t); len(tables) > 0 && !slices.ContainsFunc(tables, func(t Table) bool { return n.Kinds[t] != resolve.KindPublic }) {
		return nil
	}
	return n.calls[t]
}

// addCallers makes the views that call a function which reads a protected table dependents of protected tables.
func (n *names) addCallers() {
	for t := range n.callers {
		r := n.Source.Relations[t]
		isView := r != nil && (r.Kind == catalog.KindView || r.Kind == catalog.KindMaterialized)
		if _, known := n.bases[t]; known || !isView || n.stored[t] || n.Kinds[t] != resolve.KindUnknown || !n.callsReader(t) {
			continue
		}
		n.bases[t] = nil
		n.Protected[t.Name] = true
	}
}

// callsReader reports whether a query on a view calls a function that reads a protected table, other than for a
// materialized view that holds answers.
func (n *names) callsReader(t Table) bool {
	for other := range n.Source.ClosureWithout(t, n.stored) {
		r := n.Source.Relations[other]
		if r != nil && slices.ContainsFunc(r.Calls, func(c Table) bool { return slices.ContainsFunc(n.Source.Find(c.Schema, c.Name, nil), n.isReader) }) {
			return true
		}
	}
	return false
}

// reads says what a dependent of protected tables does.
func (n *names) reads(t Table) string {
	switch {
	case n.noisy[t]:
		return "calls a DP function"
	case len(n.bases[t]) == 0:
		return "calls a function that reads a protected table"
	}
	return "reads or is part of a protected table"
}

// NoisyView is a view of the source that calls a DP function and is not listed in the configuration.
type NoisyView struct {
	Table
	Fault string // why queries on it are not audited; "" = they are, on its copies
}

// NoisyViews returns the views that draw fresh noise for every query on them, and are dependents of protected tables
// but not listed, in order.
func (r *Rules) NoisyViews() (all []NoisyView) {
	for _, t := range ident.Sorted(maps.Clone(r.names.noisy)) {
		if _, dependent := r.names.bases[t]; dependent && !slices.Contains(r.options.Protected, t) && !slices.Contains(r.options.Public, t) {
			all = append(all, NoisyView{t, r.names.refused[t].detail})
		}
	}
	return all
}
