package hoist

import (
	"cmp"
	"fmt"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// hoister turns a statement into its volatile rest, in place, and collects the pieces. It changes only volatile queries:
// stable ones move into pieces unchanged, or stay.
type hoister struct {
	*analysis
	opt    Options
	kept   map[*cte]bool   // CTEs that the rest contains with their own query
	tables map[*cte]*piece // CTEs that the rest reads from a table
	pieces []*piece
	same   map[string]*piece // by meaning

	frozen  map[*pg_query.SelectStmt]bool       // levels whose FROM and WHERE stay unchanged
	pushed  map[*pg_query.SelectStmt]conditions // conditions of the enclosing query, by query in FROM
	known   map[knownQuery]reads
	repeats map[*pg_query.SelectStmt]bool // target lists with an expression twice
	pinned  map[*cte]bool                 // CTEs that frozen levels read
}

// piece is a query to materialise.
type piece struct {
	name   string
	query  *pg_query.SelectStmt
	reads  []*cte // CTEs that the query names
	unsure bool
}

// rest replaces a query by its volatile part.
func (h *hoister) rest(s *pg_query.SelectStmt, unsure bool) {
	u := h.selects[s]
	if u.own != nil {
		u.own.unsure = unsure
	}
	if !h.opt.NoSplit && !h.frozen[s] {
		h.split(s, u, unsure)
	}
	stays := map[protoreflect.ProtoMessage]bool{}
	if h.frozen[s] {
		for _, n := range inputs(s) {
			stays[n] = true
			h.keep(h.read(n.ProtoReflect(), u.inner))
		}
	}
	pgparse.Children(s.ProtoReflect(), func(m protoreflect.Message) {
		if _, with := m.Interface().(*pg_query.WithClause); !with && !stays[m.Interface()] {
			h.walk(m, u.inner, unsure)
		}
	})
	if u.own == nil {
		return
	}
	// PostgreSQL does not execute a CTE without references.
	var left []*pg_query.Node
	for _, c := range u.own.ctes {
		switch {
		case h.tables[c] != nil:
			left = append(left, reader(c, h.tables[c]))
		case h.kept[c]:
			if c.references > 1 && c.node.GetCtematerialized() == pg_query.CTEMaterialize_CTEMaterializeDefault && !c.self {
				// It may have only one reference left, and must not become a subquery for that reason (SS_process_ctes,
				// subselect.c).
				c.node.Ctematerialized = pg_query.CTEMaterialize_CTEMaterializeAlways
			}
			left = append(left, cteNode(c.node))
		}
	}
	s.WithClause.Ctes = left
	if len(left) == 0 {
		s.WithClause = nil
	}
}

// walk searches a volatile query for stable ones.
func (h *hoister) walk(m protoreflect.Message, in *scope, unsure bool) {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt: // an arm of a set operation
		h.inner(n, unsure)
		return
	case *pg_query.RangeVar:
		if n.GetSchemaname() == "" {
			h.use(in.find(n.GetRelname()))
		}
		return
	case *pg_query.RangeSubselect:
		query := n.GetSubquery().GetSelectStmt()
		if p := h.unit(query, unsure || n.GetLateral()); p != nil {
			n.Subquery = selectNode(selectFrom(rangeNode(tempSchema, p.name), ""))
			return
		}
		h.inner(query, unsure || n.GetLateral())
		return
	case *pg_query.SubLink:
		if n.GetTestexpr() != nil {
			h.walk(n.GetTestexpr().ProtoReflect(), in, unsure)
		}
		query := n.GetSubselect().GetSelectStmt()
		if p := h.unit(query, true); p != nil {
			column := ""
			if n.GetSubLinkType() == pg_query.SubLinkType_EXPR_SUBLINK && len(query.GetTargetList()) == 1 {
				column = columnName(query.GetTargetList()[0].GetResTarget())
			}
			n.Subselect = selectNode(selectFrom(rangeNode(tempSchema, p.name), column))
			return
		}
		h.inner(query, true)
		return
	}
	pgparse.Children(m, func(c protoreflect.Message) { h.walk(c, in, unsure) })
}

// inner handles a query that is not a piece itself.
func (h *hoister) inner(s *pg_query.SelectStmt, unsure bool) {
	u := h.selects[s]
	if u.volatile && (!unsure || !h.opt.NoSubLinks) {
		h.rest(s, unsure)
		return
	}
	h.keep(u)
}

// keep leaves a query unchanged: the enclosing CTEs that it reads stay, as queries or as tables.
func (h *hoister) keep(u *unit) {
	for _, c := range u.reads.list {
		h.use(c)
	}
}

// use decides how the rest reads a CTE: from a table if that is possible and saves time. nil = no CTE.
func (h *hoister) use(c *cte) {
	if c == nil || h.kept[c] || h.tables[c] != nil {
		return
	}
	query := c.node.GetCtequery().GetSelectStmt()
	if h.pinned[c] {
		h.kept[c] = true
		h.keep(c.unit)
		return
	}
	if !c.unit.volatile && worth(query) {
		star := selectFrom(rangeNode("", c.name), "")
		if p := h.piece(star, []*cte{c}, c.level.unsure); p != nil {
			h.tables[c] = p
			return
		}
	}
	h.kept[c] = true
	if c.unit.volatile && !c.self {
		h.inner(query, c.level.unsure)
		return
	}
	h.keep(c.unit)
}

// unit returns a piece for a query in FROM or in an expression, or nil.
func (h *hoister) unit(s *pg_query.SelectStmt, unsure bool) *piece {
	u := h.selects[s]
	if u.volatile || !worth(s) {
		return nil
	}
	return h.piece(s, u.reads.list, unsure)
}

// piece returns the piece of a stable query, or nil if the query cannot stand alone.
func (h *hoister) piece(s *pg_query.SelectStmt, reads []*cte, unsure bool) *piece {
	if unsure && (h.opt.NoSubLinks || namesARow(s)) {
		return nil
	}
	all, ok := closure(reads)
	if unsure && slices.ContainsFunc(all, func(c *cte) bool { return c.level.unsure && namesARow(c.node.GetCtequery().GetSelectStmt()) }) {
		return nil
	}
	u := h.selects[s]
	if !ok || !slices.ContainsFunc(all, func(c *cte) bool { return c.unit.tables }) && (u == nil || !u.tables) {
		return nil
	}
	meaning := key(s)
	for _, c := range reads {
		meaning += fmt.Sprintf(" %p", c)
	}
	if p := h.same[meaning]; p != nil {
		p.unsure = p.unsure || unsure
		return p
	}
	p := &piece{name: fmt.Sprintf("%s%d", h.opt.Prefix, len(h.pieces)+1), query: s, reads: reads, unsure: unsure}
	h.pieces = append(h.pieces, p)
	h.same[meaning] = p
	return p
}

// namesARow reports whether an unqualified name may be a whole row of a relation of the query: a column of that name in the
// enclosing query would take precedence, and the query would have another meaning when it stands alone.
func namesARow(s *pg_query.SelectStmt) bool {
	relations, columns := map[string]bool{}, map[string]bool{}
	pgparse.Inspect(s.ProtoReflect(), func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg_query.RangeVar:
			relations[n.GetRelname()] = true
		case *pg_query.Alias:
			relations[n.GetAliasname()] = true
		case *pg_query.ColumnRef:
			if len(n.GetFields()) == 1 {
				columns[pgparse.Last(n.GetFields())] = true
			}
		}
		return true
	})
	for name := range columns {
		if relations[name] {
			return true
		}
	}
	return false
}

// worth reports whether materialising a query can save time: plain columns of one table are read as fast from the table
// itself.
func worth(s *pg_query.SelectStmt) bool {
	bare := s.GetWithClause() == nil && len(s.GetFromClause()) == 1 && s.GetFromClause()[0].GetRangeVar().GetSchemaname() != "" &&
		s.GetWhereClause() == nil && len(s.GetGroupClause()) == 0 && s.GetHavingClause() == nil && len(s.GetDistinctClause()) == 0 &&
		len(s.GetSortClause()) == 0 && s.GetLimitCount() == nil && s.GetLimitOffset() == nil
	return !bare || slices.ContainsFunc(s.GetTargetList(), func(t *pg_query.Node) bool {
		return t.GetResTarget().GetVal().GetColumnRef() == nil
	})
}

// closure returns all CTEs that are needed to read some, in an order that one WITH clause allows; ok is false if one clause
// cannot hold them, because two have the same name or only some belong to a WITH RECURSIVE.
func closure(reads []*cte) (all []*cte, ok bool) {
	var found ctes
	found.addAll(reads)
	found.follow(func(*cte) bool { return false })
	names := map[string]bool{}
	for _, c := range found.list {
		first := found.list[0].level
		if names[c.name] || c.level != first && (c.level.recursive || first.recursive) {
			return nil, false
		}
		names[c.name] = true
	}
	slices.SortStableFunc(found.list, byPlace)
	return found.list, true
}

// byPlace orders CTEs so that each comes after those that it reads: by the depth of their WITH, then as written.
func byPlace(a, b *cte) int {
	return cmp.Or(cmp.Compare(a.level.depth, b.level.depth), cmp.Compare(slices.Index(a.level.ctes, a), slices.Index(b.level.ctes, b)))
}
