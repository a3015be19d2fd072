package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// The names of the options that a statement can set, as regular expressions. The server keeps values of its own in the
// same arrays, such as pg_attver of a column since PostgreSQL 15.20: they differ between two tables with one
// definition, and no statement can copy them. Indexes are read by pg_get_indexdef, which prints only what a statement
// can set.
const (
	storageParameters = `fillfactor|toast_tuple_target|parallel_workers|user_catalog_table|vacuum_\w+|(log_)?auto(vacuum|analyze)_\w+|security_(barrier|invoker)|check_option`
	columnOptions     = `n_distinct|n_distinct_inherited`
)

// settable returns an SQL expression: the entries name=value of an array of options whose names match, sorted.
func settable(options, names string) string {
	return "(SELECT coalesce(array_agg(o ORDER BY o), '{}') FROM unnest(" + options + ") o WHERE o ~ '^(" + names + ")=')"
}

// describe reads the relations: parents before children, and views in OID order.
func (d *Discovery) describe() error {
	relations, err := rows[Relation](d, `SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relispartition,
		coalesce(pg_get_partkeydef(c.oid), ''), coalesce(pg_get_expr(c.relpartbound, c.oid), ''), `+settable("c.reloptions", storageParameters)+`,
		coalesce(CASE WHEN c.relkind IN ('v', 'm') THEN rtrim(pg_get_viewdef(c.oid), E'; \n') END, ''),
		greatest(c.reltuples, 0)::int8, c.reltuples > 0 OR coalesce(pg_relation_size(c.oid), 0) = 0 OR c.reltuples = 0 AND c.relpages > 0, CASE WHEN c.relkind IN ('r', 'm') THEN coalesce(pg_total_relation_size(c.oid), 0) ELSE 0 END,
		coalesce((SELECT array_agg(i.inhparent ORDER BY i.inhseqno) FROM pg_inherits i WHERE i.inhrelid = c.oid), '{}'),
		EXISTS (SELECT FROM pg_partitioned_table p WHERE p.partrelid = c.oid AND p.partstrat = 'h' AND (0 = ANY (p.partattrs::int2[]) OR EXISTS (
			SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (p.partattrs::int2[]) AND a.atttypid >= 16384))),
		concat_ws(' ', (SELECT amname FROM pg_am WHERE pg_am.oid = c.relam), CASE c.relpersistence WHEN 'u' THEN 'unlogged' END)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY($1::oid[])
		ORDER BY c.relkind IN ('v', 'm'), c.oid`, d.oids)
	faults := []error{err}
	for _, r := range relations {
		switch r.Kind {
		case catalog.KindTable, catalog.KindPartitioned, catalog.KindView, catalog.KindMaterialized:
			d.Model.Relations = append(d.Model.Relations, &r)
		case catalog.KindForeign:
			faults = append(faults, fmt.Errorf("%s is a foreign table, whose rows are on another server: copy it from that server, or remove it from privacy.protected", r.Table))
		default:
			faults = append(faults, fmt.Errorf("%s is not a table or view: remove it from privacy.protected", r.Table))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, r := range d.Model.Relations { // ignore parents that are not copied
		r.Parents = slices.DeleteFunc(r.Parents, func(p uint32) bool { return d.Model.ByOID(p) == nil })
		r.IsPartition = r.IsPartition && len(r.Parents) > 0
	}
	slices.SortStableFunc(d.Model.Relations, func(a, b *Relation) int { return d.depth(a) - d.depth(b) })
	return nil
}

// depth returns the number of ancestor levels, plus 2^20 for a view, so that views come after every table.
func (d *Discovery) depth(r *Relation) int {
	depth := 0
	if !r.IsTable() {
		depth = 1 << 20
	}
	for _, p := range r.Parents {
		depth = max(depth, 1+d.depth(d.Model.ByOID(p)))
	}
	return depth
}

// baseType is a query of the type under a domain, with text for citext.
func baseType(oid string) string {
	return `WITH RECURSIVE b(oid, base, name) AS (SELECT y.oid, y.typbasetype, y.typname FROM pg_type y WHERE y.oid = ` + oid + `
			UNION ALL SELECT y.oid, y.typbasetype, y.typname FROM b JOIN pg_type y ON y.oid = b.base)
		SELECT CASE name WHEN 'citext' THEN 'text'::regtype::oid ELSE oid END FROM b WHERE base = 0`
}

func (d *Discovery) columns() error {
	columns, err := rows[struct {
		Relation uint32
		Column
	}](d, `SELECT a.attrelid, a.attname, a.atttypid, coalesce(format_type(a.atttypid, a.atttypmod), ''), a.attisdropped,
		a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND NOT k.convalidated
			AND k.conkey = ARRAY[a.attnum]), coalesce(pg_get_expr(x.adbin, x.adrelid), ''), a.attgenerated <> '', a.attgenerated = 'v', a.attidentity::text,
		coalesce(CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END, ''),
		coalesce(a.attstattarget::int, -1),
		CASE WHEN a.attstorage = t.typstorage THEN '' ELSE CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL'
			WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END, `+settable("a.attoptions", columnOptions)+`,
		coalesce((`+baseType("t.oid")+`), a.atttypid), coalesce((`+baseType("(SELECT y.typelem FROM pg_type y WHERE y.typcategory = 'A' AND y.oid = ("+baseType("t.oid")+"))")+`), 0)::oid
		FROM pg_attribute a LEFT JOIN pg_type t ON t.oid = a.atttypid
		LEFT JOIN pg_attrdef x ON x.adrelid = a.attrelid AND x.adnum = a.attnum
		LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
		WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 ORDER BY a.attrelid, a.attnum`, d.oids)
	for _, c := range columns {
		r := d.Model.ByOID(c.Relation)
		r.Columns = append(r.Columns, c.Column)
	}
	return err
}

func (d *Discovery) checks() error {
	checks, err := rows[struct {
		Relation uint32
		constraint
	}](d, `SELECT conrelid, conname, pg_get_constraintdef(oid), conislocal, pg_get_expr(conbin, conrelid) FROM pg_constraint
		WHERE contype = 'c' AND conrelid = ANY($1::oid[]) ORDER BY 1, 2`, d.oids)
	for _, c := range checks {
		r := d.Model.ByOID(c.Relation)
		r.Checks = append(r.Checks, c.constraint)
	}
	return err
}

// indexes reads valid indexes. Plans do not use an index that is being built or whose build failed.
func (d *Discovery) indexes() error {
	indexes, err := rows[struct {
		Relation uint32
		index
	}](d, `SELECT x.indrelid, x.indexrelid, c.relname, quote_ident(c.relname), pg_get_indexdef(x.indexrelid),
		coalesce(pg_get_constraintdef(k.oid), ''), coalesce(i.inhparent, 0)::oid, x.indisclustered, x.indisreplident, x.indpred IS NOT NULL,
		CASE WHEN x.indisunique AND x.indexprs IS NULL THEN coalesce((SELECT array_agg(a.attname::text ORDER BY k.i)
			FROM unnest(x.indkey::int2[]) WITH ORDINALITY k(n, i) JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.n
			WHERE k.i <= x.indnkeyatts), '{}')
		WHEN k.contype = 'x' THEN coalesce((SELECT array_agg(a.attname::text ORDER BY e.i) FROM unnest(k.conkey, k.conexclop) WITH ORDINALITY e(n, op, i)
			JOIN pg_operator p ON p.oid = e.op AND p.oprname = '=' JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = e.n), '{}')
		ELSE '{}' END
		FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
		LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u', 'x')
		LEFT JOIN pg_inherits i ON i.inhrelid = x.indexrelid
		WHERE x.indrelid = ANY($1::oid[]) AND x.indisvalid ORDER BY x.indrelid, x.indexrelid`, d.oids)
	for _, i := range indexes {
		r := d.Model.ByOID(i.Relation)
		r.Indexes = append(r.Indexes, i.index)
	}
	return err
}

// maxNamed is the number of foreign keys that a note names.
const maxNamed = 10

// foreignKeys reads those between copied tables. Foreign keys to other tables are not copied, and those that a
// partition inherits from a copied parent belong to the parent.
func (d *Discovery) foreignKeys() error {
	keys, err := rows[struct {
		foreignKey
		Other string
	}](d, `SELECT k.conname, k.conrelid, k.confrelid, pg_get_constraintdef(k.oid),
		(SELECT array_agg(a.attname::text ORDER BY x.i) FROM unnest(k.conkey) WITH ORDINALITY x(n, i)
			JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = x.n),
		(SELECT array_agg(a.attname::text ORDER BY x.i) FROM unnest(k.confkey) WITH ORDINALITY x(n, i)
			JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = x.n),
		coalesce((to_jsonb(k)->>'conperiod')::bool, false), k.confrelid::regclass::text
		FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = ANY($1::oid[])
		AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = k.conparentid AND p.conrelid = ANY($1::oid[]))
		ORDER BY k.oid`, d.oids)
	var left []string
	for _, k := range keys {
		if d.Model.ByOID(k.Parent) == nil {
			left = append(left, fmt.Sprintf("%s of %s to %s", k.Name, d.Model.ByOID(k.Child).Table, k.Other))
			continue
		}
		d.Model.Keys = append(d.Model.Keys, k.foreignKey)
	}
	if len(left) > 0 {
		more := len(left) - maxNamed
		if more > 0 {
			left = append(left[:maxNamed], fmt.Sprintf("and %d more", more))
		}
		d.Options.Notef("not copied: foreign keys to tables that are not (%s): such a column keeps its values", strings.Join(left, ", "))
	}
	return err
}

// sequences reads the sequences that columns of the tables own or use, with their values.
func (d *Discovery) sequences() (err error) {
	d.Model.Sequences, err = rows[Sequence](d, `SELECT DISTINCT ON (c.oid) n.nspname, c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin,
		s.seqmax, s.seqcache, s.seqcycle, coalesce(o.refobjid, 0)::oid, coalesce(a.attname, ''), coalesce(o.deptype = 'i', false)
		FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_depend o ON o.classid = 'pg_class'::regclass AND o.objid = c.oid AND o.objsubid = 0
			AND o.refclassid = 'pg_class'::regclass AND o.deptype IN ('a', 'i') AND o.refobjid = ANY($1::oid[])
		LEFT JOIN pg_attribute a ON a.attrelid = o.refobjid AND a.attnum = o.refobjsubid
		WHERE o.refobjid IS NOT NULL OR EXISTS (SELECT FROM pg_depend u JOIN pg_attrdef x ON x.oid = u.objid
			WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = c.oid
			AND x.adrelid = ANY($1::oid[]))
		ORDER BY c.oid`, d.oids)
	if err != nil {
		return err
	}
	for i := range d.Model.Sequences {
		s := &d.Model.Sequences[i]
		if err := d.Tx.QueryRow(d.Ctx, "SELECT last_value, is_called FROM "+s.SQL()).Scan(&s.Last, &s.Called); err != nil {
			return fmt.Errorf("sequence %s: %w", s.Table, err)
		}
	}
	return nil
}

func (d *Discovery) statistics() (err error) {
	d.Model.Statistics, err = rows[statistics](d, `SELECT n.nspname, x.stxname, quote_ident(n.nspname) || '.' || quote_ident(x.stxname), pg_get_statisticsobjdef(x.oid), coalesce(x.stxstattarget::int, -1) FROM pg_statistic_ext x
		JOIN pg_namespace n ON n.oid = x.stxnamespace WHERE x.stxrelid = ANY($1::oid[]) ORDER BY x.oid`, d.oids)
	return err
}

// userFunction is the condition that the function f of the schema n belongs neither to the server nor to an extension.
const userFunction = `n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
	AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = f.oid AND e.deptype = 'e')`

// functions reads the SQL functions that name a copied relation (according to the catalog if the body is BEGIN ATOMIC,
// otherwise by a search of its text), those that take or return its rows, and those with the same name as one of these,
// because PostgreSQL chooses among them by the arguments of the call. Whether a text really reads the table is
// determined when it is rewritten. If d.schema is set, functions reads all functions and procedures of that schema
// instead, without aggregates.
func (d *Discovery) functions() (err error) {
	if d.schema != "" {
		d.Model.Functions, err = rows[Function](d, `SELECT oid, $2::text, proname, pg_get_functiondef(oid), '', 0, '', 't'::"char"
			FROM pg_proc WHERE pronamespace = to_regnamespace($1) AND prokind <> 'a' ORDER BY oid`, ident.Quote(d.schema), d.schema)
		return err
	}
	var names []string
	for _, r := range d.Model.Relations {
		names = append(names, strings.ToLower(strings.ReplaceAll(r.Name, `"`, `""`)))
	}
	d.Model.Functions, err = rows[Function](d, `WITH f AS (SELECT f.*, n.nspname FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_language l ON l.oid = f.prolang
			WHERE l.lanname = 'sql' AND f.prokind = 'f' AND `+userFunction+`),
		rows AS (SELECT e.objid AS oid FROM pg_depend e JOIN pg_type y ON y.oid = e.refobjid LEFT JOIN pg_type i ON i.oid = y.typelem
			WHERE e.classid = 'pg_proc'::regclass AND e.refclassid = 'pg_type'::regclass AND (y.typrelid = ANY($1::oid[]) OR i.typrelid = ANY($1::oid[]))),
		direct AS (SELECT f.oid, f.proname, f.pronamespace FROM f WHERE f.oid IN (SELECT oid FROM rows) OR CASE WHEN f.prosqlbody IS NULL
			THEN EXISTS (SELECT FROM unnest($2::text[]) t(name) WHERE position(t.name IN lower(f.prosrc)) > 0)
			ELSE EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = f.oid
				AND e.refclassid = 'pg_class'::regclass AND e.refobjid = ANY($1::oid[])) END)
		SELECT f.oid, f.nspname, f.proname, pg_get_functiondef(f.oid), CASE WHEN f.prosqlbody IS NULL THEN f.prosrc ELSE '' END, f.pronargs,
		coalesce((SELECT substr(c, 13) FROM unnest(f.proconfig) c WHERE c LIKE 'search_path=%'), ''),
		CASE WHEN f.oid IN (SELECT oid FROM rows) THEN 'r' WHEN f.oid IN (SELECT oid FROM direct) THEN 't' ELSE 'n' END::"char"
		FROM f WHERE (f.proname, f.pronamespace) IN (SELECT proname, pronamespace FROM direct) ORDER BY f.oid`, d.oids, names)
	return err
}

// types reads the user-defined types and collations (OID 16384 and above) that columns, views, constraints, defaults,
// indexes and functions use. It returns an error for columns of a table whose type is the row type of a copied
// relation.
func (d *Discovery) types() error {
	indexes, functions := []uint32{}, []uint32{}
	for _, r := range d.Model.Relations {
		for _, i := range r.Indexes {
			indexes = append(indexes, i.OID)
		}
	}
	for _, f := range d.Model.Functions {
		functions = append(functions, f.OID)
	}
	var err error
	d.Model.Types, err = d.list(`SELECT DISTINCT u.oid FROM (
		SELECT a.atttypid AS oid FROM pg_attribute a WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
		UNION SELECT d.refobjid FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
			AND d.refclassid = 'pg_type'::regclass WHERE w.ev_class = ANY($1::oid[])
		UNION SELECT d.refobjid FROM pg_constraint k JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
			AND d.refclassid = 'pg_type'::regclass WHERE k.conrelid = ANY($1::oid[])
		UNION SELECT d.refobjid FROM pg_attrdef x JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = x.oid
			AND d.refclassid = 'pg_type'::regclass WHERE x.adrelid = ANY($1::oid[])
		UNION SELECT d.refobjid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_type'::regclass AND d.objid = ANY($1::oid[] || $2::oid[])
		UNION SELECT d.refobjid FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_type'::regclass AND d.objid = ANY($3::oid[])) u
		WHERE u.oid >= 16384 ORDER BY 1`, d.oids, indexes, functions)
	if err != nil {
		return err
	}
	// Extended statistics use the collations of their columns.
	d.Model.Collations, err = d.list(`SELECT DISTINCT u.oid FROM (
		SELECT a.attcollation AS oid FROM pg_attribute a WHERE a.attrelid = ANY($1::oid[] || $2::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
		UNION SELECT d.refobjid FROM pg_depend d WHERE d.refclassid = 'pg_collation'::regclass AND (d.classid, d.objid) IN (
			SELECT 'pg_class'::regclass, unnest($1::oid[] || $2::oid[])
			UNION ALL SELECT 'pg_proc'::regclass, unnest($3::oid[])
			UNION ALL SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite WHERE ev_class = ANY($1::oid[])
			UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid = ANY($1::oid[])
			UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = ANY($1::oid[]))) u
		WHERE u.oid >= 16384 ORDER BY 1`, d.oids, indexes, functions)
	if err != nil {
		return err
	}
	mixed, err := d.texts(`SELECT format('column %s.%s.%s: its type is the row type of a protected table, which cannot be copied; change the column to a composite type created with CREATE TYPE', n.nspname, c.relname, a.attname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type e ON e.oid = t.typelem
		WHERE c.relkind IN ('r', 'p') AND a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
		AND (t.typrelid = ANY($1::oid[]) OR e.typrelid = ANY($1::oid[]))`, d.oids)
	faults := []error{err}
	for _, text := range mixed {
		faults = append(faults, errors.New(text))
	}
	return errors.Join(faults...)
}
