package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// castAttribute judges (x).name as the cast of a value to a type, as PostgreSQL resolves it if there is no function of that
// name.
func (w *walker) castAttribute(name string, offset int32) {
	switch {
	case isNameType(name):
		w.refuse(ReasonNameInString, "A_Indirection", offset, "type "+name+" in attribute notation, which turns text into the name of an object", "")
	case w.r.functions.source != nil && len(w.r.functions.source.Types[name]) > 0:
		w.userType([]string{name}, offset)
	}
}

// typeName refuses the row types of protected tables: a neighbour's table has another one. It also refuses the types that
// convert text to the name of a relation, role, function or operator.
func (w *walker) typeName(n *pg_query.TypeName) {
	parts := pgparse.Strings(n.GetNames())
	if n.GetPctType() {
		w.refuse(ReasonUnsupportedNode, "TypeName", n.GetLocation(), "%TYPE", "")
	}
	if len(parts) == 0 {
		return
	}
	last := parts[len(parts)-1]
	switch strings.TrimLeft(last, "_") { // the names of array types have one or more underscores before the element type
	case "regclass", "regnamespace", "regrole", "regproc", "regprocedure", "regoper", "regoperator":
		w.refuse(ReasonNameInString, "TypeName", n.GetLocation(), "type "+last+", which turns text into the name of an object", "")
	}
	if len(parts) == 1 && slices.Contains(w.q.Temporary, strings.TrimLeft(last, "_")) {
		w.refuse(ReasonTempTable, "TypeName", n.GetLocation(), "type "+last+", which the session has as a temporary table's rows", "")
	}
	if parts[0] != "pg_catalog" && w.r.names.RowType(last) && !w.ownRowType(parts) {
		w.refuse(ReasonRowType, "TypeName", n.GetLocation(), "type "+strings.Join(parts, "."), "")
	}
	if parts[0] != "pg_catalog" && w.r.names.Protected[AnyTable] {
		w.anyTable = append(w.anyTable, anyName{rowType: last, node: "TypeName", detail: "type " + strings.Join(parts, "."), offset: n.GetLocation()})
	}
	w.userType(parts, n.GetLocation())
}

// anyName is an expression that may name a table, when tables are not listed by name.
type anyName struct {
	rowType, text string // one of them is set
	node, detail  string
	offset        int32
}

// namesOfAnyTable refuses, if tables are not listed by name, the row types of the tables that the query reads, and texts
// that name them in the arguments of a function.
func (w *walker) namesOfAnyTable() {
	read := resolve.Relations{Protected: map[string]bool{}}
	for t := range w.protected {
		read.Protected[t.Name] = true
	}
	for _, n := range w.anyTable {
		switch {
		case n.rowType != "" && read.RowType(n.rowType):
			w.refuse(ReasonRowType, n.node, n.offset, n.detail, "")
		case n.rowType == "" && read.Mentions(n.text):
			w.refuse(ReasonNameInString, n.node, n.offset, n.detail, "")
		}
	}
}

// ownRowType reports whether a type in the body of a neighbour's function or view is the row type of that neighbour's
// table.
func (w *walker) ownRowType(parts []string) bool {
	return w.callees != nil && len(parts) == 2 && w.r.names.Kinds[Table{Schema: parts[0], Name: parts[1]}] == resolve.KindProtected
}

// typeCast allows the types of names of types and text search objects only for a plain string that does not name a table.
func (w *walker) typeCast(n *pg_query.TypeCast) {
	parts := pgparse.Strings(n.GetTypeName().GetNames())
	if len(parts) == 0 {
		return
	}
	switch name := parts[len(parts)-1]; strings.TrimLeft(name, "_") {
	case "regtype", "regconfig", "regdictionary", "regcollation":
		text := n.GetArg().GetAConst().GetSval()
		_, last, qualified := strings.Cut(text.GetSval(), ".")
		if !qualified {
			last = text.GetSval()
		}
		if text == nil || strings.HasPrefix(name, "_") || w.r.names.Mentions(text.GetSval()) || w.r.names.RowType(last) || len(n.GetTypeName().GetArrayBounds()) > 0 {
			w.refuse(ReasonNameInString, "TypeCast", n.GetTypeName().GetLocation(), "a cast to "+name+" of something else than a plain name", "")
		}
	}
}
