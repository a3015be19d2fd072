package judge

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// Some constructs depend on the session or on the copy of a table, and are harmless in certain places: where their
// value is the same on every neighbour, or is not used.

// shown reports which nodes of a statement are only shown in its result, and which columns have a value that is not
// used.
type shown struct {
	names  *lookup
	untold []*pg_query.ColumnRef // of which only matters whether they are NULL
}

// isShown reports whether a node is a column of the result, with casts around it, or a group key: then its value, which
// is one constant in a session, does not select rows and values.
func (v *shown) isShown(node any) bool {
	query, ok := v.top()
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
func (v *shown) top() (*pg_query.SelectStmt, bool) {
	if v.names.root == nil {
		return nil, false
	}
	query, ok := v.names.root.Interface().(*pg_query.SelectStmt)
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
	if !s.shown.isShown(n) {
		s.refuseSession(keyword, "SQLValueFunction", n.GetLocation())
	}
}

// isShownName reports whether a call returns the name of the database or the schema, as a column of the result.
func (v *shown) isShownName(n *pg_query.FuncCall, name string) bool {
	return (name == "current_database" || name == "current_schema") && len(n.GetArgs()) == 0 && v.isShown(n)
}

// isSystemUser reports whether a call is the keyword SYSTEM_USER.
func isSystemUser(n *pg_query.FuncCall) bool {
	schema, name := pgparse.Name(n.GetFuncname())
	return schema == "pg_catalog" && name == "system_user" && n.GetFuncformat() == pg_query.CoercionForm_COERCE_SQL_SYNTAX
}

// NullTest allows the system columns in IS NULL and IS NOT NULL: they are never NULL.
func (s *Statement) NullTest(n *pg_query.NullTest) { s.shown.unused(n.GetArg()) }

// counted allows the system columns in count(x), which only counts the rows in which x is not NULL.
func (v *shown) counted(n *pg_query.FuncCall, name string) {
	if name == "count" && len(n.GetArgs()) == 1 && !n.GetAggDistinct() && len(n.GetAggOrder()) == 0 {
		v.unused(n.GetArgs()[0])
	}
}

// unused notes that only whether an expression is NULL matters.
func (v *shown) unused(n *pg_query.Node) {
	if c := n.GetColumnRef(); c != nil {
		v.untold = append(v.untold, c)
	}
}

// isHarmlessColumn reports whether the value of a system column is not used, or the column is one of a subquery, which
// only has its name.
func (v *shown) isHarmlessColumn(n *pg_query.ColumnRef, fields []string) bool {
	return slices.Contains(v.untold, n) || len(fields) == 2 && v.names.values().IsDerived(fields[0])
}

// isSameEverywhere reports whether a cast to regclass is one of a string with the name of a public table or of a system
// catalog: every neighbour has the same one, with the same OID.
func (l *lookup) isSameEverywhere(n *pg_query.TypeCast) bool {
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
		kind := l.rules.names.Qualified(t)
		return kind == resolve.KindPublic || kind == resolve.KindSystem && t.Schema == "pg_catalog"
	}
	t, kind, _ := l.rules.names.Unqualified(parts[0], l.path)
	return kind == resolve.KindSystem && !l.path.Has("pg_catalog") || kind == resolve.KindPublic && l.isFirst(t)
}

// isFirst reports whether a relation of the shadow database is the one that its name refers to under the path of the
// statement.
func (l *lookup) isFirst(t Table) bool {
	shadow := l.rules.functions.shadow
	if shadow == nil || slices.Contains(l.query.Temporary, t.Name) || l.query.Doubt.Temporary {
		return false
	}
	for _, schema := range l.path.Known() {
		if shadow.Relations[Table{Schema: schema, Name: t.Name}] != nil {
			return schema == t.Schema
		}
	}
	return false
}
