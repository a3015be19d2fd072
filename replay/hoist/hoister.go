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

// hoister turns a statement into its random part, in place, and collects the pieces. It changes only queries that vary:
// deterministic ones move into pieces unchanged, or stay.
type hoister struct {
	*analysis
	opt    Options
	kept   map[*cte]bool   // CTEs that stay in the random part
	tables map[*cte]*piece // CTEs that the random part reads from a table
	pieces []*piece
	same   map[string]*piece // by query and the CTEs that it reads
}

// piece is a query to materialize.
type piece struct {
	name         string
	query        *pg_query.SelectStmt
	reads        []*cte // CTEs that the query names
	mayCorrelate bool
}

// rest replaces a query that varies by its random part. mayCorrelate: it may read columns of an enclosing query.
func (h *hoister) rest(s *pg_query.SelectStmt, mayCorrelate bool) {
	props := h.selects[s]
	if props.with != nil {
		props.with.mayCorrelate = mayCorrelate
	}
	if !h.opt.NoSplit {
		h.split(s, props, mayCorrelate)
	}
	pgparse.Children(s.ProtoReflect(), func(m protoreflect.Message) {
		if _, with := m.Interface().(*pg_query.WithClause); !with {
			h.walk(m, props.scope, mayCorrelate)
		}
	})
	if props.with == nil {
		return
	}
	// CTEs without references are removed: PostgreSQL does not execute them.
	var left []*pg_query.Node
	for _, c := range props.with.ctes {
		switch {
		case h.tables[c] != nil:
			left = append(left, tableCTE(c, h.tables[c]))
		case h.kept[c]:
			if c.references > 1 && c.node.GetCtematerialized() == pg_query.CTEMaterialize_CTEMaterializeDefault && !c.selfReference {
				// The planner must not inline it if only one reference is left (SS_process_ctes, subselect.c).
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

// walk replaces the deterministic queries below a node by tables.
func (h *hoister) walk(m protoreflect.Message, in *scope, mayCorrelate bool) {
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt: // a branch of a set operation
		h.nested(n, mayCorrelate)
		return
	case *pg_query.RangeVar:
		if n.GetSchemaname() == "" {
			h.use(in.find(n.GetRelname()))
		}
		return
	case *pg_query.RangeSubselect:
		query := n.GetSubquery().GetSelectStmt()
		if p := h.pieceFor(query, mayCorrelate || n.GetLateral()); p != nil {
			n.Subquery = selectNode(selectFrom(rangeNode(tempSchema, p.name), ""))
			return
		}
		h.nested(query, mayCorrelate || n.GetLateral())
		return
	case *pg_query.SubLink:
		if n.GetTestexpr() != nil {
			h.walk(n.GetTestexpr().ProtoReflect(), in, mayCorrelate)
		}
		query := n.GetSubselect().GetSelectStmt()
		if p := h.pieceFor(query, true); p != nil {
			column := ""
			if n.GetSubLinkType() == pg_query.SubLinkType_EXPR_SUBLINK && len(query.GetTargetList()) == 1 {
				column = columnName(query.GetTargetList()[0].GetResTarget())
			}
			n.Subselect = selectNode(selectFrom(rangeNode(tempSchema, p.name), column))
			return
		}
		h.nested(query, true)
		return
	}
	pgparse.Children(m, func(c protoreflect.Message) { h.walk(c, in, mayCorrelate) })
}

// nested handles a query that does not become a piece.
func (h *hoister) nested(s *pg_query.SelectStmt, mayCorrelate bool) {
	props := h.selects[s]
	if props.varies && (!mayCorrelate || !h.opt.NoSubLinks) {
		h.rest(s, mayCorrelate)
		return
	}
	h.keep(props)
}

// keep leaves a query unchanged, so that the CTEs of enclosing clauses that it reads are needed.
func (h *hoister) keep(props *properties) {
	for _, c := range props.reads.list {
		h.use(c)
	}
}

// use decides how the random part reads a CTE: from a table if that is possible and saves time. c may be nil.
func (h *hoister) use(c *cte) {
	if c == nil || h.kept[c] || h.tables[c] != nil {
		return
	}
	query := c.node.GetCtequery().GetSelectStmt()
	if !c.properties.varies && savesTime(query) {
		star := selectFrom(rangeNode("", c.name), "")
		if p := h.piece(star, []*cte{c}, c.with.mayCorrelate); p != nil {
			h.tables[c] = p
			return
		}
	}
	h.kept[c] = true
	if c.properties.varies && !c.selfReference {
		h.nested(query, c.with.mayCorrelate)
		return
	}
	h.keep(c.properties)
}

// pieceFor returns the piece that replaces a query in FROM or in an expression, or nil if it stays.
func (h *hoister) pieceFor(s *pg_query.SelectStmt, mayCorrelate bool) *piece {
	props := h.selects[s]
	if props.varies || !savesTime(s) {
		return nil
	}
	return h.piece(s, props.reads.list, mayCorrelate)
}

// piece returns the piece for a deterministic query, the same one for equal queries. It returns nil if the query reads
// no table or cannot be executed alone.
func (h *hoister) piece(s *pg_query.SelectStmt, reads []*cte, mayCorrelate bool) *piece {
	if mayCorrelate && (h.opt.NoSubLinks || namesARow(s)) {
		return nil
	}
	all, ok := closure(reads)
	if mayCorrelate && slices.ContainsFunc(all, func(c *cte) bool { return c.with.mayCorrelate && namesARow(c.node.GetCtequery().GetSelectStmt()) }) {
		return nil
	}
	props := h.selects[s]
	if !ok || !slices.ContainsFunc(all, func(c *cte) bool { return c.properties.readsTable }) && (props == nil || !props.readsTable) {
		return nil
	}
	identity := key(s)
	for _, c := range reads {
		identity += fmt.Sprintf(" %p", c)
	}
	if p := h.same[identity]; p != nil {
		p.mayCorrelate = p.mayCorrelate || mayCorrelate
		return p
	}
	p := &piece{name: fmt.Sprintf("%s%d", h.opt.Prefix, len(h.pieces)+1), query: s, reads: reads, mayCorrelate: mayCorrelate}
	h.pieces = append(h.pieces, p)
	h.same[identity] = p
	return p
}

// namesARow reports whether an unqualified name may stand for a whole row of a relation of the query. In the enclosing
// query a column of that name would take precedence, so that the query would have another meaning alone.
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

// savesTime reports whether materializing a query can save time: columns of one table, without conditions, are read
// from the table itself as fast.
func savesTime(s *pg_query.SelectStmt) bool {
	bare := s.GetWithClause() == nil && len(s.GetFromClause()) == 1 && s.GetFromClause()[0].GetRangeVar().GetSchemaname() != "" &&
		s.GetWhereClause() == nil && len(s.GetGroupClause()) == 0 && s.GetHavingClause() == nil && len(s.GetDistinctClause()) == 0 &&
		len(s.GetSortClause()) == 0 && s.GetLimitCount() == nil && s.GetLimitOffset() == nil
	return !bare || slices.ContainsFunc(s.GetTargetList(), func(t *pg_query.Node) bool {
		return t.GetResTarget().GetVal().GetColumnRef() == nil
	})
}

// closure returns the given CTEs and all that they read, in an order that one WITH clause allows. ok is false if one
// clause cannot hold them, because two have the same name or only some are of a WITH RECURSIVE.
func closure(reads []*cte) (all []*cte, ok bool) {
	var found ctes
	found.addAll(reads)
	found.follow(func(*cte) bool { return false })
	names := map[string]bool{}
	for _, c := range found.list {
		first := found.list[0].with
		if names[c.name] || c.with != first && (c.with.recursive || first.recursive) {
			return nil, false
		}
		names[c.name] = true
	}
	slices.SortStableFunc(found.list, byPosition)
	return found.list, true
}

// byPosition orders CTEs by the depth of their WITH, then as written, so that each comes after those that it reads.
func byPosition(a, b *cte) int {
	return cmp.Or(cmp.Compare(a.with.depth, b.with.depth), cmp.Compare(slices.Index(a.with.ctes, a), slices.Index(b.with.ctes, b)))
}
