package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// migrateQueue creates River's tables in the ledger's schema, or upgrades them.
func migrateQueue(ctx context.Context, c *pgxpool.Config, schema string) error {
	c = c.Copy()
	c.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// jobTimes bound the jobs of the queue. All clients of a ledger have the same, because any of them may be the leader,
// which ends lost jobs and removes old ones.
type jobTimes struct {
	turn    time.Duration // limit of a turn; then its context is done
	message time.Duration // limit of an attempt to send a message
	rescue  time.Duration // age at which a running job counts as lost
}

// defaultJobTimes: a turn takes 20 seconds unless its statements are slow or replays are held, and an attempt to send a
// message has the limit of its receiver.
var defaultJobTimes = jobTimes{turn: 15 * time.Minute, message: 5 * time.Minute, rescue: 20 * time.Minute}

// Ages at which jobs that have ended are removed. Nothing depends on them then.
const (
	keepEnded  = 10 * time.Minute
	keepFailed = 24 * time.Hour
)

// notFinal are the states of a job that has not ended: first that of a job which a process runs, or left when it was
// killed.
var notFinal = []rivertype.JobState{
	rivertype.JobStateRunning, rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateScheduled, rivertype.JobStateRetryable,
}

// queueOf returns the queue of one engine's jobs of a kind.
func queueOf(kind, engine string) string {
	sum := sha256.Sum256([]byte(engine))
	return kind + "s_" + hex.EncodeToString(sum[:8])
}

// queue is the ledger's queue of jobs, which River keeps in its schema.
type queue struct {
	pool   *pgxpool.Pool
	schema string
	times  jobTimes
}

// inserter returns a client of the queue that inserts and lists jobs, and runs none.
func (q *queue) inserter() (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(q.pool), &river.Config{Schema: q.schema, Logger: slog.New(slog.DiscardHandler)})
}

// jobRuns are the functions that run the jobs of a client. One without a queue in the client is nil.
type jobRuns struct {
	turn    func(context.Context, *river.Job[TurnArgs]) error
	message func(context.Context, *river.Job[deliveryArgs]) error
}

// client returns a client of the queue that runs jobs. It registers both kinds, whatever its queues are: a leader
// discards lost jobs of a kind that its client does not have.
func (q *queue) client(c river.Config, log *zap.Logger, runs jobRuns) (*river.Client[pgx.Tx], error) {
	c.Schema, c.Logger, c.Workers = q.schema, riverLog(log), river.NewWorkers()
	err := errors.Join(
		river.AddWorkerSafely(c.Workers, &jobWorker[TurnArgs]{limit: q.times.turn, run: runs.turn}),
		river.AddWorkerSafely(c.Workers, &jobWorker[deliveryArgs]{limit: q.times.message, run: runs.message}),
	)
	if err != nil {
		return nil, err
	}
	c.JobTimeout, c.RescueStuckJobsAfter = max(q.times.turn, q.times.message), q.times.rescue
	c.CompletedJobRetentionPeriod, c.CancelledJobRetentionPeriod, c.DiscardedJobRetentionPeriod = keepEnded, keepEnded, keepFailed
	return river.NewClient(riverpgxv5.New(q.pool), &c)
}

// jobWorker runs the jobs of a kind with a function.
type jobWorker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	limit time.Duration
	run   func(context.Context, *river.Job[T]) error // nil = the client has no queue of the kind
}

// Timeout implements river.Worker.
func (w *jobWorker[T]) Timeout(*river.Job[T]) time.Duration { return w.limit }

// Work implements river.Worker.
func (w *jobWorker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	if w.run == nil {
		return river.JobSnooze(time.Minute) // another process runs it
	}
	return w.run(ctx, job)
}

// inStates returns which of the given jobs are in one of the states.
func inStates(ctx context.Context, tx pgx.Tx, client *river.Client[pgx.Tx], ids []int64, states ...rivertype.JobState) (map[int64]bool, error) {
	found := map[int64]bool{}
	for len(ids) > 0 {
		n := min(len(ids), 1000)
		list, err := client.JobListTx(ctx, tx, river.NewJobListParams().IDs(ids[:n]...).States(states...).First(n))
		if err != nil {
			return nil, err
		}
		for _, job := range list.Jobs {
			found[job.ID] = true
		}
		ids = ids[n:]
	}
	return found, nil
}

// riverLog returns a logger for River that writes warnings and errors without the server's messages, each message at
// most once a minute: while the ledger is away, River repeats them.
func riverLog(log *zap.Logger) *slog.Logger {
	return slog.New(&riverHandler{log: log, last: map[string]time.Time{}})
}

type riverHandler struct {
	log  *zap.Logger
	mu   sync.Mutex // guards last
	last map[string]time.Time
}

func (h *riverHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h *riverHandler) Handle(_ context.Context, r slog.Record) error {
	var fields []zap.Field
	for a := range r.Attrs {
		if err, ok := a.Value.Any().(error); ok {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			fields = append(fields, zap.Error(sqlstate.Withhold(err)))
		}
	}
	h.mu.Lock()
	repeated := r.Time.Sub(h.last[r.Message]) < time.Minute
	if !repeated {
		h.last[r.Message] = r.Time
	}
	h.mu.Unlock()
	if !repeated {
		h.log.Warn("job queue", append(fields, zap.String("message", r.Message))...)
	}
	return nil
}

func (h *riverHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *riverHandler) WithGroup(string) slog.Handler { return h }
