package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// place is the context of the walk.
type place struct {
	ctes *pgparse.CTEs
	// userArgs: within the arguments of a user-defined function, where a string may become a name.
	userArgs bool
	// near is the byte offset of the innermost node that has one, for refusals of nodes without an offset; -1 = none.
	near int32
}

// walker visits every node of one statement: it resolves names, collects the edits and calls, and records refusals.
type walker struct {
	r    *Rewriter
	q    capture.Query
	path resolve.Path

	edits     []edit
	protected map[Table]bool
	public    map[Table]bool
	functions map[string]bool
	calls     []*claim.Call
	assumed   map[string]bool
	system    bool // a system relation was read
	refusals  []refusal
	anyTable  []anyName // if any table is protected: what may name one

	root   protoreflect.Message
	types  *resolve.Values // created when needed
	uses   []nameUse
	replay resolve.Path // set by resolve

	// callees collects, for a judge, the user-defined functions that the body of a function calls; nil outside of bodies.
	callees map[Table]bool
	// printed: the server printed the text from its own tree, in which x.f is a column and a call is printed as f(x).
	printed bool
}

// newWalker returns a walker for a statement whose names are resolved under a path.
func newWalker(r *Rewriter, q capture.Query, path resolve.Path) *walker {
	return &walker{
		r: r, q: q, path: path,
		protected: map[Table]bool{}, public: map[Table]bool{}, functions: map[string]bool{}, assumed: map[string]bool{},
	}
}

// refusal is a refusal found by the walk; touches: the node may refer to a protected table.
type refusal struct {
	*UnsupportedError
	touches bool
}

// refuse records a refusal.
func (w *walker) refuse(reason Reason, node string, offset int32, detail, hint string) *refusal {
	if hint == "" {
		hint = plainHints[reason]
	}
	w.refusals = append(w.refusals, refusal{UnsupportedError: &UnsupportedError{
		Reason: reason, Node: node, Detail: detail, Offset: int(offset), Hint: hint,
	}})
	return &w.refusals[len(w.refusals)-1]
}

// plainHints are the hints of refusals without a specific one.
var plainHints = map[Reason]string{
	ReasonSideEffects:     "a replay does not write, lock or wait: leave that part out",
	ReasonSystemColumn:    "leave the column out: it differs between any two copies of a table",
	ReasonUnsafeFunction:  "leave it out, or call it in a separate query: its result differs in a replay",
	ReasonNameInString:    "name the table in FROM, not in a string",
	ReasonRowType:         "name the types of the columns: a copy's rows are of another type",
	ReasonTempTable:       "a replay cannot see the session's temporary tables: put the table's query in its place",
	ReasonUnsupportedNode: "write it in another way, or report the syntax",
}

// visit handles one message of the tree. The kinds listed here are all that a SELECT can contain; any other kind is
// refused, so that a node whose meaning is not implemented is never replayed.
func (w *walker) visit(m protoreflect.Message, at place) {
	if n, ok := m.Interface().(interface{ GetLocation() int32 }); ok && n.GetLocation() > 0 {
		at.near = n.GetLocation()
	}
	switch n := m.Interface().(type) {
	case *pg_query.SelectStmt:
		w.selectStmt(n, m, at)
		return
	case *pg_query.RangeVar:
		w.rangeVar(n, at)
	case *pg_query.ColumnRef:
		w.columnRef(n)
	case *pg_query.FuncCall:
		at = w.funcCall(n, at)
	case *pg_query.TypeName:
		w.typeName(n)
	case *pg_query.TypeCast:
		w.typeCast(n)
	case *pg_query.ParamRef:
		w.paramRef(n, at)
	case *pg_query.A_Const:
		w.constant(n, at)
	case *pg_query.A_Expr:
		w.operators(n)
	case *pg_query.SubLink:
		w.subLink(n)
	case *pg_query.CaseExpr:
		if n.GetArg() != nil {
			w.operatorCall("", resolve.CaseOperands(n), "CaseExpr", n.GetLocation())
		}
	case *pg_query.JoinExpr:
		if n.GetIsNatural() || len(n.GetUsingClause()) > 0 {
			w.operatorCall("", resolve.Operands{Name: "="}, "JoinExpr", leftmost(n.GetLarg(), at.near))
		}
	case *pg_query.SortBy:
		w.operator(n.GetUseOp(), resolve.Operands{Name: pgparse.Last(n.GetUseOp()), Left: []*pg_query.Node{n.GetNode()}}, "SortBy", n.GetLocation())
	case *pg_query.A_Indirection:
		w.indirection(n, at)
	case *pg_query.JsonObjectConstructor, *pg_query.JsonArrayConstructor, *pg_query.JsonArrayQueryConstructor, *pg_query.JsonObjectAgg, *pg_query.JsonArrayAgg:
		w.jsonSyntax(m, at)
	case *pg_query.SQLValueFunction:
		w.sqlValue(n)
	case *pg_query.RangeTableSample:
		w.tableSample(n)
	case *pg_query.LockingClause:
		w.refuse(ReasonSideEffects, "LockingClause", lockOffset(n, at), "row locks", "")
		return
	case *pg_query.InsertStmt, *pg_query.UpdateStmt, *pg_query.DeleteStmt, *pg_query.MergeStmt:
		detail := "a WITH query that changes data"
		if w.callees != nil {
			detail = "a statement that changes data"
		}
		w.refuse(ReasonSideEffects, string(m.Descriptor().Name()), at.near, detail, "")
		return
	case *pg_query.Node, *pg_query.List, *pg_query.ResTarget, *pg_query.String, *pg_query.Integer, *pg_query.Float,
		*pg_query.Boolean, *pg_query.BitString, *pg_query.A_Star, *pg_query.A_ArrayExpr, *pg_query.A_Indices,
		*pg_query.BoolExpr, *pg_query.NullTest, *pg_query.BooleanTest, *pg_query.CaseWhen,
		*pg_query.CoalesceExpr, *pg_query.MinMaxExpr, *pg_query.CollateClause, *pg_query.RowExpr, *pg_query.Alias,
		*pg_query.RangeSubselect, *pg_query.RangeFunction, *pg_query.ColumnDef,
		*pg_query.RangeTableFunc, *pg_query.RangeTableFuncCol, *pg_query.CTESearchClause, *pg_query.CTECycleClause,
		*pg_query.WindowDef, *pg_query.GroupingSet, *pg_query.GroupingFunc, *pg_query.NamedArgExpr,
		*pg_query.XmlExpr, *pg_query.XmlSerialize, *pg_query.JsonFormat, *pg_query.JsonReturning, *pg_query.JsonValueExpr,
		*pg_query.JsonOutput, *pg_query.JsonKeyValue, *pg_query.JsonAggConstructor, *pg_query.JsonIsPredicate:
	default:
		w.refuse(ReasonUnsupportedNode, string(m.Descriptor().Name()), at.near, "syntax that is not known to be safe to replay", "")
		return
	}
	w.children(m, at)
}

// children visits every message below m except those of the field skip.
func (w *walker) children(m protoreflect.Message, at place, skip ...protoreflect.Name) {
	pgparse.Children(m, func(c protoreflect.Message) { w.visit(c, at) }, skip...)
}

// leftmost returns the offset of the first relation of a join, which has no offset itself, or near.
func leftmost(n *pg_query.Node, near int32) int32 {
	for n.GetJoinExpr() != nil {
		n = n.GetJoinExpr().GetLarg()
	}
	if n.GetRangeVar() != nil {
		return n.GetRangeVar().GetLocation()
	}
	return near
}

// lockOffset returns the offset of the first relation in a locking clause, or of the nearest node.
func lockOffset(n *pg_query.LockingClause, at place) int32 {
	if len(n.GetLockedRels()) > 0 {
		return n.GetLockedRels()[0].GetRangeVar().GetLocation()
	}
	return at.near
}

// selectStmt opens the scope of WITH for the rest of the statement, set-operation arms included.
func (w *walker) selectStmt(n *pg_query.SelectStmt, m protoreflect.Message, at place) {
	if n.GetIntoClause() != nil {
		w.refuse(ReasonSideEffects, "IntoClause", n.GetIntoClause().GetRel().GetLocation(), "SELECT INTO makes a table", "")
		return
	}

	with := n.GetWithClause()
	at.ctes = at.ctes.With(with, func(query *pg_query.Node, in *pgparse.CTEs) {
		cte := query.GetCommonTableExpr()
		if cte == nil {
			w.refuse(ReasonUnsupportedNode, nodeName(query), with.GetLocation(), "an unknown kind of WITH query", "")
			return
		}
		w.children(cte.ProtoReflect(), place{ctes: in, userArgs: at.userArgs, near: cte.GetLocation()})
	})
	w.children(m, at, "with_clause")
}

// rangeVar resolves a relation in FROM.
func (w *walker) rangeVar(n *pg_query.RangeVar, at place) {
	if n.GetSchemaname() == "" && at.ctes.Has(n.GetRelname()) {
		return
	}
	if !w.catalog(n.GetCatalogname(), "RangeVar", n.GetLocation()) {
		return
	}
	if n.GetSchemaname() == "" && slices.Contains(w.q.Temporary, n.GetRelname()) {
		w.refuse(ReasonTempTable, "RangeVar", n.GetLocation(), "relation "+n.GetRelname()+", which the session has as a temporary one", "qualify the name with its schema; a replay cannot see temporary tables").touches = w.r.names.Protected[n.GetRelname()]
		return
	}
	t := Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}
	kind, doubt := resolve.KindUnknown, resolve.DoubtUnlisted
	if t.Schema != "" {
		kind = w.r.names.Qualified(t)
	} else if t, kind, doubt = w.r.names.Unqualified(n.GetRelname(), w.path); kind == resolve.KindUnknown {
		t = Table{Schema: "", Name: n.GetRelname()}
	}
	w.assumeName(n.GetSchemaname() == "")
	if fault, bad := w.r.names.refused[t]; bad {
		w.refuse(fault.reason, "RangeVar", n.GetLocation(), "relation "+t.String()+" "+fault.detail, fault.hint).touches = true
		return
	}
	qualifiers := 0
	for _, part := range []string{n.GetCatalogname(), n.GetSchemaname()} {
		if part != "" {
			qualifiers++
		}
	}
	switch kind {
	case resolve.KindProtected:
		w.protected[t] = true
		for _, base := range w.r.names.bases[t] {
			w.protected[base] = true
		}
		w.edit(edit{node: nodeRangeVar, at: n.GetLocation(), qualifiers: qualifiers, table: t, protected: true})
	case resolve.KindPublic:
		w.public[t] = true
		w.edit(edit{node: nodeRangeVar, at: n.GetLocation(), qualifiers: qualifiers, table: t})
	case resolve.KindSystem:
		w.system = true
		if qualifiers == 2 {
			w.edit(edit{node: nodeRangeVar, at: n.GetLocation(), qualifiers: qualifiers, table: t})
		}
		if !resolve.IsStaticCatalog(t) {
			w.refuse(ReasonSystemCatalog, "RangeVar", n.GetLocation(), "relation "+t.String(), "a catalog describes other tables in a replay: query it separately")
		}
	default:
		w.unreadable(t, kind, doubtful[doubt], n.GetLocation())
	}
}

// unreadable refuses a relation that is neither protected nor public nor a system relation.
func (w *walker) unreadable(t Table, kind resolve.Kind, reason Reason, offset int32) {
	detail, hint := "relation "+strings.TrimPrefix(t.String(), "."), ""
	switch {
	case kind == resolve.KindTemp:
		reason = ReasonTempTable
	case reason == ReasonSettingsUncertain:
		hint = "qualify the name with its schema"
	case reason == ReasonAmbiguousName:
		hint = "the contents of a schema earlier in the search_path are not known: qualify the name, or set privacy.catalog (which does not cover information_schema)"
	case t.Schema == "" && w.r.names.Protected[t.Name]:
		hint = "a protected table has this name, but not in a schema of the session's search_path"
	default:
		reason, hint = ReasonUnknownTable, "list it in privacy.protected, if it holds or reads personal data, or in privacy.public"
	}
	w.refuse(reason, "RangeVar", offset, detail, hint).touches = w.r.names.Protected[t.Name]
}

// catalog checks the database of a qualified name.
func (w *walker) catalog(name, node string, offset int32) bool {
	if name == "" || name == w.r.database() {
		return true
	}
	w.refuse(ReasonAmbiguousName, node, offset, "a name qualified with a database", "name the database of the protected tables in privacy.database").touches = true
	return false
}

// edit records one edit, unless it would change nothing.
func (w *walker) edit(e edit) {
	if !e.protected && e.qualifiers == 1 {
		return
	}
	w.edits = append(w.edits, e)
}
