package source

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// TypeDefinition is an enum, domain, composite or range type, or a collation. SQL both creates and identifies it.
type TypeDefinition struct {
	Schema, Name string
	Kind         string // TYPE, DOMAIN or COLLATION
	SQL          string
}

// typeClosure selects types with the types that they depend on: array elements, domain bases, attributes, range
// subtypes.
const typeClosure = `WITH RECURSIVE t(oid) AS (SELECT unnest($1::oid[]) UNION
	SELECT x.oid FROM t JOIN pg_type y ON y.oid = t.oid
	LEFT JOIN pg_attribute a ON a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_range r ON y.oid IN (r.rngtypid, r.rngmultitypid)
	JOIN pg_type x ON x.oid IN (y.typbasetype, y.typelem, a.atttypid, r.rngtypid, r.rngsubtype))`

// collationDefinitions reads the collations of a list of OIDs, $2, and those of the types $1. The names of catalog
// columns depend on the server's version.
const collationDefinitions = typeClosure + `
	SELECT n.nspname, co.collname, 'COLLATION', format('CREATE COLLATION %I.%I (%s, DETERMINISTIC = %s)', n.nspname, co.collname,
		CASE co.collprovider WHEN 'c' THEN format('PROVIDER = libc, LC_COLLATE = %L, LC_CTYPE = %L', co.collcollate, co.collctype)
			ELSE CASE co.collprovider WHEN 'i' THEN 'PROVIDER = icu' ELSE 'PROVIDER = builtin' END
				|| format(', LOCALE = %L', coalesce(to_jsonb(co)->>'colllocale', to_jsonb(co)->>'colliculocale', co.collcollate))
				|| coalesce(', RULES = ' || quote_literal(nullif(to_jsonb(co)->>'collicurules', '')), '') END, co.collisdeterministic::text)
	FROM pg_collation co JOIN pg_namespace n ON n.oid = co.collnamespace
	WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND co.oid = ANY ($2::oid[] || ARRAY(
		SELECT unnest(ARRAY[y.typcollation, r.rngcollation, a.attcollation]) FROM t JOIN pg_type y ON y.oid = t.oid
		LEFT JOIN pg_range r ON r.rngtypid = y.oid LEFT JOIN pg_attribute a ON a.attrelid = y.typrelid))
	AND NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = 'pg_collation'::regclass AND x.objid = co.oid AND x.deptype = 'e')
	ORDER BY co.oid`

// typeDefinitions reads the types of a list of OIDs, in an order in which they can be created. Types of extensions are
// not included: the shadow database has the extension.
const typeDefinitions = typeClosure + `
	SELECT n.nspname, y.typname, CASE WHEN y.typtype = 'd' THEN 'DOMAIN' ELSE 'TYPE' END, CASE y.typtype
	WHEN 'e' THEN (SELECT format('CREATE TYPE %I.%I AS ENUM (%s)', n.nspname, y.typname, string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder))
		FROM pg_enum e WHERE e.enumtypid = y.oid)
	WHEN 'd' THEN format('CREATE DOMAIN %I.%I AS %s', n.nspname, y.typname, format_type(y.typbasetype, y.typtypmod))
		|| CASE WHEN y.typcollation <> b.typcollation THEN ' COLLATE ' || y.typcollation::regcollation ELSE '' END
		|| coalesce(' DEFAULT ' || y.typdefault, '') || CASE WHEN y.typnotnull THEN ' NOT NULL' ELSE '' END
		|| coalesce((SELECT string_agg(format(' CONSTRAINT %I %s', k.conname, pg_get_constraintdef(k.oid)), '' ORDER BY k.conname)
			FROM pg_constraint k WHERE k.contypid = y.oid AND k.contype = 'c'), '')
	WHEN 'c' THEN (SELECT format('CREATE TYPE %I.%I AS (%s)', n.nspname, y.typname, string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
		|| CASE WHEN a.attcollation <> at.typcollation THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END, ', ' ORDER BY a.attnum))
		FROM pg_attribute a JOIN pg_type at ON at.oid = a.atttypid WHERE a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped)
	WHEN 'r' THEN (SELECT format('CREATE TYPE %I.%I AS RANGE (SUBTYPE = %s%s%s%s%s%s)', n.nspname, y.typname, format_type(r.rngsubtype, NULL),
		CASE WHEN NOT o.opcdefault THEN format(', SUBTYPE_OPCLASS = %I.%I', opn.nspname, o.opcname) ELSE '' END,
		CASE WHEN r.rngcollation <> st.typcollation THEN ', COLLATION = ' || r.rngcollation::regcollation ELSE '' END,
		CASE WHEN r.rngcanonical <> 0 THEN ', CANONICAL = ' || r.rngcanonical ELSE '' END,
		CASE WHEN r.rngsubdiff <> 0 THEN ', SUBTYPE_DIFF = ' || r.rngsubdiff ELSE '' END,
		coalesce((SELECT format(', MULTIRANGE_TYPE_NAME = %I.%I', mn.nspname, m.typname) FROM pg_type m JOIN pg_namespace mn ON mn.oid = m.typnamespace
			WHERE m.oid = r.rngmultitypid), ''))
		FROM pg_range r JOIN pg_type st ON st.oid = r.rngsubtype JOIN pg_opclass o ON o.oid = r.rngsubopc JOIN pg_namespace opn ON opn.oid = o.opcnamespace
		WHERE r.rngtypid = y.oid)
	ELSE '' END
	FROM t JOIN pg_type y USING (oid) JOIN pg_namespace n ON n.oid = y.typnamespace LEFT JOIN pg_type b ON b.oid = y.typbasetype
	LEFT JOIN pg_class c ON c.oid = y.typrelid
	WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND (y.typtype IN ('e', 'd', 'c', 'r') OR y.typtype = 'b' AND y.typcategory <> 'A')
	AND (y.typtype <> 'c' OR c.relkind = 'c')
	AND NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = 'pg_type'::regclass AND x.objid = y.oid AND x.deptype = 'e')
	ORDER BY y.oid`

// ReadTypes reads types and collations, dependencies first.
func ReadTypes(ctx context.Context, conn *pgx.Conn, oids, collations []uint32) ([]TypeDefinition, error) {
	first, err := connect.Structs[TypeDefinition](ctx, conn, collationDefinitions, oids, append([]uint32{}, collations...))
	if err != nil {
		return nil, err
	}
	types, err := connect.Structs[TypeDefinition](ctx, conn, typeDefinitions, oids)
	return append(first, types...), err
}
