package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// SaveWatch stores the change detector of a decided audit. Begin drops it.
func (s *Audits) SaveWatch(ctx context.Context, key string, state []byte) error {
	return s.w.write(ctx, "save a change detector", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE audits a SET watch = $3, updated = now() FROM queries q WHERE q.id = a.query AND q.engine = $1 AND q.key = $2`, s.w.name, key, state)
		return err
	})
}

// Note adds an event to the history of an audit that is no change of its state or verdict.
func (s *Audits) Note(ctx context.Context, key, event, reason string) error {
	return s.w.write(ctx, "note an event", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO events (query, state, verdict, reason) SELECT id, $3, '', $4 FROM queries WHERE engine = $1 AND key = $2`, s.w.name, key, event, reason)
		return err
	})
}

// Spent is what replays used in one hour.
type Spent struct {
	Hour    time.Time
	Trials  int64
	Seconds float64 // in which replay sessions ran statements
}

// Spend adds to what is stored of some hours.
func (e *Engine) Spend(ctx context.Context, spent []Spent) error {
	return e.w.write(ctx, "record the use of the budget", func(tx pgx.Tx) error {
		for _, s := range spent {
			_, err := tx.Exec(ctx, `INSERT INTO budget_hours (engine, hour, trials, seconds) VALUES ($1, $2, $3, $4)
				ON CONFLICT (engine, hour) DO UPDATE SET trials = budget_hours.trials + excluded.trials, seconds = budget_hours.seconds + excluded.seconds`,
				e.w.name, Hour(s.Hour), s.Trials, s.Seconds)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SpentSince returns what was used in the hours from that of the given time on.
func (e *Engine) SpentSince(ctx context.Context, from time.Time) (s Spent, err error) {
	s.Hour = Hour(from)
	err = e.ledger.pool.QueryRow(ctx, "SELECT coalesce(sum(trials), 0), coalesce(sum(seconds), 0) FROM budget_hours WHERE engine = $1 AND hour >= $2", e.w.name, s.Hour).Scan(&s.Trials, &s.Seconds)
	if err != nil {
		return Spent{}, fmt.Errorf("ledger: read the use of the budget: %w", sqlstate.Withhold(err))
	}
	return s, nil
}
