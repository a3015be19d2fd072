package reach

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// define handles the statements that define or maintain objects, of which some compute expressions at once: those of
// indexes, partition bounds, and what an ALTER puts into the rows that exist or checks on them. The creation of a
// view, rule, trigger, function, default or constraint computes nothing.
func (w *walker) define(n *pg_query.Node) {
	switch {
	case n.GetAlterTableStmt() != nil:
		for _, c := range n.GetAlterTableStmt().GetCmds() {
			w.alter(n.GetAlterTableStmt().GetRelation(), c.GetAlterTableCmd())
		}
	case n.GetAlterDomainStmt() != nil:
		w.alterDomain(n.GetAlterDomainStmt())
	case n.GetCreateStmt() != nil:
		w.message(n.GetCreateStmt().GetPartbound().ProtoReflect())
	case n.GetIndexStmt() != nil:
		w.expressions(n.GetIndexStmt().GetIndexParams())
		w.expression(n.GetIndexStmt().GetWhereClause())
	case n.GetCreateSchemaStmt() != nil:
		for _, inner := range n.GetCreateSchemaStmt().GetSchemaElts() {
			w.run(inner)
		}
	case n.GetVacuumStmt() != nil:
		w.vacuum(n.GetVacuumStmt())
	case n.GetClusterStmt() != nil:
		w.maintain(n.GetClusterStmt().GetRelation())
	case n.GetReindexStmt() != nil:
		if n.GetReindexStmt().GetKind() == pg_query.ReindexObjectType_REINDEX_OBJECT_TABLE {
			w.maintain(n.GetReindexStmt().GetRelation())
		} else {
			w.maintain(nil)
		}
	}
}

// alter handles one command of an ALTER TABLE.
func (w *walker) alter(r *pg_query.RangeVar, c *pg_query.AlterTableCmd) {
	switch c.GetSubtype() {
	case pg_query.AlterTableType_AT_AddColumn:
		w.column(c.GetDef().GetColumnDef())
	case pg_query.AlterTableType_AT_AlterColumnType:
		w.column(c.GetDef().GetColumnDef())
		w.change(nil, r, catalog.Alter)
	case pg_query.AlterTableType_AT_AddConstraint:
		w.constraint(c.GetDef().GetConstraint())
	case pg_query.AlterTableType_AT_AttachPartition:
		w.message(c.GetDef().GetPartitionCmd().GetBound().ProtoReflect())
		w.change(nil, r, catalog.Alter)
		w.change(nil, c.GetDef().GetPartitionCmd().GetName(), catalog.Alter)
	case pg_query.AlterTableType_AT_ValidateConstraint, pg_query.AlterTableType_AT_SetAccessMethod, pg_query.AlterTableType_AT_SetLogged, pg_query.AlterTableType_AT_SetUnLogged:
		w.change(nil, r, catalog.Alter)
	}
}

// column handles a column that is added, or whose type changes.
func (w *walker) column(n *pg_query.ColumnDef) {
	if n.GetTypeName() != nil {
		w.message(n.GetTypeName().ProtoReflect())
		w.cast(n.GetTypeName().GetNames(), n.GetRawDefault())
		for _, t := range w.types(n.GetTypeName()) {
			w.found(slices.ContainsFunc(t.Default, w.functions.Has), slices.ContainsFunc(t.Default, w.protected.Has), "type "+t.Name)
		}
	}
	w.expression(n.GetRawDefault())
	for _, c := range n.GetConstraints() {
		w.constraint(c.GetConstraint())
	}
}

// constraint handles a constraint, default or generated column that is computed for the rows that exist.
func (w *walker) constraint(n *pg_query.Constraint) {
	if n.GetSkipValidation() {
		return
	}
	w.expression(n.GetRawExpr())
	w.expression(n.GetWhereClause())
	w.expressions(n.GetExclusions())
}

func (w *walker) alterDomain(n *pg_query.AlterDomainStmt) {
	switch n.GetSubtype() {
	case "C":
		w.constraint(n.GetDef().GetConstraint())
	case "V":
		w.message((&pg_query.TypeName{Names: n.GetTypeName()}).ProtoReflect())
	}
}

// vacuum handles VACUUM, which computes expressions of indexes only with FULL or ANALYZE, and ANALYZE.
func (w *walker) vacuum(n *pg_query.VacuumStmt) {
	computes := func(o *pg_query.Node) bool {
		name := o.GetDefElem().GetDefname()
		return name == "full" || name == "analyze"
	}
	if n.GetIsVacuumcmd() && !slices.ContainsFunc(n.GetOptions(), computes) {
		return
	}
	if len(n.GetRels()) == 0 {
		w.maintain(nil)
	}
	for _, r := range n.GetRels() {
		w.maintain(r.GetVacuumRelation().GetRelation())
	}
}

// maintain handles a relation of which expressions of indexes are computed; nil = some of all relations.
func (w *walker) maintain(n *pg_query.RangeVar) {
	if n != nil {
		w.change(nil, n, catalog.Analyze)
		return
	}
	for _, set := range []*Set{w.functions, w.protected} {
		for _, events := range set.Changes {
			if events&catalog.Analyze != 0 {
				w.found(set == w.functions, set == w.protected, "the expressions of indexes")
			}
		}
	}
}

// ddl handles the event triggers that a statement fires.
func (w *walker) ddl(n *pg_query.Node) {
	x := w.question.options.Catalog
	if x == nil || len(x.Catalog.EventTriggers) == 0 || w.isPlanned() || !isDDL(n) {
		return
	}
	tag := w.statement.Query.Tag
	switch {
	case n.GetSelectStmt() != nil:
		tag = "SELECT INTO"
	case n.GetCreateTableAsStmt().GetObjtype() == pg_query.ObjectType_OBJECT_MATVIEW:
		tag = "CREATE MATERIALIZED VIEW"
	case n.GetCreateTableAsStmt() != nil:
		tag = "CREATE TABLE AS"
	}
	for _, e := range x.Catalog.EventTriggers {
		if len(e.Tags) > 0 && tag != "" && !slices.Contains(e.Tags, tag) {
			continue
		}
		drops := n.GetDropStmt() != nil || n.GetDropOwnedStmt() != nil || n.GetAlterTableStmt() != nil
		if e.Event == "sql_drop" && !drops || e.Event == "table_rewrite" && n.GetAlterTableStmt() == nil || e.Event == "login" {
			continue
		}
		w.found(w.functions.Has(e.Function), w.protected.Has(e.Function), "an event trigger")
	}
}

// isDDL reports whether a statement fires event triggers: it defines something of the database that is not one itself.
func isDDL(n *pg_query.Node) bool {
	m := n.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("node"))
	if fd == nil {
		return false
	}
	name := string(fd.Message().Name())
	for _, not := range []string{"Database", "dbStmt", "Role", "TableSpace", "EventTrig", "System", "DropSubscription"} {
		if strings.Contains(name, not) {
			return false
		}
	}
	if n.GetSelectStmt() != nil {
		return pgparse.Leftmost(n.GetSelectStmt()).GetIntoClause() != nil
	}
	for _, prefix := range []string{"Create", "Alter", "Drop", "Grant", "Comment", "Rename", "Define", "View", "Index", "Rule", "SecLabel", "RefreshMatView", "ImportForeign", "CompositeType", "Reassign"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
