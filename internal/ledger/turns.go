package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// TurnArgs are the arguments of the job that is one turn of one audit. At most one turn of an audit is out at a time.
type TurnArgs struct {
	Engine string        `json:"engine" river:"unique"`
	Key    string        `json:"key" river:"unique"`
	Turns  int           `json:"turns"` // of the audit, including this one
	Used   time.Duration `json:"used"`  // in turns before
}

// Kind is the name of the jobs in the queue.
func (TurnArgs) Kind() string { return "turn" }

// notFinal are the states of a job that a worker has or will have.
var notFinal = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled, rivertype.JobStateRetryable,
}

// InsertOpts returns the options of the jobs. A turn has one attempt: the auditor decides what follows a turn that was
// lost.
func (TurnArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: notFinal}}
}

// Outcome is what a worker reports of a turn, besides the evidence that it stored.
type Outcome struct {
	Took    time.Duration `json:"took"`
	Fresh   bool          `json:"fresh"`             // the evidence belongs to the present copies
	Trouble string        `json:"trouble,omitempty"` // why the turn ended early: the audit is retried later
	Stop    string        `json:"stop,omitempty"`    // why the measurement of a violation must end
	Early   bool          `json:"early,omitempty"`   // the worker ended during the turn: what the evidence shows is not verified yet
	Broken  string        `json:"broken,omitempty"`  // the worker panicked: the audit is set aside
	// HoistOff says how hoisted trials differed from whole ones: the evidence must begin again without hoisting.
	HoistOff string `json:"hoist_off,omitempty"`
	Refused  string `json:"refused,omitempty"` // why the worker cannot take turns of this audit
}

// GivenTurn is a turn that a worker was given.
type GivenTurn struct {
	ID      int64
	Key     string
	Worker  string
	Begun   bool    // the worker has begun it
	Done    bool    // it has ended
	Outcome Outcome // if the worker ended it
	Lost    bool    // it has ended without an outcome
}

// HandOut gives a turn to a worker. The ledger has the state of the audit that the turn begins with.
func (e *Engine) HandOut(ctx context.Context, worker string, turn TurnArgs) (id int64, err error) {
	client, err := e.ledger.inserter()
	if err != nil {
		return 0, err
	}
	turn.Engine = e.name
	err = e.write(ctx, "hand out a turn", func(tx pgx.Tx) error {
		job, err := client.InsertTx(ctx, tx, turn, &river.InsertOpts{Queue: queueOf(worker)})
		if err == nil && job.UniqueSkippedAsDuplicate {
			err = errors.New("a turn of the audit is out already")
		}
		if err == nil {
			id = job.Job.ID
		}
		return err
	})
	return id, err
}

// Turns returns the engine's turns that workers have, or have ended and Forget has not removed.
func (e *Engine) Turns(ctx context.Context) ([]GivenTurn, error) {
	rows, err := e.ledger.pool.Query(ctx, `
		SELECT id, args->>'key', queue, attempt > 0, finalized_at IS NOT NULL, metadata->'output' FROM river_job
		WHERE kind = 'turn' AND args @> jsonb_build_object('engine', $1::text) ORDER BY id`, e.name)
	var all []GivenTurn
	if err == nil {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t GivenTurn, err error) {
			var queue string
			var output []byte
			if err = row.Scan(&t.ID, &t.Key, &queue, &t.Begun, &t.Done, &output); err != nil {
				return t, err
			}
			t.Worker = workerOf(queue)
			t.Lost = t.Done && (output == nil || json.Unmarshal(output, &t.Outcome) != nil)
			return t, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: list turns: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// TakeBack ends a turn that a worker has: what the worker may still deliver is refused. It returns false if the turn
// has ended already.
func (e *Engine) TakeBack(ctx context.Context, id int64) (bool, error) {
	var ended bool
	err := e.write(ctx, "take back a turn", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = $1 AND finalized_at IS NULL", id)
		ended = tag.RowsAffected() == 1
		return err
	})
	return ended, err
}

// Hurry asks the workers to end turns soon, because a new query waits for its first trials: see Turn.Hurried.
func (e *Engine) Hurry(ctx context.Context, ids []int64) error {
	return e.write(ctx, "hurry turns", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE river_job SET metadata = metadata || '{"hurry": true}' WHERE id = ANY($1) AND finalized_at IS NULL`, ids)
		return err
	})
}

// Forget removes turns that have ended.
func (e *Engine) Forget(ctx context.Context, ids ...int64) error {
	return e.write(ctx, "remove turns", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM river_job WHERE id = ANY($1) AND finalized_at IS NOT NULL", ids)
		return err
	})
}

// turnEnded is the channel of notifications about turns that workers have ended.
const turnEnded = "dpwatch_turn_ended"

// WaitForTurn waits until a worker has ended a turn and returns true, or until the given time has passed or ctx is
// done. Only one goroutine may call it, and none while Close runs.
func (e *Engine) WaitForTurn(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if _, err := e.lock.WaitForNotification(ctx); err != nil {
		<-ctx.Done() // without a connection there are no notifications
		return false
	}
	return true
}
