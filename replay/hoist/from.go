package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// parts are FROM and WHERE of a query: where fixed has the same rows that meet filters, the query reads the same, but for
// random and conditions.
type parts struct {
	fixed, filters     []*pg_query.Node // deterministic
	random, conditions []*pg_query.Node
}

// parts divides FROM and WHERE. With a random part in FROM, a condition is a filter if all of its columns are of the
// deterministic part, and that part has no relations whose absent rows an outer join replaces.
func (f *finder) parts(s *pg_query.SelectStmt, in *scope) (p parts) {
	where := conjuncts(s.GetWhereClause())
	merged := false
	for _, n := range s.GetFromClause() {
		merged = f.part(n, in, &p, &where) || merged
	}
	aliases := aliasesOf(p.fixed...)
	hidden := map[string]bool{}
	for _, n := range p.random {
		addColumns(n, in, hidden)
	}
	for _, c := range where {
		// A name without a relation is one of the deterministic part if it exists there, unless a join merges columns.
		refers, unqualified := refersTo(c, aliases)
		alone := refers && (len(unqualified) == 0 || !merged && !slices.ContainsFunc(unqualified, func(name string) bool { return hidden[name] }))
		if f.varies(c.ProtoReflect(), in) || len(p.random) > 0 && !alone {
			p.conditions = append(p.conditions, c)
		} else {
			p.filters = append(p.filters, c)
		}
	}
	return p
}

// part divides one item of FROM, and adds the conditions of its inner joins. merged reports that a join merges columns.
func (f *finder) part(n *pg_query.Node, in *scope, p *parts, where *[]*pg_query.Node) (merged bool) {
	join := n.GetJoinExpr()
	switch {
	case !f.varies(n.ProtoReflect(), in):
		p.fixed = append(p.fixed, n)
		return false
	case join == nil || join.GetAlias() != nil:
		p.random = append(p.random, n)
		return false
	}
	other := func(n *pg_query.Node) { // of an outer join: absent rows count, too
		p.random = append(p.random, n)
		if join.GetQuals() != nil {
			p.conditions = append(p.conditions, join.GetQuals())
		}
	}
	switch join.GetJointype() {
	case pg_query.JoinType_JOIN_INNER:
		merged = f.part(join.GetLarg(), in, p, where)
		merged = f.part(join.GetRarg(), in, p, where) || merged
		*where = append(*where, conjuncts(join.GetQuals())...)
	case pg_query.JoinType_JOIN_LEFT:
		merged = f.part(join.GetLarg(), in, p, where)
		other(join.GetRarg())
	case pg_query.JoinType_JOIN_RIGHT:
		merged = f.part(join.GetRarg(), in, p, where)
		other(join.GetLarg())
	default:
		p.random = append(p.random, n)
	}
	return merged || join.GetIsNatural() || len(join.GetUsingClause()) > 0
}

// aliasesOf returns the names by which columns of items of FROM are qualified.
func aliasesOf(items ...*pg_query.Node) map[string]bool {
	all := map[string]bool{}
	for _, n := range items {
		pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
			switch m := m.(type) {
			case *pg_query.SelectStmt:
				return false
			case *pg_query.RangeVar:
				if m.GetAlias() == nil {
					all[m.GetRelname()] = true
				}
			case *pg_query.Alias:
				all[m.GetAliasname()] = true
			}
			return true
		})
	}
	return all
}

// addColumns adds the names that an item of FROM may have as a column, as far as its text shows them.
func addColumns(n *pg_query.Node, in *scope, all map[string]bool) {
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg_query.ResTarget:
			all[columnName(m)] = true
		case *pg_query.FuncCall:
			all[functionName(m)] = true
		case *pg_query.Alias:
			all[m.GetAliasname()] = true
			for _, name := range pgparse.Strings(m.GetColnames()) {
				all[name] = true
			}
		case *pg_query.RangeVar:
			if c := in.find(m.GetRelname()); m.GetSchemaname() == "" && c != nil {
				for _, name := range pgparse.Strings(c.node.GetAliascolnames()) {
					all[name] = true
				}
				addColumns(c.node.GetCtequery(), c.properties.scope, all)
			}
		}
		return true
	})
}

// refersTo reports whether all qualified columns of a condition are of relations with such names, or of subqueries in
// it, and returns the other columns.
func refersTo(c *pg_query.Node, aliases map[string]bool) (all bool, unqualified []string) {
	var items []*pg_query.Node
	pgparse.Inspect(c.ProtoReflect(), func(m proto.Message) bool {
		if s, ok := m.(*pg_query.SelectStmt); ok {
			items = append(items, s.GetFromClause()...)
		}
		return true
	})
	inner := aliasesOf(items...)
	all = true
	pgparse.Inspect(c.ProtoReflect(), func(m proto.Message) bool {
		if r, ok := m.(*pg_query.ColumnRef); ok {
			if names := pgparse.Strings(r.GetFields()); len(names) == 1 {
				unqualified = append(unqualified, names[0])
			} else {
				relation := names[len(names)-2]
				all = all && (aliases[relation] || inner[relation])
			}
		}
		return true
	})
	return all, unqualified
}

// components divides the deterministic part into those that no filter combines: joined through the random part alone,
// they may have very many rows together.
func (p parts) components() (all []parts) {
	for _, n := range p.fixed {
		all = append(all, parts{fixed: []*pg_query.Node{n}})
	}
	for _, c := range p.filters {
		var with, without []parts
		for _, one := range all {
			if mayRefer(c, aliasesOf(one.fixed...)) {
				with = append(with, one)
			} else {
				without = append(without, one)
			}
		}
		if len(with) == 0 {
			continue // it has no columns
		}
		joined := parts{filters: []*pg_query.Node{c}}
		for _, one := range with {
			joined.fixed, joined.filters = append(joined.fixed, one.fixed...), append(joined.filters, one.filters...)
		}
		all = append(without, joined)
	}
	return all
}

// mayRefer reports whether a condition may have a column of relations with such names.
func mayRefer(c *pg_query.Node, aliases map[string]bool) (may bool) {
	pgparse.Inspect(c.ProtoReflect(), func(m proto.Message) bool {
		if r, ok := m.(*pg_query.ColumnRef); ok {
			names := pgparse.Strings(r.GetFields())
			may = may || len(names) == 1 || aliases[names[len(names)-2]]
		}
		return !may
	})
	return may
}
