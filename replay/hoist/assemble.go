package hoist

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// tempSchema is the alias of the session's schema for temporary tables.
const tempSchema = "pg_temp"

// tableCTE returns a CTE that replaces c and reads the table of its piece.
func tableCTE(c *cte, p *piece) *pg_query.Node {
	return cteNode(&pg_query.CommonTableExpr{
		Ctename: c.name, Aliascolnames: c.node.GetAliascolnames(),
		Ctematerialized: pg_query.CTEMaterialize_CTEMaterializeNever,
		Ctequery:        selectNode(selectFrom(rangeNode(tempSchema, p.name), "")),
	})
}

func cteNode(n *pg_query.CommonTableExpr) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_CommonTableExpr{CommonTableExpr: n}}
}

// needs returns the CTEs that the query of a piece must contain. Those that only a CTE with a table reads are not among
// them.
func (h *hoister) needs(p *piece) []*cte {
	var found ctes
	found.addAll(p.reads)
	found.follow(func(c *cte) bool { return h.tables[c] != nil && h.tables[c] != p })
	slices.SortStableFunc(found.list, byPosition)
	return found.list
}

// assemble returns the query of a piece with the CTEs that it reads.
func (h *hoister) assemble(p *piece) *pg_query.SelectStmt {
	with := &pg_query.WithClause{}
	for _, c := range h.needs(p) {
		if t := h.tables[c]; t != nil && t != p {
			with.Ctes = append(with.Ctes, tableCTE(c, t))
			continue
		}
		with.Ctes = append(with.Ctes, cteNode(c.node))
		with.Recursive = with.Recursive || c.with.recursive
	}
	if len(with.Ctes) == 0 {
		return p.query
	}
	query := p.query
	if query.GetWithClause() != nil {
		query = selectFrom(&pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{
			Subquery: selectNode(p.query), Alias: &pg_query.Alias{Aliasname: "dpwatch_piece"},
		}}}, "")
	} else {
		query = proto.CloneOf(query)
	}
	query.WithClause = with
	return query
}

// ordered returns the pieces in an order in which each comes after those that it reads.
func (h *hoister) ordered() []*piece {
	var order []*piece
	done := map[*piece]bool{}
	var add func(*piece)
	add = func(p *piece) {
		if done[p] {
			return
		}
		done[p] = true
		for _, c := range h.needs(p) {
			if t := h.tables[c]; t != nil {
				add(t)
			}
		}
		order = append(order, p)
	}
	for _, p := range h.pieces {
		add(p)
	}
	return order
}
