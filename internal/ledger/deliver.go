package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// deliveryArgs are the arguments of the job that sends one message.
type deliveryArgs struct {
	ID int64 `json:"id"`
}

// Kind is the name of the jobs in the queue.
func (deliveryArgs) Kind() string { return "alert" }

// deliveryAttempts is the number of attempts to send a message. With River's backoff, n^4 seconds after attempt n, they last about eleven hours.
const deliveryAttempts = 12

func deliveryJob(engine string) *river.InsertOpts {
	return &river.InsertOpts{Queue: deliveryQueue(engine), MaxAttempts: deliveryAttempts}
}

// deliveryQueue returns the queue of an engine's messages: only the processes of the engine have its receivers.
func deliveryQueue(engine string) string {
	sum := sha256.Sum256([]byte(engine))
	return "alerts_" + hex.EncodeToString(sum[:8])
}

// Errors that DeliverOptions.Send returns.
type (
	// PermanentError: no further attempt can succeed.
	PermanentError struct{ Err error }
	// LaterError: the attempt must wait; it does not count.
	LaterError struct{ After time.Duration }
)

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }
func (e *LaterError) Error() string     { return fmt.Sprintf("must wait %s", e.After) }

// DeliverOptions configures Deliver.
type DeliverOptions struct {
	Engine string
	Slots  int // messages that are sent at the same time
	// Send sends a message. It is called again later if it fails; its error holds no secret, because it is stored.
	Send   func(context.Context, Delivery) error
	Logger *zap.Logger
	// Every is the interval of looking for messages to send again; 0 = a second.
	Every time.Duration
}

// Deliver sends the messages of an engine's alerts until ctx is done. Every message is sent at least once: again if its receiver or
// the process failed. Several processes of an engine may call it, each once at a time; when one starts, messages that another is sending can be sent twice.
func (l *Ledger) Deliver(ctx context.Context, o DeliverOptions) error {
	if o.Every == 0 {
		o.Every = time.Second
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[deliveryArgs]) error {
		return l.deliver(ctx, job, o.Send)
	})); err != nil {
		return err
	}
	queue := deliveryQueue(o.Engine)
	client, err := river.NewClient(riverpgxv5.New(l.pool), &river.Config{
		Schema: l.schema, Logger: riverLog(o.Logger), Workers: workers,
		Queues:            map[string]river.QueueConfig{queue: {MaxWorkers: o.Slots}},
		FetchPollInterval: o.Every, FetchCooldown: min(o.Every, 100*time.Millisecond),
		PollOnly:   true, // no further connection
		JobTimeout: -1,   // a receiver has its own
		// A leader would also take care of the jobs of turns, which the auditor does: see Work. wake does its part here.
		LeaderElectionDisabled: true,
	})
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", err)
	}
	if err := l.wake(ctx, queue, true); err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	err = l.keepAwake(ctx, queue, o)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, sqlstate.Withhold(client.StopAndCancel(end)))
}

func (l *Ledger) keepAwake(ctx context.Context, queue string, o DeliverOptions) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := l.wake(ctx, queue, false); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// wake makes the jobs of a queue available whose time has come; with all, also those of a process that is gone.
func (l *Ledger) wake(ctx context.Context, queue string, all bool) error {
	_, err := l.pool.Exec(ctx, `
		UPDATE river_job SET state = 'available' WHERE kind = 'alert' AND queue = $1
		AND (state IN ('retryable', 'scheduled') AND scheduled_at <= now() OR state = 'running' AND $2)`, queue, all)
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	return nil
}

// orderWait is how long a message waits for an earlier one about the same alert to the same receiver.
const orderWait = 2 * time.Second

// resultTime bounds storing the result of an attempt.
const resultTime = 10 * time.Second

// deliver makes one attempt to send a message.
func (l *Ledger) deliver(ctx context.Context, job *river.Job[deliveryArgs], send func(context.Context, Delivery) error) error {
	d := Delivery{ID: job.Args.ID}
	var early bool
	err := l.pool.QueryRow(ctx, `SELECT alert, receiver, state, body::text::bytea,
		EXISTS (SELECT FROM deliveries e WHERE e.alert = d.alert AND e.receiver = d.receiver AND e.id < d.id AND e.state = 'pending') FROM deliveries d WHERE id = $1`,
		d.ID).Scan(&d.Alert, &d.Receiver, &d.State, &d.Body, &early)
	switch {
	case err == nil && early && d.State == DeliveryPending:
		return river.JobSnooze(orderWait) // the end of an alert must not come before its beginning
	case errors.Is(err, pgx.ErrNoRows) || err == nil && d.State != DeliveryPending:
		return nil
	case err != nil:
		return sqlstate.Withhold(err)
	}
	failure := send(ctx, d)
	if later := (*LaterError)(nil); errors.As(failure, &later) {
		return river.JobSnooze(later.After)
	}
	if failure != nil && ctx.Err() != nil {
		return failure // the process ends
	}
	state, text := DeliveryDelivered, ""
	var permanent *PermanentError
	if failure != nil {
		state, text = DeliveryPending, failure.Error()
		if errors.As(failure, &permanent) || job.Attempt >= job.MaxAttempts {
			state = DeliveryFailed
		}
	}
	// Also if the process ends now: the result is known, and another attempt would be a second message.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resultTime)
	defer cancel()
	if _, err := l.pool.Exec(ctx, "UPDATE deliveries SET state = $2, error = $3, attempts = attempts + 1, ended_at = CASE $2 WHEN 'pending' THEN NULL ELSE now() END WHERE id = $1", d.ID, state, text); err != nil {
		return sqlstate.Withhold(err)
	}
	if state == DeliveryFailed {
		return river.JobCancel(failure)
	}
	return failure
}
