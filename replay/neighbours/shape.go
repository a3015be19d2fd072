package neighbours

import (
	"context"
	"slices"
	"strings"

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
	UNION ALL SELECT format('statistics %s: %s', x.stxname, pg_get_statisticsobjdef_columns(x.oid)) FROM pg_statistic_ext x WHERE x.stxnamespace = to_regnamespace($1)
	UNION ALL SELECT format('function %s(%s) of language %s', f.proname, pg_get_function_identity_arguments(f.oid), f.prolang) FROM pg_proc f WHERE f.pronamespace = to_regnamespace($1)`

// viewShape is read with every name in full: beside a CTE of a table's name even a bare name would print with its schema.
const viewShape = `SELECT c.relname, pg_get_viewdef(c.oid, true) FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('v', 'm')`

// viewLines are the definitions of a schema's views in which its own names have the schema "copy".
func (v *verifier) viewLines(ctx context.Context, tx pgx.Tx, schema string) ([]string, error) {
	if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
		return nil, err
	}
	n := &names{map[Table]string{}, map[Table]string{}}
	for set, query := range map[*map[Table]string]string{
		&n.relations: "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1)",
		&n.functions: "SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace($1)",
	} {
		rows, err := tx.Query(ctx, query, quote(schema))
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			(*set)[Table{schema, name}] = name
		}
	}
	rows, err := tx.Query(ctx, viewShape, quote(schema))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var name, definition string
		if err := row.Scan(&name, &definition); err != nil {
			return "", err
		}
		definition, err := n.rename(strings.TrimRight(definition, "; \n"), "copy", "")
		return "view " + name + ": " + definition, err
	})
}

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
		if lines, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !full {
			return err
		}
		views, err := v.viewLines(ctx, tx, schema)
		lines = append(lines, views...)
		return err
	})
	slices.Sort(lines)
	return lines, err
}
