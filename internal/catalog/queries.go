package catalog

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/rewrite"
)

// ordinary is the condition on a schema n that rewrite.Catalog holds.
const ordinary = `n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'`

func (r *reader) schemas() error {
	return r.rows("SELECT n.nspname FROM pg_namespace n WHERE "+ordinary+" ORDER BY 1", func(row pgx.Rows) error {
		var name string
		err := row.Scan(&name)
		r.catalog.Schemas = append(r.catalog.Schemas, name)
		return err
	})
}

// relations are what a query can name: no indexes, toast tables and composite types.
const relations = `SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relrowsecurity
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND ` + ordinary + ` ORDER BY 2, 3`

// reads are the relations that a relation reads: a view's rule and a policy's expressions depend on them (pg_depend), a
// parent has its children. Dependencies of a view on itself, by its own rule, are left out.
const reads = `
	SELECT w.ev_class, n.nspname, c.relname
	FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid JOIN pg_class c ON c.oid = d.refobjid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND c.oid <> w.ev_class
	AND w.ev_type = '1' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	UNION
	SELECT p.polrelid, n.nspname, c.relname
	FROM pg_depend d JOIN pg_policy p ON p.oid = d.objid JOIN pg_class c ON c.oid = d.refobjid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE d.classid = 'pg_policy'::regclass AND d.refclassid = 'pg_class'::regclass AND c.oid <> p.polrelid
	AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	UNION
	SELECT i.inhparent, n.nspname, c.relname
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'f')
	ORDER BY 1, 2, 3`

// calls are the functions that a view or policy calls, itself or through an operator; built-in ones are pinned and
// leave no dependency.
const calls = `
	WITH depends AS (
		SELECT w.ev_class AS relation, d.refclassid, d.refobjid
		FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
		WHERE d.classid = 'pg_rewrite'::regclass AND w.ev_type = '1'
		UNION
		SELECT p.polrelid, d.refclassid, d.refobjid
		FROM pg_depend d JOIN pg_policy p ON p.oid = d.objid WHERE d.classid = 'pg_policy'::regclass
	)
	SELECT d.relation, n.nspname, f.proname
	FROM depends d
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	JOIN pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END
	JOIN pg_namespace n ON n.oid = f.pronamespace
	WHERE n.nspname <> 'pg_catalog' AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	ORDER BY 1, 2, 3`

func (r *reader) relations() error {
	place := map[uint32]int{}
	err := r.rows(relations, func(row pgx.Rows) error {
		var oid uint32
		var kind string
		var relation rewrite.Relation
		err := row.Scan(&oid, &relation.Schema, &relation.Name, &kind, &relation.RowSecurity)
		relation.Kind = kindOf(kind)
		place[oid] = len(r.catalog.Relations)
		r.catalog.Relations = append(r.catalog.Relations, relation)
		return err
	})
	if err != nil {
		return err
	}
	add := func(sql string, list func(*rewrite.Relation) *[]rewrite.Table) error {
		return r.rows(sql, func(row pgx.Rows) error {
			var oid uint32
			var t rewrite.Table
			if err := row.Scan(&oid, &t.Schema, &t.Name); err != nil {
				return err
			}
			if i, ok := place[oid]; ok {
				to := list(&r.catalog.Relations[i])
				*to = append(*to, t)
			}
			return nil
		})
	}
	if err := add(reads, func(x *rewrite.Relation) *[]rewrite.Table { return &x.Reads }); err != nil {
		return err
	}
	return add(calls, func(x *rewrite.Relation) *[]rewrite.Table { return &x.Calls })
}

// kindOf translates pg_class.relkind.
func kindOf(relkind string) rewrite.RelationKind {
	switch relkind {
	case "p":
		return rewrite.KindPartitioned
	case "v":
		return rewrite.KindView
	case "m":
		return rewrite.KindMaterialized
	case "f":
		return rewrite.KindForeign
	case "S":
		return rewrite.KindSequence
	}
	return rewrite.KindTable
}

// functions have a text as their body unless they are C, internal or BEGIN ATOMIC, whose reads are in pg_depend. The
// body of an aggregate is that of its parts.
const functions = `
	SELECT f.oid, n.nspname, f.proname,
		CASE f.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END, l.lanname,
		CASE WHEN f.prokind = 'a' THEN coalesce((
			SELECT string_agg(p.prosrc, E'\n' ORDER BY p.oid) FROM pg_aggregate a
			JOIN pg_proc p ON p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggmfinalfn)
			JOIN pg_language pl ON pl.oid = p.prolang
			WHERE a.aggfnoid = f.oid AND pl.lanname NOT IN ('c', 'internal')), '')
		WHEN l.lanname IN ('c', 'internal') THEN '' ELSE f.prosrc END
	FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_language l ON l.oid = f.prolang
	WHERE ` + ordinary + ` ORDER BY 2, 3, 1`

// functionReads are those of atomic bodies and of default expressions. An aggregate reads what its parts read.
const functionReads = `
	WITH parts AS (
		SELECT oid AS whole, oid AS part FROM pg_proc
		UNION
		SELECT a.aggfnoid::oid, p.oid FROM pg_aggregate a JOIN pg_proc p
		ON p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggmfinalfn)
	)
	SELECT parts.whole, n.nspname, c.relname
	FROM parts JOIN pg_depend d ON d.objid = parts.part AND d.classid = 'pg_proc'::regclass
	JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE d.refclassid = 'pg_class'::regclass AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	ORDER BY 1, 2, 3`

func (r *reader) functions() error {
	place := map[uint32]int{}
	err := r.rows(functions, func(row pgx.Rows) error {
		var oid uint32
		var f rewrite.Function
		err := row.Scan(&oid, &f.Schema, &f.Name, &f.Volatility, &f.Language, &f.Body)
		place[oid] = len(r.catalog.Functions)
		r.catalog.Functions = append(r.catalog.Functions, f)
		return err
	})
	if err != nil {
		return err
	}
	return r.rows(functionReads, func(row pgx.Rows) error {
		var oid uint32
		var t rewrite.Table
		if err := row.Scan(&oid, &t.Schema, &t.Name); err != nil {
			return err
		}
		if i, ok := place[oid]; ok {
			r.catalog.Functions[i].Reads = append(r.catalog.Functions[i].Reads, t)
		}
		return nil
	})
}

// serverPath reads the search_path of the server's configuration, which the session starts with unless the reader's own
// role, database or connection string has another: then it is not known.
func (r *reader) serverPath() error {
	return r.rows("SELECT reset_val, source FROM pg_catalog.pg_settings WHERE name = 'search_path'", func(row pgx.Rows) error {
		var path, source string
		if err := row.Scan(&path, &source); err != nil {
			return err
		}
		switch source {
		case "default", "configuration file", "command line", "environment variable", "global":
			r.catalog.Defaults = append(r.catalog.Defaults, rewrite.Default{Settings: map[string]string{"search_path": path}})
		}
		return nil
	})
}

// settings reads what ALTER DATABASE and ALTER ROLE set, the weakest first as in process_settings (postinit.c).
func (r *reader) settings() error {
	return r.rows(`SELECT coalesce(r.rolname, ''), s.setconfig
		FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole
		WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND (s.setrole = 0 OR r.oid IS NOT NULL)
		ORDER BY s.setrole <> 0, s.setdatabase <> 0, 1`, func(row pgx.Rows) error {
		var d rewrite.Default
		var entries []string
		if err := row.Scan(&d.Role, &entries); err != nil {
			return err
		}
		d.Settings = map[string]string{}
		for _, entry := range entries {
			name, value, ok := strings.Cut(entry, "=")
			if !ok {
				return fmt.Errorf("a default of role %q is not of the form name=value", d.Role)
			}
			d.Settings[strings.ToLower(name)] = value
		}
		r.catalog.Defaults = append(r.catalog.Defaults, d)
		return nil
	})
}

// denied lists who cannot use which schema. Roles that every role may use everything as are left out by the condition.
func (r *reader) denied() error {
	return r.rows(`SELECT r.rolname, n.nspname FROM pg_roles r CROSS JOIN pg_namespace n
		WHERE NOT has_schema_privilege(r.oid, n.oid, 'USAGE') AND r.rolname NOT LIKE 'pg\_%' AND `+ordinary+`
		ORDER BY 1, 2`, func(row pgx.Rows) error {
		var d rewrite.Denial
		err := row.Scan(&d.Role, &d.Schema)
		r.catalog.Denied = append(r.catalog.Denied, d)
		return err
	})
}
