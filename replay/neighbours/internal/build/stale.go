package build

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
)

// columnLines describes the columns of tables, one line each.
func columnLines(ctx context.Context, tx pgx.Tx, tables []ident.Table) ([]string, error) {
	var schemas, names []string
	for _, t := range tables {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil { // prints types qualified
		return nil, err
	}
	return connect.Values[string](ctx, tx, `SELECT format('column %s of %s, type %s%s', a.attname, c.relname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' NOT NULL' END)
		FROM unnest($1::text[], $2::text[]) t(s, n) JOIN pg_namespace ns ON ns.nspname = t.s JOIN pg_class c ON c.relnamespace = ns.oid AND c.relname = t.n
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attname`, schemas, names)
}

// noteStale reports differences between the source's tables, as seen in tx, and the copies of the current set.
func (b *Builder) noteStale(ctx context.Context, tx pgx.Tx, set shadow.Set) error {
	now, err := columnLines(ctx, tx, b.Options.Protected)
	if err != nil {
		return err
	}
	var copies []ident.Table
	for _, t := range b.Options.Protected {
		copies = append(copies, ident.Table{Schema: set.D0, Name: t.Name})
	}
	var then []string
	err = pgx.BeginFunc(ctx, b.Conn, func(tx pgx.Tx) (err error) {
		then, err = columnLines(ctx, tx, copies)
		return err
	})
	if err != nil {
		return err
	}
	for _, side := range []struct {
		text string
		a, b []string
	}{{"the source has, and the copies of epoch %d have not: %s", now, then}, {"the source has no longer, and the copies of epoch %d have: %s", then, now}} {
		for _, line := range side.a {
			if !slices.Contains(side.b, line) {
				b.Options.Notef(side.text, set.Epoch, line)
			}
		}
	}
	return nil
}

// noteCollation reports whether the two databases sort text by different rules: replays then compare and order it
// differently than production, though alike in all worlds.
func (b *Builder) noteCollation(ctx context.Context, tx pgx.Tx) error {
	const query = "SELECT concat_ws(', ', datcollate, datctype, datlocprovider) FROM pg_database WHERE datname = current_database()"
	here, err := connect.Value[string](ctx, tx, query)
	if err != nil {
		return err
	}
	there, err := connect.Value[string](ctx, b.Conn, query)
	if err == nil && here != there {
		b.Options.Notef("text is sorted and compared by %s at the source and by %s in the shadow database: create the shadow database with the source's locale (CREATE DATABASE ... TEMPLATE template0 LOCALE ...)", here, there)
	}
	return err
}
