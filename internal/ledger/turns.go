package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// TurnArgs are the arguments of the job that is one turn of one audit.
type TurnArgs struct {
	Engine string        `json:"engine" river:"unique"`
	Key    string        `json:"key" river:"unique"`
	Number int64         `json:"number" river:"unique"` // of the turn; Give sets it
	Turns  int           `json:"turns"`                 // of the audit, including this one
	Used   time.Duration `json:"used"`                  // in turns before
}

// Kind is the name of the jobs in the queue.
func (TurnArgs) Kind() string { return "turn" }

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
	Lost    bool          `json:"lost,omitempty"`    // the trouble is the loss of a session: see replay.Lost
	Ends    *outcome.Ends `json:"ends,omitempty"`    // trials end their sessions: the audit ends inconclusive
	Void    string        `json:"void,omitempty"`    // why the trials show nothing: the audit ends inconclusive
	Stop    string        `json:"stop,omitempty"`    // why the measurement of a violation must end
	Early   bool          `json:"early,omitempty"`   // the worker ended during the turn: what the evidence shows is not verified yet
	Broken  string        `json:"broken,omitempty"`  // the worker panicked: the audit is set aside
	Refused string        `json:"refused,omitempty"` // why the worker cannot take turns of this audit
}

// GivenTurn is the current turn of an audit: one that was given, and was neither withdrawn nor forgotten.
type GivenTurn struct {
	ID      int64 // the number of the turn
	Key     string
	Worker  string  // that has taken it; "" = none has
	Done    bool    // the worker has ended it
	Outcome Outcome // if it is done
	// Lost: the queue has ended the turn's job, and the turn is not done. Its worker has dropped it, or was rescued.
	// The worker may still end it until it is withdrawn.
	Lost bool
}

// Turns are the turns of an engine's audits that workers have or wait for.
type Turns struct {
	w     *writer
	queue *queue
}

// Give gives a turn to the workers of the engine: the first one with a free slot takes it. The ledger must have the
// state of the audit that the turn begins with. An earlier turn of the audit is outdated from then on, with its
// outcome. With an error it returns the number of a turn that may be given nevertheless, because the connection was
// lost while the transaction was committed; 0 = none is.
func (s *Turns) Give(ctx context.Context, turn TurnArgs) (id int64, err error) {
	client, err := s.queue.inserter()
	if err != nil {
		return 0, err
	}
	turn.Engine = s.w.name
	err = s.w.write(ctx, "give a turn", func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO turns (engine, key) VALUES ($1, $2) ON CONFLICT (engine, key) DO UPDATE SET number = DEFAULT, job = NULL, holder = '', hurry = false,
			  outcome = NULL, given = now(), taken = NULL, ended = NULL RETURNING number`, s.w.name, turn.Key).Scan(&turn.Number)
		if err != nil {
			return err
		}
		job, err := client.InsertTx(ctx, tx, turn, &river.InsertOpts{Queue: queueOf(turn.Kind(), s.w.name)})
		if err == nil && job.UniqueSkippedAsDuplicate {
			err = errors.New("the queue has a job of the turn already")
		}
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE turns SET job = $2 WHERE number = $1", turn.Number, job.Job.ID)
		}
		return err
	})
	return turn.Number, err
}

// Current returns the current turns of the engine's audits, the earliest first, as of one moment.
func (s *Turns) Current(ctx context.Context) (all []GivenTurn, err error) {
	client, err := s.queue.inserter()
	if err != nil {
		return nil, err
	}
	err = pgx.BeginTxFunc(ctx, s.w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT number, key, holder, coalesce(job, 0), ended IS NOT NULL, outcome FROM turns WHERE engine = $1 ORDER BY number", s.w.name)
		if err != nil {
			return err
		}
		var jobs, open []int64
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t GivenTurn, err error) {
			var job int64
			var outcome []byte
			if err = row.Scan(&t.ID, &t.Key, &t.Worker, &job, &t.Done, &outcome); err != nil {
				return t, err
			}
			if jobs = append(jobs, job); !t.Done {
				open = append(open, job)
			} else if json.Unmarshal(outcome, &t.Outcome) != nil { // it was not written by this program
				t.Done, t.Lost = false, true
			}
			return t, nil
		})
		if err != nil {
			return err
		}
		live, err := inStates(ctx, tx, client, open, notFinal...)
		for i := range all {
			all[i].Lost = all[i].Lost || !all[i].Done && !live[jobs[i]]
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ledger: list turns: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Withdraw makes a turn outdated: nothing that its worker writes later is stored. It returns false if the worker has
// ended the turn, or the turn is outdated already. The worker is not stopped: it notices at its next Hurried, or at the
// end of the turn.
func (s *Turns) Withdraw(ctx context.Context, id int64) (withdrawn bool, err error) {
	err = s.w.write(ctx, "withdraw a turn", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "DELETE FROM turns WHERE number = $1 AND engine = $2 AND ended IS NULL", id, s.w.name)
		withdrawn = tag.RowsAffected() == 1
		return err
	})
	return withdrawn, err
}

// Hurry asks the workers to end turns soon, because a new query waits for its first trials: see Turn.Hurried.
func (s *Turns) Hurry(ctx context.Context, ids []int64) error {
	return s.w.write(ctx, "hurry turns", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE turns SET hurry = true WHERE number = ANY($1)", ids)
		return err
	})
}

// Forget removes turns that have ended, after their outcome was read.
func (s *Turns) Forget(ctx context.Context, ids ...int64) error {
	return s.w.write(ctx, "remove turns", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM turns WHERE number = ANY($1) AND ended IS NOT NULL", ids)
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
