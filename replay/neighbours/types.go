package neighbours

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// typeDefinition is an enum, domain or composite type as one text, that makes it and that tells it from another.
type typeDefinition struct {
	schema, name string
	kind         string // TYPE or DOMAIN
	sql          string
}

// typeClosure are types with those that they are made of: array elements, domain bases, attributes.
const typeClosure = `WITH RECURSIVE t(oid) AS (SELECT unnest($1::oid[]) UNION
	SELECT x.oid FROM t JOIN pg_type y ON y.oid = t.oid
	LEFT JOIN pg_attribute a ON a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped
	JOIN pg_type x ON x.oid IN (y.typbasetype, y.typelem, a.atttypid))`

// typeDefinitions reads the types of a list of OIDs, in the order in which they can be made. Types of extensions are not
// among them: the shadow database has the extension.
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
	ELSE '' END
	FROM t JOIN pg_type y USING (oid) JOIN pg_namespace n ON n.oid = y.typnamespace LEFT JOIN pg_type b ON b.oid = y.typbasetype
	LEFT JOIN pg_class c ON c.oid = y.typrelid
	WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND y.typtype IN ('e', 'd', 'c', 'r')
	AND (y.typtype <> 'c' OR c.relkind = 'c')
	AND NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = 'pg_type'::regclass AND x.objid = y.oid AND x.deptype = 'e')
	ORDER BY y.oid`

func readTypes(ctx context.Context, conn *pgx.Conn, oids []uint32) ([]typeDefinition, error) {
	rows, err := conn.Query(ctx, typeDefinitions, oids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t typeDefinition, err error) {
		return t, row.Scan(&t.schema, &t.name, &t.kind, &t.sql)
	})
}

// makeTypes sees to it that the shadow database has the source's types, under their own names: queries say them
// ('x'::public.mood), all worlds must share them, and they hold no rows. What is made is recorded in the same transaction.
func (s *shadow) makeTypes(ctx context.Context, wanted []typeDefinition, epoch int64) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil { // definitions print names in full
			return err
		}
		number := 0
		note := func(kind, name string) error {
			number++
			_, err := tx.Exec(ctx, "INSERT INTO "+s.record("neighbour_object")+" VALUES ($1, $2, $3, $4)", epoch, number, kind, name)
			return err
		}
		for _, t := range wanted {
			name := pgx.Identifier{t.schema, t.name}.Sanitize()
			var oid *uint32
			if err := tx.QueryRow(ctx, "SELECT to_regtype($1)::oid", name).Scan(&oid); err != nil {
				return err
			}
			if oid != nil {
				if err := sameType(ctx, tx, t, *oid); err != nil {
					return err
				}
				continue
			}
			if t.sql == "" {
				return fmt.Errorf("type %s.%s is neither enum, domain nor composite: create it in the shadow database first", t.schema, t.name)
			}
			var there bool
			if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", quote(t.schema)).Scan(&there); err != nil {
				return err
			}
			if !there {
				if _, err := tx.Exec(ctx, "CREATE SCHEMA "+quote(t.schema)); err != nil {
					return err
				}
				if err := note("SCHEMA", quote(t.schema)); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, t.sql); err != nil {
				return fmt.Errorf("type %s.%s: %w", t.schema, t.name, err)
			}
			if err := note(t.kind, name); err != nil {
				return err
			}
			for _, role := range s.o.Grant {
				if _, err := tx.Exec(ctx, "GRANT USAGE ON SCHEMA "+quote(t.schema)+" TO "+quote(role)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// sameType refuses a type of the shadow database that is not the source's.
func sameType(ctx context.Context, tx pgx.Tx, want typeDefinition, oid uint32) error {
	got, err := readTypes(ctx, tx.Conn(), []uint32{oid})
	if err != nil {
		return err
	}
	same := slices.ContainsFunc(got, func(t typeDefinition) bool { return t == want })
	if !same && want.sql != "" {
		return fmt.Errorf("type %s.%s of the shadow database differs from the source's: if dpwatch made it, run `dpwatch neighbours drop` and create the set again; else make it the same", want.schema, want.name)
	}
	return nil
}
