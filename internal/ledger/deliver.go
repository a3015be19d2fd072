package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
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
func (s *Alerts) Deliver(ctx context.Context, o DeliverOptions) error {
	if o.Every == 0 {
		o.Every = time.Second
	}
	c := &courier{pool: s.pool, send: o.Send, heard: o.Heard, results: map[int64]result{}, faulty: map[int64]bool{}}
	client, err := s.queue.client(river.Config{
		Queues:            map[string]river.QueueConfig{messageQueue(o.Engine): {MaxWorkers: o.Slots}},
		FetchPollInterval: o.Every, FetchCooldown: min(o.Every, 100*time.Millisecond),
		PollOnly: true, // no further connection
	}, o.Logger, jobRuns{message: c.deliver})
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", err)
	}
	if err := s.requeue(ctx, o.Engine, notFinal[1:]...); err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	c.report(0, nil)
	err = s.keepQueued(ctx, o)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, sqlstate.Withhold(client.StopAndCancel(end)))
}

// keepQueued looks for pending messages without a job until ctx is done, or the ledger fails.
func (s *Alerts) keepQueued(ctx context.Context, o DeliverOptions) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := s.pool.Ping(ctx)
			if err != nil {
				err = fmt.Errorf("ledger: send messages: %w", sqlstate.Withhold(err))
			} else if n%requeueTicks == 0 {
				err = s.requeue(ctx, o.Engine, notFinal...)
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// requeueTicks is the number of ticks after which pending messages without a job get one.
const requeueTicks = 10

// messageQueue returns the queue of an engine's messages: only the processes of the engine have its receivers.
func messageQueue(engine string) string { return queueOf(deliveryArgs{}.Kind(), engine) }

// enqueue gives deliveries of an engine a job each.
func enqueue(ctx context.Context, tx pgx.Tx, client *river.Client[pgx.Tx], engine string, deliveries ...int64) error {
	for _, id := range deliveries {
		job, err := client.InsertTx(ctx, tx, deliveryArgs{ID: id}, &river.InsertOpts{Queue: messageQueue(engine), MaxAttempts: deliveryAttempts})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE deliveries SET job = $2 WHERE id = $1", id, job.Job.ID); err != nil {
			return err
		}
	}
	return nil
}

// requeue gives each pending delivery of an engine another job if its job is in none of the given states, and so
// outdates that one, see courier.read. River ended it while the result of its last attempt could not be stored, an
// operator removed it, or its process was killed. Without a job, the delivery and all later ones about its alert would
// wait for ever.
func (s *Alerts) requeue(ctx context.Context, engine string, states ...rivertype.JobState) error {
	client, err := s.queue.inserter()
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Each delivery gets one job, whatever the number of processes.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('dpwatch alerts ' || $1 || ' ' || $2, 0))", s.queue.schema, engine); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT d.id, coalesce(d.job, 0) FROM deliveries d JOIN alerts a ON a.id = d.alert
			WHERE a.engine = $1 AND d.state = 'pending' ORDER BY d.id`, engine)
		if err != nil {
			return err
		}
		var ids, jobs, without []int64
		var id, job int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &job}, func() error {
			ids, jobs = append(ids, id), append(jobs, job)
			return nil
		}); err != nil {
			return err
		}
		queued, err := inStates(ctx, tx, client, jobs, states...)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if !queued[jobs[i]] {
				without = append(without, id)
			}
		}
		return enqueue(ctx, tx, client, engine, without...)
	})
	if err != nil {
		return fmt.Errorf("ledger: send pending messages: %w", sqlstate.Withhold(err))
	}
	return nil
}
