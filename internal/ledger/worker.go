package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// ErrTurnLost: the auditor has taken the turn back. What the turn found must be dropped.
var ErrTurnLost = errors.New("the auditor has taken the turn back")

// Turn is a turn that this process was given.
type Turn struct {
	TurnArgs
	*Engine // which writes only while this process has the turn
	job     *river.Job[TurnArgs]
}

// WorkOptions configure Work.
type WorkOptions struct {
	Worker Worker
	Every  time.Duration // interval of heartbeats
	Logger *zap.Logger
	// Run runs a turn and calls its Complete, unless the turn is lost. It is called for Worker.Slots turns at a time.
	// When its context is done it ends the turn early.
	Run func(context.Context, *Turn) error
	// Heard is called with the result of every heartbeat.
	Heard func(error)
}

// Work takes turns until ctx is done; then it waits until Run has returned for each.
func (l *Ledger) Work(ctx context.Context, o WorkOptions) error {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[TurnArgs]) error {
		return storable(o.Run(ctx, l.turn(job)))
	})); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(l.pool), &river.Config{
		ID: o.Worker.ID, Schema: l.schema, Logger: riverLog(o.Logger), Workers: workers,
		Queues:        map[string]river.QueueConfig{queueOf(o.Worker.ID): {MaxWorkers: o.Worker.Slots}},
		FetchCooldown: 10 * time.Millisecond,
		JobTimeout:    -1, // a turn ends by itself
		// The auditor takes turns back and removes them. It knows which workers are alive, and a turn may take long.
		LeaderElectionDisabled: true,
	})
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", err)
	}
	if err := l.Heartbeat(ctx, o.Worker); err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	l.beat(ctx, o)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	o.Worker.Slots = 0 // no more turns; those in progress are delivered
	if err := l.Heartbeat(end, o.Worker); err != nil {
		o.Heard(err)
	}
	if err := client.StopAndCancel(end); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	return l.Leave(end, o.Worker.ID)
}

// heartbeatTime bounds the attempt to send a heartbeat.
const heartbeatTime = 10 * time.Second

// beat sends heartbeats until ctx is done.
func (l *Ledger) beat(ctx context.Context, o WorkOptions) {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			attempt, cancel := context.WithTimeout(ctx, heartbeatTime)
			err := l.Heartbeat(attempt, o.Worker)
			cancel()
			if ctx.Err() == nil {
				o.Heard(err)
			}
		}
	}
}

func (l *Ledger) turn(job *river.Job[TurnArgs]) *Turn {
	t := &Turn{TurnArgs: job.Args, job: job}
	t.Engine = &Engine{ledger: l, name: job.Args.Engine}
	t.fence = t.isMine
	return t
}

// isMine returns ErrTurnLost if the turn was taken back; it is not until the transaction ends.
func (t *Turn) isMine(ctx context.Context, tx pgx.Tx) error {
	var id int64
	err := tx.QueryRow(ctx, "SELECT id FROM river_job WHERE id = $1 AND state = 'running' AND attempt = $2 FOR UPDATE", t.job.ID, t.job.Attempt).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrTurnLost
	}
	return err
}

// Hurried reports whether the auditor wants the turn to end soon.
func (t *Turn) Hurried(ctx context.Context) (yes bool, err error) {
	if err = t.ledger.pool.QueryRow(ctx, "SELECT metadata ? 'hurry' FROM river_job WHERE id = $1", t.job.ID).Scan(&yes); err != nil {
		return false, fmt.Errorf("ledger: read a turn: %w", sqlstate.Withhold(err))
	}
	return yes, nil
}

// Complete ends the turn and stores the state of its audit (nil = it is unchanged), in one transaction. It returns
// ErrTurnLost, wrapped, if the turn was taken back: then nothing is stored.
func (t *Turn) Complete(ctx context.Context, state *Audit, outcome Outcome) error {
	return t.write(ctx, "deliver a turn", func(tx pgx.Tx) error {
		if state != nil {
			if err := t.save(ctx, tx, state); err != nil {
				return err
			}
		}
		for _, text := range []*string{&outcome.Trouble, &outcome.Stop, &outcome.Refused} {
			*text = valid(*text) // it is stored as jsonb
		}
		if err := river.RecordOutput(ctx, outcome); err != nil {
			return err
		}
		if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, t.job); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT pg_notify($1, '')", turnEnded)
		return err
	})
}
