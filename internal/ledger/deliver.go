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

// deliveryAttempts is the number of attempts to send a message. With River's backoff, n^4 seconds after attempt n, they
// last about eleven hours.
const deliveryAttempts = 12

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
	Send func(context.Context, Delivery) error
	// Heard is called with each error of the ledger: a message cannot be read, or the result of sending it cannot be
	// stored. It is called with nil once there is none any more. It may be nil.
	Heard  func(error)
	Logger *zap.Logger
	// Every is the interval of looking for messages to send again; 0 = a second.
	Every time.Duration
}

// Deliver sends the messages of an engine's alerts until ctx is done. Every message is sent at least once: again if its
// receiver or the process failed. Several processes of an engine may call it, each once at a time; when one starts,
// messages that another is sending can be sent twice.
func (l *Ledger) Deliver(ctx context.Context, o DeliverOptions) error {
	if o.Every == 0 {
		o.Every = time.Second
	}
	c := &courier{ledger: l, send: o.Send, heard: o.Heard, results: map[int64]result{}, faulty: map[int64]bool{}}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, river.WorkFunc(c.deliver)); err != nil {
		return err
	}
	queue := deliveryQueue(o.Engine)
	client, err := river.NewClient(riverpgxv5.New(l.pool), &river.Config{
		Schema: l.schema, Logger: riverLog(o.Logger), Workers: workers,
		Queues:            map[string]river.QueueConfig{queue: {MaxWorkers: o.Slots}},
		FetchPollInterval: o.Every, FetchCooldown: min(o.Every, 100*time.Millisecond),
		PollOnly:   true, // no further connection
		JobTimeout: -1,   // a receiver has its own
		// A leader would also take care of the jobs of turns, which the auditor does: see Work. wake and requeue do its
		// part here.
		LeaderElectionDisabled: true,
	})
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", err)
	}
	if err := errors.Join(l.wake(ctx, queue, true), l.requeue(ctx, o.Engine)); err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	c.report(0, nil)
	err = l.keepAwake(ctx, queue, o)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, sqlstate.Withhold(client.StopAndCancel(end)))
}

func (l *Ledger) keepAwake(ctx context.Context, queue string, o DeliverOptions) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := l.wake(ctx, queue, false)
			if err == nil && n%requeueTicks == 0 {
				err = l.requeue(ctx, o.Engine)
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// requeueTicks is the number of ticks after which pending messages without a job get one.
const requeueTicks = 10

// wake makes the jobs of a queue available whose time has come, and those that a process left behind: after 15 minutes,
// longer than any attempt, or at once with all.
func (l *Ledger) wake(ctx context.Context, queue string, all bool) error {
	_, err := l.pool.Exec(ctx, `
		UPDATE river_job SET state = 'available' WHERE kind = 'alert' AND queue = $1
		AND (state IN ('retryable', 'scheduled') AND scheduled_at <= now() OR state = 'running' AND ($2 OR attempted_at < now() - interval '15 minutes'))`, queue, all)
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	return nil
}

// enqueue gives deliveries of an engine a job each.
func enqueue(ctx context.Context, tx pgx.Tx, client *river.Client[pgx.Tx], engine string, deliveries ...int64) error {
	for _, id := range deliveries {
		job, err := client.InsertTx(ctx, tx, deliveryArgs{ID: id}, &river.InsertOpts{Queue: deliveryQueue(engine), MaxAttempts: deliveryAttempts})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE deliveries SET job = $2 WHERE id = $1", id, job.Job.ID); err != nil {
			return err
		}
	}
	return nil
}

// requeue gives each pending delivery of an engine a job that has none: River ended it while the result of its last
// attempt could not be stored, or an operator removed it. Without one, the delivery and all later ones about its alert
// would wait for ever.
func (l *Ledger) requeue(ctx context.Context, engine string) error {
	client, err := l.inserter()
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		// Each delivery gets one job, whatever the number of processes.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('dpwatch alerts ' || $1 || ' ' || $2, 0))", l.schema, engine); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT d.id FROM deliveries d JOIN alerts a ON a.id = d.alert WHERE a.engine = $1 AND d.state = 'pending'
			AND NOT EXISTS (SELECT FROM river_job j WHERE j.id = d.job AND j.finalized_at IS NULL) ORDER BY d.id`, engine)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		return enqueue(ctx, tx, client, engine, ids...)
	})
	if err != nil {
		return fmt.Errorf("ledger: send pending messages: %w", sqlstate.Withhold(err))
	}
	return nil
}
