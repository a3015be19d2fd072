package build

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// dryRunResult is the result of creating D0 without rows.
type dryRunResult struct {
	Faults error            // every definition that the shadow database rejects
	Made   *ddl.Description // what was created; nil with faults
}

// DryRun creates the types and an empty D0 of the source's definitions in a transaction that is rolled back. A
// definition that fails here would fail after the rows are copied, and the result is what the copies should look like.
func (b *Builder) DryRun(ctx context.Context, types []source.TypeDefinition) (out dryRunResult, err error) {
	tx, err := b.Conn.Begin(ctx)
	if err != nil {
		return out, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // that is the purpose
	path, err := connect.Value[string](ctx, tx, "SELECT current_setting('search_path')")
	if err != nil {
		return out, err
	}
	if out.Faults = (&typeMaker{b.DB, b.Options}).makeTypes(ctx, tx, types, func(string, string) error { return nil }); out.Faults != nil {
		return out, ctx.Err()
	}
	if _, err := tx.Exec(ctx, "SELECT set_config('search_path', $1, true)", path); err != nil {
		return out, err
	}
	for _, step := range []func() error{
		func() error { return connect.Run(ctx, tx, "CREATE SCHEMA "+ident.Quote(b.staging.stage(0))) },
		func() error { return b.checkBounds(ctx, tx) },
		func() error { return b.objects.attempt(ctx, tx, b.objects.d.Sequences, b.objects.d.Tables) },
		func() error {
			return b.objects.attempt(ctx, tx, b.objects.d.Indexes, b.objects.d.Keys, b.objects.d.Filled)
		},
		func() error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return b.objects.makeViews(ctx, tx, 0) })
		},
	} {
		if out.Faults = b.Explain(step()); out.Faults != nil {
			return out, ctx.Err()
		}
	}
	out.Made, err = ddl.Describe(ctx, tx, b.staging.stage(0), b.staging.final(0))
	return out, err
}

// attempt runs definitions one by one and returns the faults of all that fail.
func (o *objects) attempt(ctx context.Context, tx pgx.Tx, groups ...[]ddl.Statement) error {
	var faults []error
	for _, group := range groups {
		for i := range group {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return o.run(ctx, tx, 0, group[i:i+1]) })
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				faults = append(faults, o.db.Explain(err))
			}
		}
	}
	return errors.Join(faults...)
}
