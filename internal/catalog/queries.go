package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/rewrite"
)

// ordinary is the condition for a schema n that rewrite.Catalog contains.
const ordinary = `n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'`

func (r *reader) schemas() error {
	return r.rows("SELECT n.nspname FROM pg_namespace n WHERE "+ordinary+" ORDER BY 1", func(row pgx.Rows) error {
		var name string
		err := row.Scan(&name)
		r.catalog.Schemas = append(r.catalog.Schemas, name)
		return err
	})
}

// relations reads the relations that a query can name: no indexes, toast tables and composite types. In the text of a view
// every name outside pg_catalog has its schema, because the reader's search_path contains nothing else.
const relations = `SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relrowsecurity,
		CASE WHEN c.relkind = 'v' THEN coalesce(pg_get_viewdef(c.oid), '') ELSE '' END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND ` + ordinary + ` ORDER BY 2, 3`

// reads selects the relations that a relation reads: a view's rule and a policy's expressions depend on them (pg_depend),
// and a parent reads its children. Dependencies of a view on itself, by its own rule, are excluded.
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

// calls selects the functions that a view or policy calls, directly or through an operator; built-in ones are pinned and
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
		err := row.Scan(&oid, &relation.Schema, &relation.Name, &kind, &relation.RowSecurity, &relation.Definition)
		relation.Kind = kindOf(kind)
		place[oid] = len(r.catalog.Relations)
		r.catalog.Relations = append(r.catalog.Relations, relation)
		return err
	})
	if err != nil {
		return err
	}
	add := func(sql string, list func(*rewrite.Relation) *[]rewrite.Table) error {
		return r.tables(sql, func(oid uint32) *[]rewrite.Table {
			if i, ok := place[oid]; ok {
				return list(&r.catalog.Relations[i])
			}
			return nil
		})
	}
	if err := add(reads, func(x *rewrite.Relation) *[]rewrite.Table { return &x.Reads }); err != nil {
		return err
	}
	if err := add(relationTypes, func(x *rewrite.Relation) *[]rewrite.Table { return &x.Types }); err != nil {
		return err
	}
	return add(calls, func(x *rewrite.Relation) *[]rewrite.Table { return &x.Calls })
}

// kindOf converts pg_class.relkind.
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

// functions have a text as their body, except those in C or internal, and aggregates. {body} is the text of an atomic body.
const functions = `
	SELECT f.oid, n.nspname, f.proname, f.prokind::text, pg_get_function_arguments(f.oid), coalesce(pg_get_function_result(f.oid), ''),
		CASE f.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END, l.lanname,
		CASE WHEN f.prokind = 'a' OR l.lanname IN ('c', 'internal') THEN '' ELSE {body} END, coalesce(f.proconfig, '{}'),
		f.pronargdefaults, f.provariadic <> 0,
		coalesce((SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
			WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' LIMIT 1), ''),
		f.prokind <> 'p' AND f.pronargs >= 1 AND f.pronargs - f.pronargdefaults <= 1,
		f.pronargs >= 1 AND (SELECT 'c' IN (t.typtype, coalesce(b.typtype, 'b')) OR t.typtype = 'p' FROM pg_type t LEFT JOIN pg_type b ON b.oid = t.typbasetype WHERE t.oid = f.proargtypes[0])
	FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_language l ON l.oid = f.prolang
	WHERE ` + ordinary + ` ORDER BY 2, 3, 1`

// functionReads selects the relations read by atomic bodies and default expressions, and those whose rows are arguments or
// results.
const functionReads = `
	SELECT d.objid, n.nspname, c.relname
	FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	UNION
	SELECT f.oid, n.nspname, c.relname
	FROM pg_proc f, LATERAL unnest(f.proargtypes::oid[] || f.proallargtypes || f.prorettype) used(type)
	JOIN pg_type t ON t.oid = used.type LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typlen = -1
	JOIN pg_class c ON c.oid = coalesce(nullif(t.typrelid, 0), e.typrelid) JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
	ORDER BY 1, 2, 3`

// functionCalls selects the functions that atomic bodies and default expressions call, directly or through an operator, and
// the support functions of aggregates.
const functionCalls = `
	SELECT DISTINCT d.objid, n.nspname, f.proname
	FROM pg_depend d
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	JOIN pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END
	JOIN pg_namespace n ON n.oid = f.pronamespace
	WHERE d.classid = 'pg_proc'::regclass AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	AND f.oid <> d.objid AND n.nspname <> 'pg_catalog'
	ORDER BY 1, 2, 3`

func (r *reader) functions() error {
	body := "f.prosrc"
	var version int
	if err := r.tx.QueryRow(r.ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return err
	}
	if version >= 140000 { // the first version with atomic bodies
		body = "coalesce(pg_get_function_sqlbody(f.oid), f.prosrc)"
	}
	place := map[uint32]int{}
	err := r.rows(strings.Replace(functions, "{body}", body, 1), func(row pgx.Rows) error {
		var oid uint32
		var kind string
		var settings []string
		var f rewrite.Function
		err := row.Scan(&oid, &f.Schema, &f.Name, &kind, &f.Arguments, &f.Result, &f.Volatility, &f.Language, &f.Body, &settings, &f.Optional, &f.Variadic, &f.Extension, &f.OfOne, &f.OfRow)
		if err != nil {
			return err
		}
		f.Kind = functionKindOf(kind)
		if f.Settings, err = settingsOf(settings); err != nil {
			return fmt.Errorf("function %s.%s: %w", f.Schema, f.Name, err)
		}
		place[oid] = len(r.catalog.Functions)
		r.catalog.Functions = append(r.catalog.Functions, f)
		return nil
	})
	if err != nil {
		return err
	}
	add := func(sql string, list func(*rewrite.Function) *[]rewrite.Table) error {
		return r.tables(sql, func(oid uint32) *[]rewrite.Table {
			if i, ok := place[oid]; ok {
				return list(&r.catalog.Functions[i])
			}
			return nil
		})
	}
	for _, list := range []struct {
		sql string
		of  func(*rewrite.Function) *[]rewrite.Table
	}{
		{functionReads, func(x *rewrite.Function) *[]rewrite.Table { return &x.Reads }},
		{functionTakes, func(x *rewrite.Function) *[]rewrite.Table { return &x.Takes }},
		{functionGives, func(x *rewrite.Function) *[]rewrite.Table { return &x.Gives }},
	} {
		if err := add(list.sql, list.of); err != nil {
			return err
		}
	}
	return add(functionCalls, func(x *rewrite.Function) *[]rewrite.Table { return &x.Calls })
}

// tables runs a query that returns oid, schema and name, and appends each name to the list of its oid, unless that is nil.
func (r *reader) tables(sql string, list func(oid uint32) *[]rewrite.Table) error {
	return r.rows(sql, func(row pgx.Rows) error {
		var oid uint32
		var t rewrite.Table
		if err := row.Scan(&oid, &t.Schema, &t.Name); err != nil {
			return err
		}
		if to := list(oid); to != nil {
			*to = append(*to, t)
		}
		return nil
	})
}

// functionKindOf converts pg_proc.prokind.
func functionKindOf(prokind string) rewrite.FunctionKind {
	switch prokind {
	case "a":
		return rewrite.KindAggregate
	case "w":
		return rewrite.KindWindow
	case "p":
		return rewrite.KindProcedure
	}
	return rewrite.KindFunction
}

// settingsOf parses the catalog's form of SET clauses and ALTER ... SET: a list of name=value.
func settingsOf(entries []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, errors.New("a setting is not of the form name=value")
		}
		settings[strings.ToLower(name)] = value
	}
	return settings, nil
}

// serverPath reads the search_path of the server's configuration. It is the initial value of the session, unless the
// reader's own role, database or connection string sets another: then it is not known.
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

// settings reads the settings of ALTER DATABASE and ALTER ROLE, in order of increasing precedence as in process_settings
// (postinit.c).
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
		var err error
		if d.Settings, err = settingsOf(entries); err != nil {
			return fmt.Errorf("role %q: %w", d.Role, err)
		}
		r.catalog.Defaults = append(r.catalog.Defaults, d)
		return nil
	})
}

// denied lists the schemas that a role may not use. The condition excludes roles that may use everything.
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
