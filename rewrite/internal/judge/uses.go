package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// uses are the names that a statement, a function or a view uses, as written, whatever they refer to.
type uses struct {
	calls, relations, types, operators []Table
	attributes                         []string // f of x.f, which may be the call f(x)
	settings, sets                     []string // names of settings that it reads, and that it sets
	beside                             []string // what it reads that is no name: "executes ..."
}

// usesOf returns what a tree uses.
func usesOf(trees ...protoreflect.Message) *uses {
	u := &uses{}
	for _, tree := range trees {
		u.visit(tree, nil)
	}
	return u
}

// usesOfFunction returns what the body of a function, and the defaults of its arguments, use. The functions of an
// aggregate are in the catalog.
func usesOfFunction(f *catalog.Function, limits body.Limits) *uses {
	u := &uses{types: slices.Concat(f.Takes, f.Gives), sets: slices.Collect(maps.Keys(f.Settings))}
	if strings.Contains(f.Arguments, " DEFAULT ") && limits.Exceeded(f.Arguments) == "" {
		if tree, err := pgparse.Parse("CREATE FUNCTION f(" + f.Arguments + ") RETURNS int LANGUAGE sql AS ''"); err == nil && len(tree.GetStmts()) == 1 {
			for _, p := range tree.GetStmts()[0].GetStmt().GetCreateFunctionStmt().GetParameters() {
				u.visit(p.GetFunctionParameter().GetDefexpr().ProtoReflect(), nil)
			}
		} else {
			u.beside = append(u.beside, "has defaults that cannot be parsed")
		}
	}
	switch {
	case f.Kind == catalog.KindAggregate:
		return u
	case isForeignCode(f) && slices.Contains(trusted, f.Language):
		if executesSQL(f) {
			u.beside = append(u.beside, "executes SQL in "+f.Language+", which is not analysed")
		}
		return u
	case isForeignCode(f):
		u.beside = append(u.beside, "is written in "+f.Language+", which may read anything, and belongs to no extension")
		return u
	}
	statements, fault := body.Statements(limits, f.Language, f.Body)
	if fault != "" {
		u.beside = append(u.beside, fault)
	}
	for _, s := range statements {
		if s.Dynamic {
			u.beside = append(u.beside, executesText)
		}
		u.visit(s.Node.ProtoReflect(), nil)
	}
	return u
}

// trusted are the languages that cannot read anything but by SQL.
var trusted = []string{"plperl", "pltcl", "plv8", "pllua", "plrust", "plcoffee", "plls", "java"}

// usesOfView returns what the query of a view uses, besides relations, which are in the catalog.
func usesOfView(r *catalog.Relation, limits body.Limits) *uses {
	if limits.Exceeded(r.Definition) == "" {
		if tree, err := pgparse.Parse(r.Definition); err == nil && len(tree.GetStmts()) == 1 {
			return usesOf(tree.GetStmts()[0].GetStmt().ProtoReflect())
		}
	}
	return &uses{beside: []string{"has a query that cannot be parsed"}}
}

// visit handles one message; ctes are in scope.
func (u *uses) visit(m protoreflect.Message, ctes *pgparse.CTEs) {
	switch n := m.Interface().(type) {
	case *pg_query.RangeVar:
		if n.GetSchemaname() != "" || !ctes.Has(n.GetRelname()) {
			u.relations = append(u.relations, Table{Schema: n.GetSchemaname(), Name: n.GetRelname()})
		}
	case *pg_query.FuncCall:
		u.call(n)
	case *pg_query.ColumnRef:
		if fields := n.GetFields(); len(fields) > 1 {
			u.attributes = append(u.attributes, pgparse.Last(fields))
		}
	case *pg_query.A_Indirection:
		u.attributes = append(u.attributes, pgparse.Strings(n.GetIndirection())...)
	case *pg_query.TypeName:
		schema, name := pgparse.Name(n.GetNames())
		u.types = append(u.types, Table{Schema: schema, Name: name}, Table{Schema: schema, Name: strings.TrimLeft(name, "_")})
	case *pg_query.A_Expr:
		u.operator(n.GetName())
	case *pg_query.SubLink:
		u.operator(n.GetOperName())
	case *pg_query.SortBy:
		u.operator(n.GetUseOp())
	case *pg_query.VariableSetStmt:
		u.sets = append(u.sets, strings.ToLower(n.GetName()))
	case *pg_query.VariableShowStmt:
		u.settings = append(u.settings, strings.ToLower(n.GetName()))
	case *pg_query.CopyStmt:
		u.beside = append(u.beside, "reads files of the server (COPY)")
	case *pg_query.ListenStmt, *pg_query.UnlistenStmt, *pg_query.NotifyStmt:
		u.beside = append(u.beside, "uses notifications")
	case *pg_query.DoStmt, *pg_query.ExecuteStmt:
		u.beside = append(u.beside, executesText)
	case *pg_query.LoadStmt:
		u.beside = append(u.beside, "loads a library")
	}
	if n, ok := m.Interface().(interface{ GetWithClause() *pg_query.WithClause }); ok {
		ctes = ctes.With(n.GetWithClause(), func(query *pg_query.Node, in *pgparse.CTEs) {
			u.visit(query.GetCommonTableExpr().ProtoReflect(), in)
		})
	}
	pgparse.Children(m, func(c protoreflect.Message) { u.visit(c, ctes) }, "with_clause")
}

func (u *uses) operator(names []*pg_query.Node) {
	if schema, name := pgparse.Name(names); name != "" {
		u.operators = append(u.operators, Table{Schema: schema, Name: name})
	}
}

// call records a call. current_setting and set_config are uses of the setting that they name.
func (u *uses) call(n *pg_query.FuncCall) {
	schema, name := pgparse.Name(n.GetFuncname())
	u.calls = append(u.calls, Table{Schema: schema, Name: name})
	if schema != "" && schema != "pg_catalog" || len(n.GetArgs()) == 0 {
		return
	}
	setting := strings.ToLower(pgparse.Text(n.GetArgs()[0]))
	switch {
	case name == "set_config" && setting != "":
		u.sets = append(u.sets, setting)
	case name == "current_setting" && setting != "":
		u.settings = append(u.settings, setting)
	case name == "current_setting":
		u.beside = append(u.beside, "reads a setting whose name is not a constant")
	}
}

// extensionsElsewhere are extensions whose functions read something that is the same for all copies, without being
// seen; of tablefunc and xml2, some functions do.
var extensionsElsewhere = map[string]string{
	"dblink": "other servers", "http": "other servers", "pg_net": "other servers", "plproxy": "other servers", "pg_background": "what a text among its arguments names",
	"adminpack": "files of the server", "pg_cron": "what a text among its arguments names", "orafce": "files of the server and packages of state",
	"pgstattuple": "statistics of the server", "pageinspect": "pages of tables", "pg_buffercache": "statistics of the server", "pg_freespacemap": "statistics of the server",
	"pg_visibility": "statistics of the server", "pgrowlocks": "locks of the server", "pg_stat_statements": "statistics of the server", "amcheck": "pages of tables",
	"pg_walinspect": "the log of the server", "pg_prewarm": "pages of tables", "old_snapshot": "the state of the server", "pg_surgery": "pages of tables", "lo": "large objects",
}

// elsewhere returns what a function of an extension reads; "" = nothing that is not seen.
func elsewhere(f *catalog.Function) string {
	what := extensionsElsewhere[f.Extension]
	switch {
	case strings.HasSuffix(f.Extension, "_fdw"):
		what = "other servers"
	case f.Extension == "tablefunc" && f.Name != "normal_rand", f.Extension == "xml2" && f.Name == "xpath_table":
		what = "what a text among its arguments names"
	}
	if what == "" {
		return ""
	}
	return fmt.Sprintf("of the extension %s reads %s", f.Extension, what)
}
