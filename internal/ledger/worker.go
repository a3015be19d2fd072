package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// ErrTurnLost: the turn is not current any more. What it found must be dropped.
var ErrTurnLost = errors.New("the turn is outdated: the auditor has withdrawn it, or given the audit's next turn")

// Turn is a turn that this process has taken.
type Turn struct {
	TurnArgs
	*Engine // which writes only while this process holds the turn
	job     *river.Job[TurnArgs]
	holder  string // this worker
}

// Workers are the processes that take turns of audits.
type Workers struct {
	pool   *pgxpool.Pool
	queue  *queue
	engine func(name string) *Engine // without a fence
}

// WorkOptions configure Work.
type WorkOptions struct {
	Worker Worker
	Every  time.Duration // interval of heartbeats
	Logger *zap.Logger
	// Run runs a turn and calls its Complete, unless the turn is lost. It is called for Worker.Slots turns at a time;
	// the slot is free when it returns. When its context is done it ends the turn early: Work ends, or the turn has
	// reached its limit of 15 minutes.
	Run func(context.Context, *Turn) error
	// Heard is called with the result of every heartbeat.
	Heard func(error)
}

// Work takes turns of the engine o.Worker.Engine until ctx is done; then it waits until Run has returned for each. Of
// all clients of the ledger's queue, one is the leader, which ends lost jobs and removes old ones; this may be the one.
func (s *Workers) Work(ctx context.Context, o WorkOptions) error {
	run := func(ctx context.Context, job *river.Job[TurnArgs]) error {
		t, err := s.take(ctx, job, o.Worker.ID)
		if errors.Is(err, ErrTurnLost) {
			return river.JobCancel(ErrTurnLost)
		} else if err == nil {
			err = o.Run(ctx, t)
		}
		return storable(err)
	}
	client, err := s.queue.client(river.Config{
		ID:            o.Worker.ID,
		Queues:        map[string]river.QueueConfig{queueOf(TurnArgs{}.Kind(), o.Worker.Engine): {MaxWorkers: o.Worker.Slots}},
		FetchCooldown: 10 * time.Millisecond,
	}, o.Logger, jobRuns{turn: run})
	if err != nil {
		return fmt.Errorf("ledger: job queue: %w", err)
	}
	if err := s.Heartbeat(ctx, o.Worker); err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	s.beat(ctx, o)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	o.Worker.Slots = 0 // no more turns; those in progress are delivered
	if err := s.Heartbeat(end, o.Worker); err != nil {
		o.Heard(err)
	}
	if err := client.StopAndCancel(end); err != nil {
		return fmt.Errorf("ledger: job queue: %w", sqlstate.Withhold(err))
	}
	return s.Leave(end, o.Worker.ID)
}

// heartbeatTime bounds the attempt to send a heartbeat.
const heartbeatTime = 10 * time.Second

// beat sends heartbeats until ctx is done.
func (s *Workers) beat(ctx context.Context, o WorkOptions) {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			attempt, cancel := context.WithTimeout(ctx, heartbeatTime)
			err := s.Heartbeat(attempt, o.Worker)
			cancel()
			if ctx.Err() == nil {
				o.Heard(err)
			}
		}
	}
}

// current is the condition under which a turn is current, held by $3; "" = no worker.
const current = "number = $1 AND job = $2 AND holder = $3 AND engine = $4 AND key = $5 AND ended IS NULL"

func (t *Turn) identity(holder string, more ...any) []any {
	return append([]any{t.Number, t.job.ID, holder, t.TurnArgs.Engine, t.Key}, more...)
}

// take makes a worker the holder of the turn of a job. It returns ErrTurnLost, wrapped, if the turn is outdated or has
// a holder.
func (s *Workers) take(ctx context.Context, job *river.Job[TurnArgs], worker string) (*Turn, error) {
	t := &Turn{TurnArgs: job.Args, job: job, holder: worker}
	tag, err := s.pool.Exec(ctx, "UPDATE turns SET holder = $6, taken = now() WHERE "+current, t.identity("", worker)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrTurnLost
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: take a turn: %w", sqlstate.Withhold(err))
	}
	t.Engine = s.engine(job.Args.Engine)
	t.Engine.w.fence = t.isMine
	return t, nil
}

// isMine returns ErrTurnLost if the turn is outdated; it does not become so until the transaction ends.
func (t *Turn) isMine(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, "SELECT FROM turns WHERE "+current+" FOR UPDATE", t.identity(t.holder)...).Scan()
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrTurnLost
	}
	return err
}

// Hurried reports whether the turn must end soon. The error is ErrTurnLost, wrapped, if it is outdated.
func (t *Turn) Hurried(ctx context.Context) (yes bool, err error) {
	err = t.ledger.pool.QueryRow(ctx, "SELECT hurry FROM turns WHERE "+current, t.identity(t.holder)...).Scan(&yes)
	if errors.Is(err, pgx.ErrNoRows) {
		yes, err = true, ErrTurnLost
	}
	if err != nil {
		err = fmt.Errorf("ledger: read a turn: %w", sqlstate.Withhold(err))
	}
	return yes, err
}

// Complete ends the turn and stores the state of its audit (nil = it is unchanged), in one transaction. It returns
// ErrTurnLost, wrapped, if the turn is outdated: then nothing is stored. After another error it can be called again: if
// that returns ErrTurnLost, the first call may have ended the turn.
func (t *Turn) Complete(ctx context.Context, state *Audit, outcome Outcome) error {
	for _, text := range []*string{&outcome.Trouble, &outcome.Stop, &outcome.Broken, &outcome.Refused} {
		*text = valid(*text) // it is stored as jsonb
	}
	return t.w.write(ctx, "deliver a turn", func(tx pgx.Tx) error {
		if state != nil {
			if err := t.Audits.save(ctx, tx, state); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "UPDATE turns SET outcome = $2, ended = now() WHERE number = $1", t.Number, outcome); err != nil {
			return err
		}
		// The fence decides who ends the turn, not the state of the job: it may have ended, or be removed.
		if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, t.job); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT pg_notify($1, '')", turnEnded)
		return err
	})
}
