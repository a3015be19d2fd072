package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// courier makes the attempts to send messages.
type courier struct {
	pool  *pgxpool.Pool
	send  func(context.Context, Delivery) error
	heard func(error) // may be nil

	mu      sync.Mutex
	results map[int64]result // by delivery: what the ledger does not have yet
	faulty  map[int64]bool   // deliveries that met an error of the ledger the last time
}

// result is what an attempt to send a message ended with.
type result struct {
	state   string
	failure error // nil = delivered
}

const (
	// orderWait is how long a message waits for an earlier one about the same alert to the same receiver.
	orderWait = 2 * time.Second
	// storeWait is how long a result that could not be stored waits for the next attempt to store it.
	storeWait = 10 * time.Second
	// resultTime bounds storing the result of an attempt.
	resultTime = 10 * time.Second
)

// deliver makes one attempt to send a message. The job does not end before the result of its last attempt is stored.
func (c *courier) deliver(ctx context.Context, job *river.Job[deliveryArgs]) error {
	d, early, err := c.read(ctx, job)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		c.report(d.ID, fmt.Errorf("ledger: read a message: %w", err))
		return river.JobSnooze(storeWait) // it is no attempt
	case early:
		return river.JobSnooze(orderWait) // the end of an alert must not come before its beginning
	}
	r, known := c.unstored(d.ID)
	if !known {
		failure := c.send(ctx, d)
		if later := (*LaterError)(nil); errors.As(failure, &later) {
			return river.JobSnooze(later.After)
		}
		if failure != nil && ctx.Err() != nil {
			return failure // the process ends
		}
		r = result{DeliveryDelivered, failure}
		if failure != nil {
			r.state = DeliveryPending
			if permanent := (*PermanentError)(nil); errors.As(failure, &permanent) || max(job.Attempt, d.Attempts+1) >= deliveryAttempts {
				r.state = DeliveryFailed
			}
		}
	}
	if err := c.store(ctx, job, r); err != nil {
		c.keep(d.ID, r)
		c.report(d.ID, fmt.Errorf("ledger: store the result of a message: %w", err))
		return river.JobSnooze(storeWait)
	}
	c.report(d.ID, nil)
	if r.state == DeliveryPending {
		return storable(r.failure)
	}
	return nil
}

// read returns the message of a job, and whether an earlier one must come first. The error is pgx.ErrNoRows if there is
// nothing to send, or another job sends it.
func (c *courier) read(ctx context.Context, job *river.Job[deliveryArgs]) (d Delivery, early bool, err error) {
	d.ID = job.Args.ID
	err = c.pool.QueryRow(ctx, `SELECT alert, receiver, attempts, body,
		EXISTS (SELECT FROM deliveries e WHERE e.alert = d.alert AND e.receiver = d.receiver AND e.id < d.id AND e.state = 'pending')
		FROM deliveries d WHERE id = $1 AND job = $2 AND state = 'pending'`, d.ID, job.ID).Scan(&d.Alert, &d.Receiver, &d.Attempts, &d.Body, &early)
	return d, early, sqlstate.Withhold(err)
}

// store stores the result of an attempt and, unless another one follows, ends its job, in one transaction. It does so
// also if the process ends now: the result is known, and another attempt would be a second message.
func (c *courier) store(ctx context.Context, job *river.Job[deliveryArgs], r result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resultTime)
	defer cancel()
	text := ""
	if r.failure != nil {
		text = valid(r.failure.Error())
	}
	return sqlstate.Withhold(pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE deliveries SET state = $2, error = $3, attempts = attempts + 1, ended_at = CASE $2 WHEN 'pending' THEN NULL ELSE now() END
			WHERE id = $1 AND state = 'pending'`, job.Args.ID, r.state, text); err != nil || r.state == DeliveryPending {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	}))
}

// unstored returns the result of a delivery's attempt that could not be stored before, and removes it.
func (c *courier) unstored(id int64) (result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, known := c.results[id]
	delete(c.results, id)
	return r, known
}

func (c *courier) keep(id int64, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[id] = r
}

// report reports an error that a delivery met, or that no delivery meets one any more.
func (c *courier) report(id int64, err error) {
	c.mu.Lock()
	if err != nil {
		c.faulty[id] = true
	} else {
		delete(c.faulty, id)
	}
	none := len(c.faulty) == 0
	c.mu.Unlock()
	if c.heard != nil && (err != nil || none) {
		c.heard(err)
	}
}
