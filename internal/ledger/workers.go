package ledger

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Worker is a process that takes turns of audits of an engine, perhaps on another machine.
type Worker struct {
	ID      string // unique; letters, digits, hyphens
	Engine  string
	Host    string
	Version string
	Slots   int           // turns at a time
	Since   time.Time     // when it started; read only
	Silent  time.Duration // since its last heartbeat; read only
}

// forgetWorkers is the age of the last heartbeat at which a worker is deleted.
const forgetWorkers = "1 hour"

// Heartbeat records that a worker is alive. Times are those of the ledger's server, so that the clocks of the machines
// do not matter.
func (s *Workers) Heartbeat(ctx context.Context, w Worker) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO workers (id, engine, host, version, slots) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET heartbeat = now(), slots = excluded.slots`, w.ID, w.Engine, w.Host, w.Version, w.Slots)
	if err != nil {
		return fmt.Errorf("ledger: heartbeat: %w", sqlstate.Withhold(err))
	}
	return nil
}

// Leave removes a worker, which takes no more turns, and workers that ended long ago without doing so.
func (s *Workers) Leave(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, "DELETE FROM workers WHERE id = $1 OR heartbeat < now() - $2::interval", id, forgetWorkers)
	if err != nil {
		return fmt.Errorf("ledger: remove a worker: %w", sqlstate.Withhold(err))
	}
	return nil
}

// Workers returns the engine's workers, the earliest first, with those that have ended without a notice in the last
// hour.
func (s *Turns) Workers(ctx context.Context) ([]Worker, error) {
	rows, err := s.w.pool.Query(ctx, `
		SELECT id, engine, host, version, slots, started, extract(epoch FROM clock_timestamp() - heartbeat)::float8
		FROM workers WHERE engine = $1 AND heartbeat > now() - $2::interval ORDER BY started, id`, s.w.name, forgetWorkers)
	var all []Worker
	if err == nil {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Worker, err error) {
			var silent float64
			err = row.Scan(&w.ID, &w.Engine, &w.Host, &w.Version, &w.Slots, &w.Since, &silent)
			w.Silent = time.Duration(silent * float64(time.Second))
			return w, err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: list workers: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// NewWorkerID returns a unique ID for a worker on a host: letters and digits of the host's name, and random ones.
func NewWorkerID(host string) string {
	id := strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, host)
	return strings.ToLower("w" + id[:min(len(id), 16)] + "-" + rand.Text()[:8])
}
