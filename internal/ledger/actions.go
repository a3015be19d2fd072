package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Errors of Accept and Revoke.
var (
	// ErrNoViolation: only a violation can be accepted.
	ErrNoViolation = errors.New("the audit has no violation")
	// ErrPast: the date of an acceptance is not in the future, by the ledger's clock.
	ErrPast = errors.New("the date is not in the future")
	// ErrNotAccepted: there is nothing to revoke.
	ErrNotAccepted = errors.New("the violation is not accepted")
)

// Actions records what operators decide about audits.
type Actions struct{ pool *pgxpool.Pool }

// Accept records that an operator accepts the violation of a query's audit until a time, on the present engine.
func (s *Actions) Accept(ctx context.Context, engine, key, operator, reason string, until time.Time) error {
	return s.act(ctx, engine, key, func(tx pgx.Tx, query int64) error {
		var violation, future bool
		var epoch string
		err := tx.QueryRow(ctx, "SELECT "+violates+", $2 > now(), engine_epoch FROM audits a WHERE query = $1", query, until).Scan(&violation, &future, &epoch)
		switch {
		case errors.Is(err, pgx.ErrNoRows) || err == nil && !violation:
			return ErrNoViolation
		case err == nil && !future:
			return ErrPast
		case err != nil:
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO actions (query, operator, action, reason, until, engine_epoch) VALUES ($1, $2, 'accept', $3, $4, $5)", query, operator, reason, until, epoch)
		return err
	})
}

// Revoke records that an operator ends an acceptance.
func (s *Actions) Revoke(ctx context.Context, engine, key, operator, reason string) error {
	return s.act(ctx, engine, key, func(tx pgx.Tx, query int64) error {
		last, err := lastDecision(ctx, tx, query)
		if err == nil && last.action != read.ActionAccept {
			err = ErrNotAccepted
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO actions (query, operator, action, reason) VALUES ($1, $2, 'revoke', $3)", query, operator, reason)
		return err
	})
}

// Reproduced records the result of a reproduction. The evidence of the audit stays as it is.
func (s *Actions) Reproduced(ctx context.Context, engine, key, operator, result string) error {
	return s.act(ctx, engine, key, func(tx pgx.Tx, query int64) error {
		_, err := tx.Exec(ctx, "INSERT INTO actions (query, operator, action, reason) VALUES ($1, $2, 'reproduce', $3)", query, operator, result)
		return err
	})
}

// act runs f in a transaction in which no other action on the query is recorded.
func (s *Actions) act(ctx context.Context, engine, key string, f func(tx pgx.Tx, query int64) error) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var query int64
		if err := tx.QueryRow(ctx, "SELECT id FROM queries WHERE engine = $1 AND key = $2", engine, key).Scan(&query); err != nil {
			return err
		}
		if err := lockActions(ctx, tx, query); err != nil {
			return err
		}
		return f(tx, query)
	})
	if err != nil {
		return fmt.Errorf("ledger: record an action: %w", sqlstate.Withhold(err))
	}
	return nil
}

// lockActions waits until no other transaction records an action on a query.
func lockActions(ctx context.Context, tx pgx.Tx, query int64) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('dpwatch action ' || $1::bigint, 0))", query)
	return err
}

type decision struct {
	id     int64
	action string
}

// lastDecision returns the last action on a query that concerns its acceptance; the zero value if there is none.
func lastDecision(ctx context.Context, tx pgx.Tx, query int64) (d decision, err error) {
	err = tx.QueryRow(ctx, "SELECT id, action FROM "+decisions+" d WHERE query = $1", query).Scan(&d.id, &d.action)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return d, err
}
