package judge

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Some constructs depend on the session or on the copy of a table, and are harmless in certain places: where their
// value is the same on every neighbour, or is not used.

// isShown reports whether a node is a column of the result, with casts around it, or a group key: then its value, which
// is one constant in a session, does not select rows and values.
func (s *Statement) isShown(node any) bool {
	query, ok := s.top()
	if !ok {
		return false
	}
	for _, target := range query.GetTargetList() {
		if isNode(withoutCasts(target.GetResTarget().GetVal()), node) {
			return true
		}
	}
	return slices.ContainsFunc(query.GetGroupClause(), func(key *pg_query.Node) bool { return isNode(key, node) })
}

// top returns the SELECT of a client's statement, unless it is a set operation: EXCEPT selects rows by all values.
func (s *Statement) top() (*pg_query.SelectStmt, bool) {
	if s.root == nil {
		return nil, false
	}
	query, ok := s.root.Interface().(*pg_query.SelectStmt)
	return query, ok && query.GetOp() == pg_query.SetOperation_SETOP_NONE
}

func withoutCasts(n *pg_query.Node) *pg_query.Node {
	for {
		switch {
		case n.GetTypeCast() != nil:
			n = n.GetTypeCast().GetArg()
		case n.GetCollateClause() != nil:
			n = n.GetCollateClause().GetArg()
		default:
			return n
		}
	}
}

func isNode(n *pg_query.Node, node any) bool {
	switch node := node.(type) {
	case *pg_query.SQLValueFunction:
		return n.GetSqlvalueFunction() == node
	case *pg_query.FuncCall:
		return n.GetFuncCall() == node
	}
	return false
}

// SessionValue refuses a keyword that returns a property of the session: a replay runs as another role. It may be a
// column of the result.
func (s *Statement) SessionValue(n *pg_query.SQLValueFunction, keyword string) {
	if !s.isShown(n) {
		s.refuseSession(keyword, "SQLValueFunction", n.GetLocation())
	}
}

func (s *Statement) refuseSession(keyword, node string, offset int32) {
	s.Refuse(reasons.SessionDependent, node, offset, keyword+" depends on the session",
		"remove it, or only show it, as a column of the result: a replay runs in another session, as another role")
}

// isShownName reports whether a call returns the name of the database or the schema, as a column of the result.
func (s *Statement) isShownName(n *pg_query.FuncCall, name string) bool {
	return (name == "current_database" || name == "current_schema") && len(n.GetArgs()) == 0 && s.isShown(n)
}

// systemUser checks SYSTEM_USER, which the parser resolves as a call. Before PostgreSQL 16 it is a column of that name.
func (s *Statement) systemUser(n *pg_query.FuncCall) {
	functions := s.rules.functions
	if _, exists := functions.unlisted("system_user"); functions.source != nil && functions.shadow != nil && !exists || s.isShown(n) {
		return
	}
	s.refuseSession("system_user", "FuncCall", n.GetLocation())
}

// isSystemUser reports whether a call is the keyword SYSTEM_USER.
func isSystemUser(n *pg_query.FuncCall) bool {
	schema, name := pgparse.Name(n.GetFuncname())
	return schema == "pg_catalog" && name == "system_user" && n.GetFuncformat() == pg_query.CoercionForm_COERCE_SQL_SYNTAX
}

// NullTest allows the system columns in IS NULL and IS NOT NULL: they are never NULL.
func (s *Statement) NullTest(n *pg_query.NullTest) { s.unused(n.GetArg()) }

// counted allows the system columns in count(x), which only counts the rows in which x is not NULL.
func (s *Statement) counted(n *pg_query.FuncCall, name string) {
	if name == "count" && len(n.GetArgs()) == 1 && !n.GetAggDistinct() && len(n.GetAggOrder()) == 0 {
		s.unused(n.GetArgs()[0])
	}
}

// unused notes that only whether an expression is NULL matters.
func (s *Statement) unused(n *pg_query.Node) {
	if c := n.GetColumnRef(); c != nil {
		s.untold = append(s.untold, c)
	}
}

// isHarmlessColumn reports whether the value of a system column is not used, or the column is one of a subquery, which
// only has its name.
func (s *Statement) isHarmlessColumn(n *pg_query.ColumnRef, fields []string) bool {
	return slices.Contains(s.untold, n) || len(fields) == 2 && s.values().IsDerived(fields[0])
}

// isSameEverywhere reports whether a cast to regclass is one of a string with the name of a public table or of a system
// catalog: every neighbour has the same one, with the same OID.
func (s *Statement) isSameEverywhere(n *pg_query.TypeCast) bool {
	text := n.GetArg().GetAConst().GetSval()
	names := pgparse.Strings(n.GetTypeName().GetNames())
	if text == nil || names[len(names)-1] != "regclass" || len(n.GetTypeName().GetArrayBounds()) > 0 {
		return false
	}
	parts, ok := ident.ParseName(text.GetSval())
	switch {
	case !ok || len(parts) > 2:
		return false
	case len(parts) == 2:
		t := Table{Schema: parts[0], Name: parts[1]}
		kind := s.rules.names.Qualified(t)
		return kind == resolve.KindPublic || kind == resolve.KindSystem && t.Schema == "pg_catalog"
	}
	t, kind, _ := s.rules.names.Unqualified(parts[0], s.path)
	return kind == resolve.KindSystem && !s.path.Has("pg_catalog") || kind == resolve.KindPublic && s.isFirst(t)
}

// isFirst reports whether a relation of the shadow database is the one that its name refers to under the path of the
// statement.
func (s *Statement) isFirst(t Table) bool {
	shadow := s.rules.functions.shadow
	if shadow == nil || slices.Contains(s.query.Temporary, t.Name) || s.query.Doubt.Temporary {
		return false
	}
	for _, schema := range s.path.Known() {
		if shadow.Relations[Table{Schema: schema, Name: t.Name}] != nil {
			return schema == t.Schema
		}
	}
	return false
}
