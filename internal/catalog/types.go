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

// typeCalls are the functions outside pg_catalog that making a value of a type calls.
const typeCalls = `
	WITH calls AS (
		SELECT t.oid AS type, i.f FROM pg_type t, LATERAL (VALUES (t.typinput::oid), (t.typreceive::oid), (t.typmodin::oid)) i(f)
		UNION
		SELECT casttarget, castfunc FROM pg_cast
		UNION
		SELECT c.contypid, coalesce(o.oprcode::oid, d.refobjid)
		FROM pg_constraint c JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
		LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
		WHERE c.contypid <> 0 AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	)
	SELECT n.nspname, t.typname, fn.nspname, f.proname
	FROM calls JOIN pg_type t ON t.oid = calls.type JOIN pg_namespace n ON n.oid = t.typnamespace
	JOIN pg_proc f ON f.oid = calls.f JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE fn.nspname <> 'pg_catalog' ORDER BY 1, 2, 3, 4`

// implicitCasts are the functions outside pg_catalog of casts that need no word in a query.
const implicitCasts = `SELECT DISTINCT fn.nspname, f.proname
	FROM pg_cast c JOIN pg_proc f ON f.oid = c.castfunc JOIN pg_namespace fn ON fn.oid = f.pronamespace
	WHERE c.castcontext = 'i' AND fn.nspname <> 'pg_catalog' ORDER BY 1, 2`

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
