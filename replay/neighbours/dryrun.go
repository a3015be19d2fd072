package neighbours

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// dryRunResult is the result of creating D0 without rows.
type dryRunResult struct {
	faults error        // every definition that the shadow database rejects
	made   *description // what was created; nil with faults
}

// dryRun creates the types and an empty D0 of the source's definitions in a transaction that is rolled back. A definition
// that fails here would fail after the rows are copied, and the result is what the copies should look like.
func (b *builder) dryRun(ctx context.Context, types []typeDefinition) (out dryRunResult, err error) {
	tx, err := b.conn.Begin(ctx)
	if err != nil {
		return out, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // that is the purpose
	var path string
	if err := tx.QueryRow(ctx, "SELECT current_setting('search_path')").Scan(&path); err != nil {
		return out, err
	}
	if out.faults = b.makeTypes(ctx, tx, types, func(string, string) error { return nil }); out.faults != nil {
		return out, ctx.Err()
	}
	if _, err := tx.Exec(ctx, "SELECT set_config('search_path', $1, true)", path); err != nil {
		return out, err
	}
	if _, err := tx.Exec(ctx, "CREATE SCHEMA "+ident.Quote(b.stage(0))); err != nil {
		out.faults = explain(err)
		return out, ctx.Err()
	}
	for _, step := range []func() error{
		func() error { return b.checkBounds(ctx, tx) },
		func() error { return b.attempt(ctx, tx, b.d.sequences, b.d.tables) },
		func() error { return b.attempt(ctx, tx, b.d.indexes, b.d.keys, b.d.filled) },
		func() error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return b.makeViews(ctx, tx, 0) })
		},
	} {
		if out.faults = explain(step()); out.faults != nil {
			return out, ctx.Err()
		}
	}
	out.made, err = describe(ctx, tx, b.stage(0), b.final(0))
	return out, err
}

// attempt runs definitions one by one and returns the faults of all that fail.
func (b *builder) attempt(ctx context.Context, tx pgx.Tx, groups ...[]statement) error {
	var faults []error
	for _, group := range groups {
		for i := range group {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return b.run(ctx, tx, 0, group[i:i+1]) })
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				faults = append(faults, explain(err))
			}
		}
	}
	return errors.Join(faults...)
}
