package build

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Drop removes a set and the records: see neighbours.Drop.
func Drop(ctx context.Context, o spec.Options) error {
	s, err := shadow.Open(ctx, &o, false)
	if errors.Is(err, shadow.ErrNoSet) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	set, err := s.Current(ctx)
	if err != nil && !errors.Is(err, shadow.ErrNoSet) {
		return err
	}
	if err == nil { // in one transaction: a killed command leaves the whole set or none
		if err := pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error { return s.Retire(ctx, tx, set) }); err != nil {
			return s.Explain(err)
		}
	}
	if err := s.RemoveLeftovers(ctx); err != nil {
		return s.Explain(err)
	}
	if err := s.DropTypes(ctx, "true"); err != nil {
		return s.Explain(err)
	}
	return s.DropRecords(ctx)
}
