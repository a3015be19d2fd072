package neighbours

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// shapes are lines that describe what a schema holds. The schema is first in the search_path, so that the server prints
// the names in it bare: the lines of two copies are the same.
const tableShape = `SELECT format('column %s.%s is number %s, type %s%s%s%s', c.relname, a.attname, CASE WHEN $2::bool THEN a.attnum ELSE row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum) END, format_type(a.atttypid, a.atttypmod),
	CASE WHEN $2::bool THEN CASE WHEN a.attnotnull THEN ', not null' ELSE '' END || CASE WHEN a.attcollation <> 0 THEN ', collation ' || a.attcollation::regcollation ELSE '' END ELSE '' END,
	CASE WHEN $2::bool THEN format(', identity %s, generated %s, storage %s', a.attidentity, a.attgenerated, a.attstorage) ELSE '' END,
	CASE WHEN $2::bool THEN ', default ' || coalesce(pg_get_expr(x.adbin, x.adrelid), '') ELSE '' END)
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef x ON x.adrelid = c.oid AND x.adnum = a.attnum
	WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped`

const restShape = ` SELECT format('relation %s of kind %s, options %s, partition %s %s', c.relname, c.relkind, c.reloptions, pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid))
	FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
	UNION ALL SELECT format('parent %s of %s', p.relname, c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
	WHERE c.relnamespace = to_regnamespace($1)
	UNION ALL SELECT format('constraint %s of %s: %s', k.conname, c.relname, pg_get_constraintdef(k.oid, true)) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
	WHERE k.connamespace = to_regnamespace($1) AND k.conparentid = 0
	UNION ALL SELECT format('index %s of %s: %s, valid %s', i.relname, c.relname, pg_get_indexdef(i.oid, 0, true), x.indisvalid)
	FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid WHERE i.relnamespace = to_regnamespace($1)
	UNION ALL SELECT format('view %s: %s', c.relname, pg_get_viewdef(c.oid, true)) FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('v', 'm')
	UNION ALL SELECT format('statistics %s: %s', x.stxname, pg_get_statisticsobjdef_columns(x.oid)) FROM pg_statistic_ext x WHERE x.stxnamespace = to_regnamespace($1)
	UNION ALL SELECT format('function %s(%s) of language %s', f.proname, pg_get_function_identity_arguments(f.oid), f.prolang) FROM pg_proc f WHERE f.pronamespace = to_regnamespace($1)`

// shapeOf returns the sorted lines of a schema. Where neighbours are views over D0, the columns alone are compared.
func (v *verifier) shapeOf(ctx context.Context, schema string) ([]string, error) {
	full := v.set.Method != View
	query := tableShape
	if full {
		query += " UNION ALL" + restShape
	}
	var lines []string
	err := pgx.BeginFunc(ctx, v.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path TO "+quote(schema)+", pg_catalog"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query, quote(schema), full)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	slices.Sort(lines)
	return lines, err
}
