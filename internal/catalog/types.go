package catalog

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/rewrite"
)

// operators are those of users and extensions, each with its function.
const operators = `SELECT n.nspname, o.oprname, fn.nspname, f.proname
	FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
	JOIN pg_proc f ON f.oid = o.oprcode JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE ` + ordinary + ` ORDER BY 1, 2, 3, 4`

// typeCalls are the functions that making a value of a type calls, by itself or through what it is made of (the base of a domain, the
// elements of an array, the columns of a row, the bounds of a range): those outside pg_catalog, and of pg_catalog, where they leave no
// dependency, those that a domain's check calls and that are not immutable, and the input functions of types whose values are names of
// objects (regclass). SQLVALUEFUNCTION 9 to 14 are CURRENT_ROLE to CURRENT_SCHEMA (primnodes.h).
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
	), made AS (
		SELECT oid AS type, typbasetype AS part FROM pg_type WHERE typtype = 'd'
		UNION
		SELECT oid, typelem FROM pg_type WHERE typelem <> 0 AND typlen = -1
		UNION
		SELECT t.oid, a.atttypid FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid
		WHERE t.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
		UNION
		SELECT rngtypid, rngsubtype FROM pg_range
		UNION
		SELECT t.oid, r.rngtypid FROM pg_range r JOIN pg_type t ON t.oid = (to_jsonb(r) ->> 'rngmultitypid')::oid
	), calls AS (
		SELECT type, f FROM direct
		UNION
		SELECT made.type, calls.f FROM calls JOIN made ON made.part = calls.type
		JOIN pg_type t ON t.oid = calls.type JOIN pg_proc p ON p.oid = calls.f -- a row is not made by casts to built-in types
		WHERE t.typnamespace <> 'pg_catalog'::regnamespace OR p.pronamespace = 'pg_catalog'::regnamespace
	)
	SELECT n.nspname, t.typname, fn.nspname, f.proname
	FROM calls JOIN pg_type t ON t.oid = calls.type JOIN pg_namespace n ON n.oid = t.typnamespace
	JOIN pg_proc f ON f.oid = calls.f JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE fn.nspname <> 'pg_catalog' OR ` + ordinary + ` ORDER BY 1, 2, 3, 4`

// implicitCasts are the functions outside pg_catalog of casts that need no word in a query: implicit ones, and those to json, which
// to_json and its like look for.
const implicitCasts = `SELECT DISTINCT fn.nspname, f.proname
	FROM pg_cast c JOIN pg_proc f ON f.oid = c.castfunc JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE (c.castcontext = 'i' OR c.casttarget = 'json'::regtype) AND fn.nspname <> 'pg_catalog' ORDER BY 1, 2`

func (r *reader) operators() error {
	return r.rows(operators, func(row pgx.Rows) error {
		var o rewrite.Operator
		err := row.Scan(&o.Schema, &o.Name, &o.Function.Schema, &o.Function.Name)
		r.catalog.Operators = append(r.catalog.Operators, o)
		return err
	})
}

// types reads the types whose values go through functions of users, and their implicit casts.
func (r *reader) types() error {
	err := r.rows(typeCalls, func(row pgx.Rows) error {
		var t rewrite.Type
		var f rewrite.Table
		if err := row.Scan(&t.Schema, &t.Name, &f.Schema, &f.Name); err != nil {
			return err
		}
		list := &r.catalog.Types
		if last := len(*list) - 1; last < 0 || (*list)[last].Schema != t.Schema || (*list)[last].Name != t.Name {
			*list = append(*list, t)
		}
		calls := &(*list)[len(*list)-1].Calls
		if !slices.Contains(*calls, f) {
			*calls = append(*calls, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.rows(implicitCasts, func(row pgx.Rows) error {
		var f rewrite.Table
		err := row.Scan(&f.Schema, &f.Name)
		r.catalog.ImplicitCasts = append(r.catalog.ImplicitCasts, f)
		return err
	})
}
