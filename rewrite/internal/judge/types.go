package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// rowTypeOf continues the detail of a refusal after the name of a type.
const rowTypeOf = " is the row type of a protected table"

// Type refuses the row types of protected tables: a neighbour's table has another one. It also refuses the types that
// convert text to the name of a relation, role, function or operator.
func (s *Statement) Type(n *pg_query.TypeName) {
	parts := pgparse.Strings(n.GetNames())
	if n.GetPctType() {
		s.Refuse(reasons.UnsupportedNode, "TypeName", n.GetLocation(), "%TYPE, the type of a column", "")
	}
	if len(parts) == 0 {
		return
	}
	last := parts[len(parts)-1]
	switch strings.TrimLeft(last, "_") { // the names of array types have one or more underscores before the element type
	case "regclass":
		if s.sameEverywhere == n {
			break
		}
		fallthrough
	case "regnamespace", "regrole", "regproc", "regprocedure", "regoper", "regoperator":
		s.Refuse(reasons.NameInString, "TypeName", n.GetLocation(), "type "+last+" converts text to the name of an object", "")
	}
	if len(parts) == 1 && slices.Contains(s.query.Temporary, strings.TrimLeft(last, "_")) {
		s.Refuse(reasons.TempTable, "TypeName", n.GetLocation(), "type "+last+" is the row type of a temporary table of the session", "")
	}
	if parts[0] != "pg_catalog" && s.rules.names.RowType(last) && !s.Called.ownRowType(parts) {
		s.Refuse(reasons.RowType, "TypeName", n.GetLocation(), "type "+strings.Join(parts, ".")+rowTypeOf, "")
	}
	if parts[0] != "pg_catalog" && s.rules.names.Protected[resolve.AnyTable] {
		s.texts.anyTable = append(s.texts.anyTable, anyName{rowType: last, node: "TypeName", detail: "type " + strings.Join(parts, ".") + rowTypeOf, offset: n.GetLocation()})
	}
	s.Called.userType(parts, n.GetLocation())
}

// Cast allows regclass only for the name of a relation that is the same on every neighbour, and the types of names of
// types and text search objects only for a plain string that does not name a table.
func (s *Statement) Cast(n *pg_query.TypeCast) {
	parts := pgparse.Strings(n.GetTypeName().GetNames())
	if len(parts) == 0 {
		return
	}
	switch name := parts[len(parts)-1]; strings.TrimLeft(name, "_") {
	case "regclass":
		if s.names.isSameEverywhere(n) {
			s.sameEverywhere = n.GetTypeName()
		}
	case "regtype", "regconfig", "regdictionary", "regcollation":
		text := n.GetArg().GetAConst().GetSval()
		_, last, qualified := strings.Cut(text.GetSval(), ".")
		if !qualified {
			last = text.GetSval()
		}
		if text == nil || strings.HasPrefix(name, "_") || s.rules.names.Mentions(text.GetSval()) || s.rules.names.RowType(last) || len(n.GetTypeName().GetArrayBounds()) > 0 {
			s.Refuse(reasons.NameInString, "TypeCast", n.GetTypeName().GetLocation(), "a cast to "+name+" of something other than a string with a plain name", "")
		}
	}
}

// builtinTypes are the types of pg_catalog whose names the parser leaves unqualified. One that is missing costs only a
// reading of the catalogs.
const builtinTypes = " aclitem anyarray anycompatible anyelement anyenum anynonarray anyrange bool box bpchar bytea char cid cidr circle cstring date " +
	"datemultirange daterange float4 float8 gtsvector inet int2 int2vector int4 int4multirange int4range int8 int8multirange int8range interval json jsonb " +
	"jsonpath line lseg macaddr macaddr8 money name numeric nummultirange numrange oid oidvector path pg_lsn pg_snapshot point polygon record refcursor " +
	"regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole regtype text tid time timestamp timestamptz " +
	"timetz tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector txid_snapshot unknown uuid varbit varchar void xid xid8 xml "

// knowsType reports whether a type is built in, or in the client's catalog.
func (l *lookup) knowsType(name string) bool {
	source := l.rules.functions.source
	return strings.Contains(builtinTypes, " "+name+" ") || len(source.Types[name]) > 0 || len(source.Named[name]) > 0
}
