package judge

import (
	"fmt"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// texts are the expressions of a statement that may name a table.
type texts struct {
	findings *findings
	rules    *Rules
	anyTable []anyName // if any table is protected: what may name one
}

// Constant refuses a string that names a protected table if userArgs: a user-defined function may use it as a name.
func (s *Statement) Constant(n *pg_query.A_Const, userArgs bool) {
	if userArgs && n.GetSval() != nil {
		s.texts.textArgument(n.GetSval().GetSval(), "A_Const", "a string in the arguments of a function contains the name of a protected table", n.GetLocation())
	}
}

// textArgument refuses a text that names a protected table.
func (x *texts) textArgument(text, node, detail string, offset int32) {
	switch {
	case x.rules.names.Protected[resolve.AnyTable]:
		x.anyTable = append(x.anyTable, anyName{text: text, node: node, detail: detail, offset: offset})
	case x.rules.names.Mentions(text):
		x.findings.Refuse(reasons.NameInString, node, offset, detail, "")
	}
}

// firstNormalOID is the first OID of user-defined objects, which differ in another database (access/transam.h).
const firstNormalOID = 16384

// Param checks the bound parameter of $n; userArgs as for Constant.
func (s *Statement) Param(n *pg_query.ParamRef, userArgs bool) {
	if n.GetNumber() < 1 || int(n.GetNumber()) > len(s.query.Params) {
		s.Refuse(reasons.Parameter, "ParamRef", n.GetLocation(), fmt.Sprintf("parameter $%d has no bound value", n.GetNumber()), "")
		return
	}
	p := s.query.Params[n.GetNumber()-1]
	switch {
	case p.OID >= firstNormalOID:
		s.Refuse(reasons.Parameter, "ParamRef", n.GetLocation(), fmt.Sprintf("parameter $%d has a user-defined type", n.GetNumber()), "cast it in the statement, and let the server infer its type")
	case isRegOID(p.OID):
		s.Refuse(reasons.Parameter, "ParamRef", n.GetLocation(), fmt.Sprintf("parameter $%d has a type for names of objects", n.GetNumber()), "")
	case userArgs:
		s.texts.textArgument(string(p.Value), "ParamRef", "a parameter in the arguments of a function contains the name of a protected table", n.GetLocation())
	}
}

// isRegOID reports whether a type is one whose text form is the name of an object, or an array of it (pg_type.dat).
func isRegOID(oid uint32) bool {
	switch oid {
	case 24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191,
		1008, 2207, 2208, 2209, 2210, 2211, 3735, 3770, 4090, 4097, 4192:
		return true
	}
	return false
}

// anyName is an expression that may name a table, when tables are not listed by name.
type anyName struct {
	rowType, text string // one of them is set
	node, detail  string
	offset        int32
}

// namesOfAnyTable refuses, if tables are not listed by name, the row types of the tables that the query reads, and
// texts that name them in the arguments of a function.
func (x *texts) namesOfAnyTable(protected map[Table]bool) {
	read := resolve.Relations{Protected: map[string]bool{}}
	for t := range protected {
		read.Protected[t.Name] = true
	}
	for _, n := range x.anyTable {
		switch {
		case n.rowType != "" && read.RowType(n.rowType):
			x.findings.Refuse(reasons.RowType, n.node, n.offset, n.detail, "")
		case n.rowType == "" && read.Mentions(n.text):
			x.findings.Refuse(reasons.NameInString, n.node, n.offset, n.detail, "")
		}
	}
}
