package read

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

// bare is a common table expression: for every type, the type without arrays and domains around it. A query can build a
// row from any values, so a row type counts as a type of pg_catalog.
const bare = `
	peeled (type, inner_type) AS (
		SELECT oid, oid FROM pg_type
		UNION
		SELECT p.type, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END
		FROM peeled p JOIN pg_type t ON t.oid = p.inner_type WHERE t.typtype = 'd' OR t.typelem <> 0 AND t.typlen = -1
	), bare AS (
		SELECT p.type, CASE WHEN n.nspname IN ('pg_catalog', 'information_schema') OR t.typtype = 'c' THEN '' ELSE n.nspname END AS schema,
			CASE WHEN n.nspname IN ('pg_catalog', 'information_schema') OR t.typtype = 'c' THEN '' ELSE t.typname END AS name
		FROM peeled p JOIN pg_type t ON t.oid = p.inner_type JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE t.typtype <> 'd' AND NOT (t.typelem <> 0 AND t.typlen = -1)
	)`

// functionTakes selects the types of input arguments, in order.
const functionTakes = `
	WITH RECURSIVE ` + bare + `
	SELECT f.oid, b.schema, b.name
	FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace, LATERAL unnest(f.proargtypes) WITH ORDINALITY a (type, place)
	JOIN bare b ON b.type = a.type WHERE ` + ordinary + ` ORDER BY f.oid, a.place`

// parts is a common table expression: user-defined types, and the types that their values contain or may be converted
// to rows of.
const parts = `
	parts (type, part) AS (
		SELECT oid, typbasetype FROM pg_type WHERE typtype = 'd'
		UNION
		SELECT oid, typelem FROM pg_type WHERE typelem <> 0 AND typlen = -1
		UNION
		SELECT t.oid, a.atttypid FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid
		WHERE t.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
		UNION
		SELECT rngtypid, rngsubtype FROM pg_range
		UNION
		SELECT t.oid, r.rngtypid FROM pg_range r JOIN pg_type t ON t.oid = (to_jsonb(r) ->> 'rngmultitypid')::oid
	)`

// relationTypes selects the user-defined types within the columns of relations.
const relationTypes = `
	WITH RECURSIVE ` + parts + `, held (relation, type) AS (
		SELECT c.oid, a.atttypid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND a.atttypid >= 16384 AND ` + ordinary + `
		UNION
		SELECT h.relation, p.part FROM held h JOIN parts p ON p.type = h.type WHERE p.part >= 16384
	)
	SELECT h.relation, n.nspname, t.typname FROM held h JOIN pg_type t ON t.oid = h.type JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE n.nspname <> 'pg_catalog' ORDER BY 1, 2, 3`

// functionGives selects the user-defined types within the results of functions.
const functionGives = `
	WITH RECURSIVE ` + parts + `, held (function, type) AS (
		SELECT f.oid, g.type FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace, LATERAL unnest(f.proallargtypes || f.prorettype) g (type)
		WHERE g.type >= 16384 AND ` + ordinary + `
		UNION
		SELECT h.function, p.part FROM held h JOIN parts p ON p.type = h.type WHERE p.part >= 16384
	)
	SELECT h.function, n.nspname, t.typname FROM held h JOIN pg_type t ON t.oid = h.type JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE n.nspname <> 'pg_catalog' ORDER BY 1, 2, 3`

// typeHolds selects the user-defined component types of user-defined types.
const typeHolds = `
	WITH RECURSIVE ` + parts + `, held (holder, type) AS (
		SELECT type, part FROM parts WHERE type >= 16384 AND part >= 16384
		UNION
		SELECT h.holder, p.part FROM held h JOIN parts p ON p.type = h.type WHERE p.part >= 16384
	)
	SELECT o.nspname, holder.typname, n.nspname, t.typname
	FROM held h JOIN pg_type holder ON holder.oid = h.holder JOIN pg_namespace o ON o.oid = holder.typnamespace
	LEFT JOIN pg_class c ON c.oid = holder.typrelid
	JOIN pg_type t ON t.oid = h.type JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE NOT (holder.typelem <> 0 AND holder.typlen = -1) AND (c.oid IS NULL OR c.relkind = 'c') ORDER BY 1, 2, 3, 4`

// coercions selects the implicit casts to user-defined types.
const coercions = `
	WITH RECURSIVE ` + bare + `
	SELECT DISTINCT s.schema, s.name, t.schema, t.name FROM pg_cast c JOIN bare s ON s.type = c.castsource JOIN bare t ON t.type = c.casttarget
	WHERE c.castcontext = 'i' AND t.name <> '' ORDER BY 1, 2, 3, 4`

// operators selects those of users and extensions, each with its function.
const operators = `
	WITH RECURSIVE ` + bare + `
	SELECT n.nspname, o.oprname, fn.nspname, f.proname,
		CASE WHEN o.oprleft = 0 THEN 'NONE' ELSE format_type(o.oprleft, NULL) END || ', ' || format_type(o.oprright, NULL),
		coalesce(l.schema, ''), coalesce(l.name, ''), coalesce(r.schema, ''), coalesce(r.name, '')
	FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
	JOIN pg_proc f ON f.oid = o.oprcode JOIN pg_namespace fn ON fn.oid = f.pronamespace
	LEFT JOIN bare l ON l.type = o.oprleft LEFT JOIN bare r ON r.type = o.oprright
	WHERE ` + ordinary + ` ORDER BY 1, 2, 3, 4, 5`

// userTypes selects all user-defined types except arrays and the row types of tables, whose names derive from their
// elements and tables.
const userTypes = `SELECT n.nspname, t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
	WHERE NOT (t.typelem <> 0 AND t.typlen = -1) AND (c.oid IS NULL OR c.relkind = 'c') AND ` + ordinary + ` ORDER BY 1, 2`

// typeCalls selects the functions that are called to create a value of a type, directly or for its components (the base
// of a domain, the elements of an array, the columns of a row, the bounds of a range): those outside pg_catalog; and of
// pg_catalog, where they leave no dependency, those that a domain's check calls and that are not immutable, and the
// input functions of types whose values are names of objects (regclass). SQLVALUEFUNCTION 9 to 14 are CURRENT_ROLE to
// CURRENT_SCHEMA (primnodes.h).
const typeCalls = `
	WITH RECURSIVE direct AS (
		SELECT t.oid AS type, i.f FROM pg_type t, LATERAL (VALUES (t.typinput::oid), (t.typreceive::oid), (t.typmodin::oid)) i(f)
		JOIN pg_proc p ON p.oid = i.f WHERE p.pronamespace <> 'pg_catalog'::regnamespace
		UNION
		SELECT c.casttarget, c.castfunc FROM pg_cast c JOIN pg_proc p ON p.oid = c.castfunc WHERE p.pronamespace <> 'pg_catalog'::regnamespace
		UNION
		SELECT c.contypid, coalesce(o.oprcode::oid, d.refobjid)
		FROM pg_constraint c JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
		LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
		WHERE c.contypid <> 0 AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
		UNION
		SELECT c.contypid, p.oid FROM pg_constraint c, LATERAL regexp_matches(c.conbin::text, ':(?:funcid|opfuncid) (\d+)', 'g') m
		JOIN pg_proc p ON p.oid = m[1]::oid WHERE c.contypid <> 0 AND p.provolatile <> 'i'
		UNION
		SELECT c.contypid, '"current_user"()'::regprocedure::oid FROM pg_constraint c
		WHERE c.contypid <> 0 AND c.conbin::text ~ '\{SQLVALUEFUNCTION :op (9|1[0-4]) '
		UNION
		SELECT t.oid, t.typinput::oid FROM pg_type t WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typname ~ '^reg'
	), ` + parts + `, calls AS (
		SELECT type, f FROM direct
		UNION
		SELECT parts.type, calls.f FROM calls JOIN parts ON parts.part = calls.type
		JOIN pg_type t ON t.oid = calls.type JOIN pg_proc p ON p.oid = calls.f -- a row is not made by casts to built-in types
		WHERE t.typnamespace <> 'pg_catalog'::regnamespace OR p.pronamespace = 'pg_catalog'::regnamespace
	)
	SELECT n.nspname, t.typname, fn.nspname, f.proname
	FROM calls JOIN pg_type t ON t.oid = calls.type JOIN pg_namespace n ON n.oid = t.typnamespace
	JOIN pg_proc f ON f.oid = calls.f JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE fn.nspname <> 'pg_catalog' OR ` + ordinary + ` ORDER BY 1, 2, 3, 4`

// implicitCasts selects the functions outside pg_catalog of casts that do not appear in a query's text: implicit ones,
// and those to json, which to_json and similar functions use.
const implicitCasts = `SELECT DISTINCT fn.nspname, f.proname
	FROM pg_cast c JOIN pg_proc f ON f.oid = c.castfunc JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE (c.castcontext = 'i' OR c.casttarget = 'json'::regtype) AND fn.nspname <> 'pg_catalog' ORDER BY 1, 2`

// typeSupport selects the functions outside pg_catalog that print a type's values, or that its default comparisons call.
const typeSupport = `
	SELECT n.nspname, t.typname, fn.nspname, f.proname
	FROM (
		SELECT oid AS type, o.f FROM pg_type, LATERAL (VALUES (typoutput::oid), (typsend::oid), (typmodout::oid)) o (f)
		UNION
		SELECT c.opcintype, a.amproc::oid FROM pg_opclass c JOIN pg_amproc a ON a.amprocfamily = c.opcfamily WHERE c.opcdefault
		UNION
		SELECT c.opcintype, o.oprcode::oid FROM pg_opclass c JOIN pg_amop a ON a.amopfamily = c.opcfamily JOIN pg_operator o ON o.oid = a.amopopr WHERE c.opcdefault
	) s JOIN pg_type t ON t.oid = s.type JOIN pg_namespace n ON n.oid = t.typnamespace
	JOIN pg_proc f ON f.oid = s.f JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE fn.nspname <> 'pg_catalog' ORDER BY 1, 2, 3, 4`

// domainDefaults selects the functions outside pg_catalog in the defaults of domains.
const domainDefaults = `
	SELECT n.nspname, t.typname, fn.nspname, f.proname
	FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	JOIN pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE t.typtype = 'd' AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass) AND fn.nspname <> 'pg_catalog' ORDER BY 1, 2, 3, 4`

// casts selects the casts with functions outside pg_catalog.
const casts = `
	SELECT s.nspname, a.typname, t.nspname, b.typname, n.nspname, f.proname, c.castcontext::text
	FROM pg_cast c JOIN pg_type a ON a.oid = c.castsource JOIN pg_namespace s ON s.oid = a.typnamespace
	JOIN pg_type b ON b.oid = c.casttarget JOIN pg_namespace t ON t.oid = b.typnamespace
	JOIN pg_proc f ON f.oid = c.castfunc JOIN pg_namespace n ON n.oid = f.pronamespace
	WHERE n.nspname <> 'pg_catalog' ORDER BY 1, 2, 3, 4`

func (r *reader) casts() error {
	var c catalog.Cast
	return r.each(casts, add(&r.catalog.Casts, &c), &c.From.Schema, &c.From.Name, &c.To.Schema, &c.To.Name, &c.Function.Schema, &c.Function.Name, &c.Context)
}

func (r *reader) operators() error {
	var o catalog.Operator
	return r.each(operators, add(&r.catalog.Operators, &o), &o.Schema, &o.Name, &o.Function.Schema, &o.Function.Name, &o.Operands,
		&o.Takes[0].Schema, &o.Takes[0].Name, &o.Takes[1].Schema, &o.Takes[1].Name)
}

// types reads the user-defined types, those of pg_catalog whose values are converted by user-defined functions, and the
// casts that do not appear in a query's text.
func (r *reader) types() error {
	places := map[catalog.Table]int{}
	at := func(t catalog.Table) *catalog.Type {
		i, ok := places[t]
		if !ok {
			i = len(r.catalog.Types)
			places[t] = i
			r.catalog.Types = append(r.catalog.Types, catalog.Type{Schema: t.Schema, Name: t.Name})
		}
		return &r.catalog.Types[i]
	}
	var t, other catalog.Table
	for _, list := range []struct {
		sql   string
		pairs bool // each row has a second name, other
		add   func()
	}{
		{userTypes, false, func() { at(t) }},
		{typeCalls, true, func() {
			if calls := &at(t).Calls; !slices.Contains(*calls, other) {
				*calls = append(*calls, other)
			}
		}},
		{typeSupport, true, func() {
			support := &at(t).Support
			*support = append(*support, other)
		}},
		{domainDefaults, true, func() {
			byDefault := &at(t).Default
			*byDefault = append(*byDefault, other)
		}},
		{typeHolds, true, func() {
			holds := &at(t).Holds
			*holds = append(*holds, other)
		}},
		{coercions, true, func() { r.catalog.Coercions = append(r.catalog.Coercions, catalog.Coercion{From: t, To: other}) }},
		{implicitCasts, false, func() { r.catalog.ImplicitCasts = append(r.catalog.ImplicitCasts, t) }},
	} {
		values := []any{&t.Schema, &t.Name}
		if list.pairs {
			values = append(values, &other.Schema, &other.Name)
		}
		err := r.each(list.sql, func() error {
			list.add()
			return nil
		}, values...)
		if err != nil {
			return err
		}
	}
	return nil
}
