package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// writer writes rows of one engine.
type writer struct {
	pool     *pgxpool.Pool
	name     string // of the engine
	withhold bool   // see Options
	// fence returns an error, and so ends the transaction, if this process may not write any more.
	fence func(context.Context, pgx.Tx) error
}

// write runs f in a transaction during which this process may write.
func (w *writer) write(ctx context.Context, what string, f func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := w.fence(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
	if err != nil {
		return fmt.Errorf("ledger: %s: %w", what, sqlstate.Withhold(err))
	}
	return nil
}

// query stores the identity of a query, and returns its number.
func (w *writer) query(ctx context.Context, tx pgx.Tx, q *Query) (id int64, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO queries (engine, key, shape, fingerprint, summary, statement, epsilon, delta, claim_source, claim_rule, first_seen, last_seen, destinations, claim_curve)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (engine, key) DO UPDATE SET statement = excluded.statement, `+addDestinations+`
		RETURNING id`, w.queryArguments(q)...).Scan(&id)
	return id, err
}

func (w *writer) queryArguments(q *Query) []any {
	statement := q.Statement
	if w.withhold {
		statement = nil
	}
	args := []any{w.name, q.Key, q.Shape, q.Fingerprint, q.Summary, statement, nil, nil, "", "", q.FirstSeen, q.LastSeen, nil, ""}
	destinations := make([]string, len(q.Destinations))
	for i, d := range q.Destinations {
		destinations[i] = valid(d)
	}
	args[12] = destinations
	if c := q.Claim; c != nil {
		args[6], args[7], args[8], args[9], args[13] = c.Epsilon, c.Delta, c.Source, c.Rule, string(c.Curve)
	}
	return args
}
