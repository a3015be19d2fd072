package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// maxCaptures bounds the captured queries of an engine that wait in the ledger, in bytes as they are stored.
const maxCaptures = 64 << 20

// ErrCapturesFull is returned by Record: the process that audits the engine does not keep up.
var ErrCapturesFull = errors.New("the process that audits the engine does not read captured queries as fast as they come: they wait")

// Capture is what a process that does not audit an engine captured in a short time.
type Capture struct {
	ID         int64
	Queries    []byte // see Batch; nil = it is damaged
	Statements int
	Again      bool    // a process ended, or lost the engine, while it submitted the queries: call Part before each one
	LeftOut    []int32 // the positions of queries during which it did so: they are not submitted
}

// capture stores the queries of a batch for the process that audits the engine. The transaction holds lockCounts.
func (r *recording) capture(ctx context.Context) error {
	if r.b.Statements == 0 {
		return nil
	}
	if r.w.withhold {
		return ErrWithheld
	}
	content := Seal(r.b.Queries)
	var stored int64
	err := r.tx.QueryRow(ctx, "SELECT coalesce(sum(length(content)), 0) FROM captures WHERE engine = $1", r.w.name).Scan(&stored)
	switch {
	case err != nil:
		return err
	case stored > 0 && stored+int64(len(content)) > maxCaptures:
		return ErrCapturesFull
	}
	_, err = r.tx.Exec(ctx, "INSERT INTO captures (engine, content, statements) VALUES ($1, $2, $3)", r.w.name, content, r.b.Statements)
	return err
}

// NextCapture returns the earliest Capture; false if there is none. It stays there until a Batch with its number is
// recorded.
func (e *Engine) NextCapture(ctx context.Context) (c Capture, found bool, err error) {
	err = e.ledger.pool.QueryRow(ctx, "SELECT id FROM captures WHERE engine = $1 ORDER BY id LIMIT 1", e.w.name).Scan(&c.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("ledger: read captured queries: %w", sqlstate.Withhold(err))
	}
	var content []byte
	err = e.w.write(ctx, "read captured queries", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			UPDATE captures SET attempts = attempts + 1, part = -1, left_out = CASE WHEN part >= 0 THEN left_out || part ELSE left_out END
			WHERE id = $1 RETURNING content, statements, attempts > 1, left_out`, c.ID).Scan(&content, &c.Statements, &c.Again, &c.LeftOut)
	})
	if err != nil {
		return c, false, err
	}
	if c.Queries, err = Unseal(content); err != nil {
		c.Queries = nil
	}
	return c, true, nil
}

// Part notes which query of a Capture is about to be submitted, by its position; -1 = none.
func (e *Engine) Part(ctx context.Context, capture int64, part int) error {
	return e.w.write(ctx, "note a captured query", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE captures SET part = $2 WHERE id = $1", capture, part)
		return err
	})
}
