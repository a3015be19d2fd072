package draft

import (
	"context"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// table is a table that is neither a partition nor an inheritance child nor a part of an extension.
type table struct {
	ident.Table
	key     []string // columns of the primary key, or of a unique index without NULL
	unique  []string // columns that are unique alone
	columns []column
	refers  []reference
}

type column struct {
	name, typ string
	null      bool // it may be NULL
}

// typeOf returns the type of a column.
func (t table) typeOf(name string) string {
	return t.columns[slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })].typ
}

// reference is a foreign key.
type reference struct {
	columns []string
	to      ident.Table
	on      []string
}

// function is a function or an aggregate with input arguments only, and no part of an aggregate.
type function struct {
	Schema, Name string
	Volatile     bool
	Names        []string // of the arguments; "" = none
	Types        []string
	Result       string
}

// schema is what the guesses depend on.
type schema struct {
	tables    []table
	functions []function
	calls     []call
	stored    []stored
}

// stored is a table that a materialised view reads, directly or through views.
type stored struct{ ViewSchema, View, Schema, Name string }

// call is a function that a view calls, directly or through views.
type call struct{ ViewSchema, View, Schema, Name string }

// Temporary schemas, those of the server and those that dpwatch makes are left out.
const ours = `n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT LIKE 'dpwatch%' AND n.nspname <> 'information_schema'`

// Only the tables that a foreign key can name as a whole; partitions and children come with their parents.
const whole = `c.relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid)
	AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') AND ` + ours

// The key is the primary key, otherwise the unique index without NULL that has the fewest columns.
const tablesQuery = `SELECT n.nspname, c.relname,
	COALESCE((SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(x.indkey::int2[]) WITH ORDINALITY k (number, place)
		JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number WHERE k.place <= x.indnkeyatts), '{}') AS key,
	ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index u JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.indkey[0]
		WHERE u.indrelid = c.oid AND u.indisunique AND u.indnkeyatts = 1 AND u.indpred IS NULL) AS alone,
	array_agg(a.attname::text ORDER BY a.attnum), array_agg(pg_catalog.format_type(a.atttypid, NULL) ORDER BY a.attnum), array_agg(NOT a.attnotnull ORDER BY a.attnum)
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN LATERAL (SELECT u.indkey, u.indnkeyatts FROM pg_catalog.pg_index u WHERE u.indrelid = c.oid AND u.indisunique AND u.indpred IS NULL AND u.indexprs IS NULL AND u.indisvalid
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute m WHERE m.attrelid = c.oid AND m.attnum = ANY (u.indkey) AND NOT m.attnotnull)
		ORDER BY u.indisprimary DESC, u.indnkeyatts, u.indexrelid LIMIT 1) x ON true
	WHERE ` + whole + ` GROUP BY c.oid, n.nspname, c.relname, x.indkey, x.indnkeyatts ORDER BY 1, 2`

const referencesQuery = `SELECT n.nspname, c.relname, tn.nspname, t.relname,
	(SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.conkey) WITH ORDINALITY k (number, place) JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number),
	(SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.confkey) WITH ORDINALITY k (number, place) JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number)
	FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_class c ON c.oid = f.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_class t ON t.oid = f.confrelid JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
	WHERE f.contype = 'f' AND f.conparentid = 0 AND ` + whole + ` ORDER BY 1, 2, f.conname`

const functionsQuery = `SELECT n.nspname, p.proname, p.provolatile = 'v', COALESCE(p.proargnames, '{}'),
	ARRAY(SELECT pg_catalog.format_type(a.type, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a (type, place) ORDER BY a.place), pg_catalog.format_type(p.prorettype, NULL)
	FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
	WHERE p.prokind IN ('f', 'a') AND p.proargmodes IS NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_aggregate a
		WHERE p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)) AND ` + ours + ` ORDER BY 1, 2, p.oid`

const callsQuery = `WITH RECURSIVE calls (view, function) AS (
		SELECT w.ev_class, d.refobjid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d ON d.objid = w.oid
		WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_proc'::regclass
		UNION
		SELECT w.ev_class, x.function FROM calls x JOIN pg_catalog.pg_class c ON c.oid = x.view AND c.relkind = 'v' JOIN pg_catalog.pg_depend d ON d.refobjid = c.oid
			JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid
		WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass)
	SELECT n.nspname, c.relname, pn.nspname, p.proname FROM calls x JOIN pg_catalog.pg_class c ON c.oid = x.view AND c.relkind = 'v' JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_catalog.pg_proc p ON p.oid = x.function JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
	WHERE ` + ours + ` ORDER BY 1, 2, 3, 4`

const storedQuery = `WITH RECURSIVE reads (view, relation) AS (
		SELECT w.ev_class, d.refobjid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d ON d.objid = w.oid AND d.refobjid <> w.ev_class
		WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
		UNION
		SELECT x.view, d.refobjid FROM reads x JOIN pg_catalog.pg_rewrite w ON w.ev_class = x.relation JOIN pg_catalog.pg_depend d ON d.objid = w.oid
		WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass)
	SELECT n.nspname, c.relname, tn.nspname, t.relname FROM reads x JOIN pg_catalog.pg_class c ON c.oid = x.view AND c.relkind = 'm'
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_catalog.pg_class t ON t.oid = x.relation AND t.relkind IN ('r', 'p') JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
	WHERE ` + ours + ` ORDER BY 1, 2, 3, 4`

// recordsQuery returns the schemas with records of copies that the role may read.
const recordsQuery = `SELECT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relname = 'neighbour_set' AND n.nspname LIKE 'dpwatch%' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1`

// copies returns the schemas of copies, which are in the database if it is the shadow database as well.
func copies(ctx context.Context, conn connect.Conn) (schemas []string, err error) {
	records, err := connect.Values[string](ctx, conn, recordsQuery)
	for _, r := range records {
		var found []string
		if err == nil {
			found, err = connect.Values[string](ctx, conn, "SELECT DISTINCT unnest(d1 || ARRAY[d0, coalesce(to_jsonb(s)->>'twin', ''), coalesce(to_jsonb(s)->>'guard', '')]) FROM "+ident.Quote(r, "neighbour_set")+" s")
		}
		schemas = append(schemas, found...)
	}
	return schemas, err
}

// read reads the catalog of a database.
func read(ctx context.Context, conn connect.Conn) (s schema, err error) {
	tables, err := connect.Structs[struct {
		Schema, Name               string
		Key, Alone, Columns, Types []string
		Null                       []bool
	}](ctx, conn, tablesQuery)
	if err != nil {
		return s, err
	}
	made, err := copies(ctx, conn)
	if err != nil {
		return s, err
	}
	places := map[ident.Table]int{}
	for _, t := range tables {
		if slices.Contains(made, t.Schema) {
			continue
		}
		one := table{Table: ident.Table{Schema: t.Schema, Name: t.Name}, key: t.Key, unique: t.Alone}
		for i, name := range t.Columns {
			one.columns = append(one.columns, column{name, t.Types[i], t.Null[i]})
		}
		places[one.Table] = len(s.tables)
		s.tables = append(s.tables, one)
	}
	references, err := connect.Structs[struct {
		Schema, Name, ToSchema, ToName string
		Columns, On                    []string
	}](ctx, conn, referencesQuery)
	if err != nil {
		return s, err
	}
	for _, r := range references {
		if i, ok := places[ident.Table{Schema: r.Schema, Name: r.Name}]; ok {
			s.tables[i].refers = append(s.tables[i].refers, reference{r.Columns, ident.Table{Schema: r.ToSchema, Name: r.ToName}, r.On})
		}
	}
	if s.functions, err = connect.Structs[function](ctx, conn, functionsQuery); err != nil {
		return s, err
	}
	s.functions = slices.DeleteFunc(s.functions, func(f function) bool { return slices.Contains(made, f.Schema) })
	if s.calls, err = connect.Structs[call](ctx, conn, callsQuery); err != nil {
		return s, err
	}
	s.calls = slices.DeleteFunc(s.calls, func(c call) bool { return slices.Contains(made, c.ViewSchema) })
	s.stored, err = connect.Structs[stored](ctx, conn, storedQuery)
	s.stored = slices.DeleteFunc(s.stored, func(v stored) bool { return slices.Contains(made, v.ViewSchema) })
	return s, err
}
