package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// ErrUndecided means that an audit cannot begin again, because it has not come to an end.
var ErrUndecided = errors.New("the audit has no verdict yet")

// Reaudit records that an operator wants a decided audit to begin again. The auditor reads it with [Audits.Reaudits].
func (s *Actions) Reaudit(ctx context.Context, engine, key, operator, reason string) error {
	return s.act(ctx, engine, key, func(tx pgx.Tx, query int64) error {
		var decided bool
		err := tx.QueryRow(ctx, "SELECT verdict <> '' FROM audits WHERE query = $1", query).Scan(&decided)
		switch {
		case errors.Is(err, pgx.ErrNoRows) || err == nil && !decided:
			return ErrUndecided
		case err != nil:
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO actions (query, operator, action, reason) VALUES ($1, $2, 'reaudit', $3)", query, operator, reason)
		return err
	})
}

// Reaudits returns the keys of the audits for which Reaudit was called, without those for which [Audits.Note] has
// recorded since that they began again.
func (s *Audits) Reaudits(ctx context.Context) ([]string, error) {
	rows, err := s.w.pool.Query(ctx, `SELECT DISTINCT q.key FROM actions c JOIN queries q ON q.id = c.query
		WHERE c.action = 'reaudit' AND q.engine = $1 AND NOT EXISTS (SELECT FROM events e WHERE e.query = c.query AND e.state = 'reaudit' AND e.at >= c.at)`, s.w.name)
	if err == nil {
		var keys []string
		if keys, err = pgx.CollectRows(rows, pgx.RowTo[string]); err == nil {
			return keys, nil
		}
	}
	return nil, fmt.Errorf("ledger: read which audits begin again: %w", sqlstate.Withhold(err))
}
