package neighbours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// columnLines describes the columns of tables, one line each, sorted.
func columnLines(ctx context.Context, tx pgx.Tx, tables []Table) ([]string, error) {
	var schemas, names []string
	for _, t := range tables {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil { // prints types qualified
		return nil, err
	}
	rows, err := tx.Query(ctx, `SELECT format('column %s of %s, type %s%s', a.attname, c.relname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' NOT NULL' END)
		FROM unnest($1::text[], $2::text[]) t(s, n) JOIN pg_namespace ns ON ns.nspname = t.s JOIN pg_class c ON c.relnamespace = ns.oid AND c.relname = t.n
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped`, schemas, names)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(lines)
	return lines, err
}

// tellStale notes differences between the source's tables, as seen in tx, and the copies of the current set.
func (b *builder) tellStale(ctx context.Context, tx pgx.Tx, set Set) error {
	now, err := columnLines(ctx, tx, b.o.Protected)
	if err != nil {
		return err
	}
	var copies []Table
	for _, t := range b.o.Protected {
		copies = append(copies, Table{Schema: set.D0, Name: t.Name})
	}
	var then []string
	err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) (err error) {
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
				b.o.note(side.text, set.Epoch, line)
			}
		}
	}
	return nil
}

// tellCollation notes if the two databases sort text by different rules: replays then compare and order it differently than
// production, though alike in all worlds.
func (b *builder) tellCollation(ctx context.Context, tx pgx.Tx) error {
	const query = "SELECT datcollate, datctype, datlocprovider::text FROM pg_database WHERE datname = current_database()"
	rules := make([][3]string, 2)
	for i, from := range []interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}{tx, b.conn} {
		if err := from.QueryRow(ctx, query).Scan(&rules[i][0], &rules[i][1], &rules[i][2]); err != nil {
			return err
		}
	}
	if rules[0] != rules[1] {
		b.o.note("text is sorted and compared by %s at the source and by %s in the shadow database: create that with the source's locale (CREATE DATABASE ... TEMPLATE template0 LOCALE ...)",
			strings.Join(rules[0][:], ", "), strings.Join(rules[1][:], ", "))
	}
	return nil
}

// compareSource compares D0 with what create would make of the source's present definitions. unread is the reason if it
// could not: the source cannot be reached or read.
func (v *verifier) compareSource(ctx context.Context) (faults []string, unread, err error) {
	o := *v.o
	o.Note, o.Progress = nil, nil
	if o.Source == "" {
		return nil, errors.New("neighbours.source is not set"), nil
	}
	src, err := openSource(ctx, &o)
	if err != nil {
		return nil, err, ctx.Err()
	}
	defer src.close(ctx)
	types, err := readTypes(ctx, src.conn, src.m.types, src.m.collations)
	if err != nil {
		return nil, fmt.Errorf("read the source's types: %w", err), ctx.Err()
	}
	src.close(ctx)
	b := &builder{shadow: v.shadow, o: &o, m: src.m}
	if err := b.plan(); err != nil {
		return nil, nil, err
	}
	if err := checkMeasures(src.m, &o); err != nil {
		return []string{err.Error()}, nil, nil
	}
	r, err := b.dryRun(ctx, types)
	if err != nil {
		return nil, nil, err
	}
	if r.faults != nil {
		return []string{"the source's definitions of today cannot be made in the shadow database: " + r.faults.Error()}, nil, nil
	}
	faults = differences(r.made.lines, v.d0.lines, "the source", v.set.D0)
	for _, s := range src.m.sequences { // the source's sequence advances, a copy's does not
		copied, ok := v.d0.values[s.copy]
		ahead := copied.last > s.last || copied.last == s.last && copied.called && !s.called
		if s.increment < 0 {
			ahead = copied.last < s.last || copied.last == s.last && copied.called && !s.called
		}
		if ok && ahead && !s.cycle {
			faults = append(faults, fmt.Sprintf("sequence %s of %s is ahead of the source's", s.copy, v.set.D0))
		}
	}
	if len(faults) > 0 {
		faults = append(faults, "either the source's definitions or the copies were changed since the copies were made: run `dpwatch neighbours refresh`")
	}
	return faults, nil, nil
}
