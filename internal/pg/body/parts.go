package body

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Part is one statement of a body, or an expression of it as a SELECT.
type Part struct {
	SQL      string
	Repeated bool // it may run more than once
	Bound    bool // its value depends on variables of the body
	Dynamic  bool // its value is executed as a statement, and is no constant
}

// Code is the body of a procedure or a DO block. Arguments is the list of its arguments as the catalog prints it.
type Code struct{ Language, Text, Arguments string }

// Parts returns the statements and expressions of a body, in its order; false if it cannot be parsed. A constant text
// that is executed is a part.
func Parts(limits Limits, code Code) ([]Part, bool) {
	if limits.Exceeded(code.Text) != "" || code.Language != "plpgsql" && code.Language != "sql" || IsAtomic(code.Text) {
		return nil, false
	}
	p := &plpgsqlSplitter{variables: map[string]bool{}}
	if code.Language == "plpgsql" {
		var ok bool
		if p, ok = splitPLpgSQL(code.Text); !ok {
			return nil, false
		}
	} else {
		for _, statement := range sqltext.Split(code.Text) {
			p.add(statement, false)
		}
	}
	for _, word := range strings.FieldsFunc(ident.Fold(code.Arguments), func(r rune) bool { return r < 0x80 && !ident.IsNameByte(byte(r)) }) {
		p.variables[word] = true
	}
	parts := make([]Part, 0, len(p.parts))
	for _, part := range p.parts {
		tree, err := pgparse.Parse(part.sql)
		if limits.Exceeded(part.sql) != "" || err != nil || len(tree.GetStmts()) != 1 {
			return nil, false
		}
		stmt := tree.GetStmts()[0].GetStmt()
		to := Part{SQL: strings.TrimSpace(part.sql), Repeated: part.repeated, Bound: p.bound(stmt)}
		if part.dynamic {
			constant := constantOf(stmt)
			if to.Dynamic = constant == nil; constant != nil {
				to.SQL, to.Bound = constant.GetSval(), false
			}
		}
		parts = append(parts, to)
	}
	return parts, true
}

// constantOf returns the text that a SELECT consists of; nil if it is not a constant.
func constantOf(n *pg_query.Node) *pg_query.String {
	if targets := n.GetSelectStmt().GetTargetList(); len(targets) == 1 {
		return targets[0].GetResTarget().GetVal().GetAConst().GetSval()
	}
	return nil
}

// bound reports whether a statement names a variable of the body, or may.
func (p *plpgsqlSplitter) bound(n *pg_query.Node) (found bool) {
	pgparse.Inspect(n.ProtoReflect(), func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg_query.ParamRef:
			found = true
		case *pg_query.ColumnRef:
			if fields := n.GetFields(); len(fields) > 0 {
				name := fields[0].GetString_().GetSval()
				found = found || p.variables[ident.Fold(name)] || isImplicit(name)
			}
		}
		return !found
	})
	return found
}

// isImplicit reports whether PL/pgSQL declares a variable of that name (PostgreSQL manual, part V, PL/pgSQL).
func isImplicit(name string) bool {
	switch name {
	case "found", "sqlstate", "sqlerrm", "new", "old":
		return true
	}
	return strings.HasPrefix(name, "tg_")
}
