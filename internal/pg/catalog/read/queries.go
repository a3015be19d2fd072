package read

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// ordinary is the condition for a schema n that catalog.Catalog contains.
const ordinary = `n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'`

func (r *reader) schemas() error {
	var name string
	return r.each("SELECT n.nspname FROM pg_namespace n WHERE "+ordinary+" ORDER BY 1", add(&r.catalog.Schemas, &name), &name)
}

// relations reads the relations that a query can name: no indexes, toast tables and composite types. In the text of a
// view every name outside pg_catalog has its schema, because the reader's search_path contains nothing else.
const relations = `SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relrowsecurity,
		NOT has_schema_privilege(n.oid, 'USAGE') OR NOT has_any_column_privilege(c.oid, 'SELECT'),
		CASE WHEN c.relkind IN ('v', 'm') THEN coalesce(pg_get_viewdef(c.oid), '') ELSE '' END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND ` + ordinary + ` ORDER BY 2, 3`

// reads selects the relations that a relation reads: a view's rule and a policy's expressions depend on them
// (pg_depend), and a parent reads its children. Dependencies of a view on itself, by its own rule, are excluded.
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
	WHERE d.classid = 'pg_policy'::regclass AND d.refclassid = 'pg_class'::regclass AND c.oid <> p.polrelid AND p.polcmd IN ('*', 'r')
	AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	UNION
	SELECT i.inhparent, n.nspname, c.relname
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'f')
	ORDER BY 1, 2, 3`

// calls selects the functions that a view or policy calls, directly or through an operator; built-in ones are pinned
// and leave no dependency.
const calls = `
	WITH depends AS (
		SELECT w.ev_class AS relation, d.refclassid, d.refobjid
		FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
		WHERE d.classid = 'pg_rewrite'::regclass AND w.ev_type = '1'
		UNION
		SELECT p.polrelid, d.refclassid, d.refobjid
		FROM pg_depend d JOIN pg_policy p ON p.oid = d.objid WHERE d.classid = 'pg_policy'::regclass AND p.polcmd IN ('*', 'r')
	)
	SELECT d.relation, n.nspname, f.proname
	FROM depends d
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	JOIN pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END
	JOIN pg_namespace n ON n.oid = f.pronamespace
	WHERE n.nspname <> 'pg_catalog' AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	ORDER BY 1, 2, 3`

func (r *reader) relations() error {
	var oid uint32
	var v catalog.Relation
	places := map[uint32]int{}
	err := r.each(relations, func() error {
		places[oid] = len(r.catalog.Relations)
		r.catalog.Relations = append(r.catalog.Relations, v)
		return nil
	}, &oid, &v.Schema, &v.Name, &v.Kind, &v.RowSecurity, &v.Hidden, &v.Definition)
	if err != nil {
		return err
	}
	if err := r.effects(places); err != nil {
		return err
	}
	return fill(r, r.catalog.Relations, places,
		list[catalog.Relation]{reads, func(x *catalog.Relation) *[]catalog.Table { return &x.Reads }},
		list[catalog.Relation]{relationTypes, func(x *catalog.Relation) *[]catalog.Table { return &x.Types }},
		list[catalog.Relation]{calls, func(x *catalog.Relation) *[]catalog.Table { return &x.Calls }},
	)
}

// functions have a text as their body, except those in C or internal, and aggregates. {body} is the text of an atomic
// body.
const functions = `
	SELECT f.oid, n.nspname, f.proname, f.prokind::text, pg_get_function_arguments(f.oid), coalesce(pg_get_function_result(f.oid), ''),
		CASE f.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END, l.lanname,
		CASE WHEN f.prokind = 'a' OR l.lanname IN ('c', 'internal') THEN '' ELSE {body} END, coalesce(f.proconfig, '{}'),
		f.pronargdefaults, f.provariadic <> 0, f.prosecdef,
		coalesce((SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
			WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' LIMIT 1), ''),
		f.prokind <> 'p' AND f.pronargs >= 1 AND f.pronargs - f.pronargdefaults <= 1,
		f.pronargs >= 1 AND (SELECT 'c' IN (t.typtype, coalesce(b.typtype, 'b')) OR t.typtype = 'p' FROM pg_type t LEFT JOIN pg_type b ON b.oid = t.typbasetype WHERE t.oid = f.proargtypes[0])
	FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_language l ON l.oid = f.prolang
	WHERE ` + ordinary + ` ORDER BY 2, 3, 1`

// functionReads selects the relations read by atomic bodies and default expressions, and those whose rows are arguments
// or results.
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

// functionCalls selects the functions that atomic bodies and default expressions call, directly or through an operator,
// and the support functions of aggregates.
const functionCalls = `
	SELECT DISTINCT d.objid, n.nspname, f.proname
	FROM pg_depend d
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	JOIN pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END
	JOIN pg_namespace n ON n.oid = f.pronamespace
	WHERE d.classid = 'pg_proc'::regclass AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	AND f.oid <> d.objid AND n.nspname <> 'pg_catalog'
	ORDER BY 1, 2, 3`

// functionTypes selects the user-defined types of arguments, results, atomic bodies and defaults.
const functionTypes = `
	SELECT DISTINCT d.objid, n.nspname, t.typname
	FROM pg_depend d JOIN pg_type a ON a.oid = d.refobjid JOIN pg_type t ON t.oid = coalesce(nullif(a.typelem, 0), a.oid) JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_type'::regclass AND n.nspname <> 'pg_catalog'
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
	var oid uint32
	var settings []string
	var f catalog.Function
	places := map[uint32]int{}
	err := r.each(strings.Replace(functions, "{body}", body, 1), func() (err error) {
		if f.Settings, err = settingsOf(settings); err != nil {
			return fmt.Errorf("function %s.%s: %w", f.Schema, f.Name, err)
		}
		places[oid] = len(r.catalog.Functions)
		r.catalog.Functions = append(r.catalog.Functions, f)
		return nil
	}, &oid, &f.Schema, &f.Name, &f.Kind, &f.Arguments, &f.Result, &f.Volatility, &f.Language, &f.Body, &settings, &f.Optional, &f.Variadic,
		&f.Definer, &f.Extension, &f.OfOne, &f.OfRow)
	if err != nil {
		return err
	}
	return fill(r, r.catalog.Functions, places,
		list[catalog.Function]{functionReads, func(x *catalog.Function) *[]catalog.Table { return &x.Reads }},
		list[catalog.Function]{functionTakes, func(x *catalog.Function) *[]catalog.Table { return &x.Takes }},
		list[catalog.Function]{functionGives, func(x *catalog.Function) *[]catalog.Table { return &x.Gives }},
		list[catalog.Function]{functionTypes, func(x *catalog.Function) *[]catalog.Table { return &x.Types }},
		list[catalog.Function]{functionCalls, func(x *catalog.Function) *[]catalog.Table { return &x.Calls }},
	)
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
	var path, source string
	return r.each("SELECT reset_val, source FROM pg_catalog.pg_settings WHERE name = 'search_path'", func() error {
		switch source {
		case "default", "configuration file", "command line", "environment variable", "global":
			r.catalog.Defaults = append(r.catalog.Defaults, catalog.Default{Settings: map[string]string{"search_path": path}})
		}
		return nil
	}, &path, &source)
}

// settings reads the settings of ALTER DATABASE and ALTER ROLE, in order of increasing precedence as in
// process_settings (postinit.c).
func (r *reader) settings() error {
	var d catalog.Default
	var entries []string
	return r.each(`SELECT coalesce(r.rolname, ''), s.setconfig
		FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole
		WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND (s.setrole = 0 OR r.oid IS NOT NULL)
		ORDER BY s.setrole <> 0, s.setdatabase <> 0, 1`, func() (err error) {
		if d.Settings, err = settingsOf(entries); err != nil {
			return fmt.Errorf("role %q: %w", d.Role, err)
		}
		r.catalog.Defaults = append(r.catalog.Defaults, d)
		return nil
	}, &d.Role, &entries)
}

// denied lists the schemas that a role may not use. The condition excludes roles that may use everything.
func (r *reader) denied() error {
	var d catalog.Denial
	return r.each(`SELECT r.rolname, n.nspname FROM pg_roles r CROSS JOIN pg_namespace n
		WHERE NOT has_schema_privilege(r.oid, n.oid, 'USAGE') AND r.rolname NOT LIKE 'pg\_%' AND `+ordinary+`
		ORDER BY 1, 2`, add(&r.catalog.Denied, &d), &d.Role, &d.Schema)
}
