package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Engine is the part of a ledger that belongs to one DP engine. One process at a time may write to it: Acquire. A
// worker may write the audit of the turn that it was given: Turn. It is safe for concurrent use.
type Engine struct {
	ledger *Ledger
	name   string
	term   int64
	lock   *pgx.Conn // holds the advisory lock; nil = this is the Engine of a Turn
	// fence returns an error, and so ends the transaction, if this process may not write any more.
	fence func(context.Context, pgx.Tx) error
}

// Errors of an Engine.
var (
	// ErrInUse: another process audits the engine.
	ErrInUse = errors.New("another process audits this engine with the same ledger: stop it, or give each its own engine.name")
	// ErrReplaced: another process has acquired the engine since.
	ErrReplaced = errors.New("another process has taken over the audits of this engine")
)

// Acquire makes this process the only one that writes the engine's audits, until Close. It returns ErrInUse if another
// process does.
func (l *Ledger) Acquire(ctx context.Context, name string) (*Engine, error) {
	lock, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", sqlstate.Withhold(err))
	}
	e := &Engine{ledger: l, name: name, lock: lock}
	e.fence = e.holdsTerm
	if err := e.acquire(ctx); err != nil {
		_ = lock.Close(ctx)
		return nil, fmt.Errorf("ledger: engine %s: %w", name, sqlstate.Withhold(err))
	}
	return e, nil
}

func (e *Engine) acquire(ctx context.Context) error {
	if _, err := e.lock.Exec(ctx, "SET idle_in_transaction_session_timeout = 0"); err != nil {
		return err
	}
	var mine bool
	err := e.lock.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended('dpwatch engine ' || $1 || ' ' || $2, 0))", e.ledger.schema, e.name).Scan(&mine)
	if err == nil && !mine {
		return ErrInUse
	}
	if err != nil {
		return err
	}
	if _, err := e.lock.Exec(ctx, "LISTEN "+turnEnded); err != nil { // see WaitForTurn
		return err
	}
	// By the clock: a ledger that lost its last transactions (a crash with synchronous_commit off, a backup) must not
	// use a term again. Recorders have terms as well.
	return e.lock.QueryRow(ctx, `
		WITH e AS (
		  INSERT INTO engines (name, term) VALUES ($1, greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT max(term) + 1 FROM terms WHERE engine = $1)))
		  ON CONFLICT (name) DO UPDATE SET term = greatest(engines.term + 1, excluded.term), at = now()
		  RETURNING term)
		INSERT INTO terms (engine, term) SELECT $1, term FROM e RETURNING term`, e.name).Scan(&e.term)
}

// Term returns the number of the process's turn at auditing the engine.
func (e *Engine) Term() int64 { return e.term }

// Close releases the engine and closes the ledger.
func (e *Engine) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = e.lock.Close(ctx)
	e.ledger.Close()
}

// holdsTerm returns ErrReplaced if another process has acquired the engine; none does until the transaction ends.
func (e *Engine) holdsTerm(ctx context.Context, tx pgx.Tx) error {
	var term int64
	if err := tx.QueryRow(ctx, "SELECT term FROM engines WHERE name = $1 FOR SHARE", e.name).Scan(&term); err != nil {
		return err
	}
	if term != e.term {
		return ErrReplaced
	}
	return nil
}

// write runs f in a transaction during which this process may write.
func (e *Engine) write(ctx context.Context, what string, f func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, e.ledger.pool, func(tx pgx.Tx) error {
		if err := e.fence(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
	if err != nil {
		return fmt.Errorf("ledger: %s: %w", what, sqlstate.Withhold(err))
	}
	return nil
}

// Audit is the stored form of an audit.
type Audit struct {
	Query     Query
	State     string
	Verdict   string // "" = none yet
	Reason    string // of the verdict or the state, for the history; no values of rows
	Trials    int
	Lower     *float64 // lower bound of epsilon; nil = none
	Processes int      // how often the evidence began
	DataEpoch string   // of the copies
	Progress  []byte   // nil = no evidence
	// EvidenceTrials is the number of trials, on all copies, of the evidence in Progress. It grows until the audit
	// begins again.
	EvidenceTrials int
	Watch          []byte // the change detector of a decided audit, see SaveWatch; read only; nil = none
	Executions     uint64 // by clients; read only
	// EngineEpoch identifies the version of the engine that gave the evidence; "" = not known.
	EngineEpoch string
	// Violation describes, as JSON, a violation that is not resolved; nil = none. Resolution is the reason of the event
	// "resolved", which Save stores when the stored audit has a violation and this one has none.
	Violation  []byte
	Resolution string
	Poisoned   bool // parsing its statement did not complete twice in a row, see Parsing; read only
}

// Fleet counts, over all engines of the ledger, the processes of evidence for a claim that have begun, and those of
// them that have ended in a violation.
type Fleet struct{ Begun, Reported int }

// Begin records that an audit's evidence begins. It returns how often that was so for this audit, from 1, and the fleet
// with this beginning, if the query has a claim. Former evidence stays in the ledger, apart, until Save stores new
// evidence of more trials. A turn of the audit that a worker has is outdated, unless it is this Engine's.
func (e *Engine) Begin(ctx context.Context, a Audit) (processes int, fleet Fleet, err error) {
	err = e.write(ctx, "begin an audit", func(tx pgx.Tx) error {
		if err := e.outdate(ctx, tx, a.Query.Key); err != nil {
			return err
		}
		id, err := e.query(ctx, tx, &a.Query)
		if err != nil {
			return err
		}
		claims := 0
		if a.Query.Claim != nil {
			claims = 1
		}
		if err := tx.QueryRow(ctx, "UPDATE fleet SET begun = begun + $1 RETURNING begun, reported", claims).Scan(&fleet.Begun, &fleet.Reported); err != nil {
			return err
		}
		if err := retire(ctx, tx, id); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			INSERT INTO audits (query, state, verdict, trials, processes, data_epoch, engine_epoch, violation) VALUES ($1, $2, '', 0, 1, $3, $4, $5)
			ON CONFLICT (query) DO UPDATE SET state = excluded.state, verdict = '', trials = 0, epsilon_lower = NULL,
			  processes = audits.processes + 1, data_epoch = excluded.data_epoch, engine_epoch = excluded.engine_epoch, violation = excluded.violation,
			  progress = NULL, evidence_trials = 0, watch = NULL, updated = now()
			RETURNING processes`, id, a.State, a.DataEpoch, a.EngineEpoch, a.Violation).Scan(&processes)
	})
	return processes, fleet, err
}

// query stores the identity of a query, and returns its number.
func (e *Engine) query(ctx context.Context, tx pgx.Tx, q *Query) (id int64, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO queries (engine, key, shape, fingerprint, summary, statement, epsilon, delta, claim_source, claim_rule, first_seen, last_seen, destinations)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (engine, key) DO UPDATE SET statement = excluded.statement, `+addDestinations+`
		RETURNING id`, e.queryArguments(q)...).Scan(&id)
	return id, err
}

func (e *Engine) queryArguments(q *Query) []any {
	statement := q.Statement
	if e.ledger.withhold {
		statement = nil
	}
	args := []any{e.name, q.Key, q.Shape, q.Fingerprint, q.Summary, statement, nil, nil, "", "", q.FirstSeen, q.LastSeen, nil}
	destinations := make([]string, len(q.Destinations))
	for i, d := range q.Destinations {
		destinations[i] = valid(d)
	}
	args[12] = destinations
	if c := q.Claim; c != nil {
		args[6], args[7], args[8], args[9] = c.Epsilon, c.Delta, c.Source, c.Rule
	}
	return args
}

// Save stores the present state of an audit, and an event if its state or verdict has changed. A state without evidence
// leaves the stored evidence and its figures as they are. A state of an earlier beginning changes nothing, but its
// evidence is kept as Begin keeps it. The error is ErrFewerTrials, wrapped, if the state has evidence of fewer trials
// than the stored one. If the state has evidence, a turn of the audit that a worker has is outdated, unless it is this
// Engine's.
func (e *Engine) Save(ctx context.Context, a Audit) error {
	return e.write(ctx, "save an audit", func(tx pgx.Tx) error {
		if a.Progress != nil {
			if err := e.outdate(ctx, tx, a.Query.Key); err != nil {
				return err
			}
		}
		return e.save(ctx, tx, &a)
	})
}

func (e *Engine) save(ctx context.Context, tx pgx.Tx, a *Audit) error {
	id, err := e.query(ctx, tx, &a.Query)
	if err != nil {
		return err
	}
	state := *a
	a = &state
	switch err := admit(ctx, tx, id, a); {
	case errors.Is(err, errFormer):
		return retireState(ctx, tx, id, a)
	case err != nil:
		return err
	}
	_, err = tx.Exec(ctx, `
		WITH before AS (SELECT state, verdict, violation FROM audits WHERE query = $1)
		INSERT INTO events (query, state, verdict, reason)
		SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT FROM before WHERE state = $2 AND verdict = $3)
		UNION ALL SELECT $1, 'resolved', $3, $5 WHERE $6::jsonb IS NULL AND EXISTS (SELECT FROM before WHERE violation IS NOT NULL)`,
		id, a.State, a.Verdict, valid(a.Reason), valid(a.Resolution), a.Violation)
	if err != nil {
		return err
	}
	if a.Verdict == "violation" { // once for each beginning: that removes the verdict
		if _, err := tx.Exec(ctx, "UPDATE fleet SET reported = reported + 1 WHERE NOT EXISTS (SELECT FROM audits WHERE query = $1 AND verdict = 'violation')", id); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO audits (query, state, verdict, trials, epsilon_lower, processes, data_epoch, progress, engine_epoch, violation, evidence_trials)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (query) DO UPDATE SET state = excluded.state, verdict = excluded.verdict, trials = excluded.trials, epsilon_lower = excluded.epsilon_lower,
		  processes = greatest(audits.processes, excluded.processes), data_epoch = excluded.data_epoch, progress = coalesce(excluded.progress, audits.progress),
		  engine_epoch = excluded.engine_epoch, violation = excluded.violation,
		  evidence_trials = excluded.evidence_trials, updated = now()`,
		id, a.State, a.Verdict, a.Trials, a.Lower, a.Processes, a.DataEpoch, a.Progress, a.EngineEpoch, a.Violation, a.EvidenceTrials)
	if err != nil {
		return err
	}
	return outgrown(ctx, tx, id, a)
}

// columns of an Audit, in the order of scan.
const columns = `q.key, q.shape, q.fingerprint, q.summary, q.statement, q.executions, q.first_seen, q.last_seen, a.state, a.verdict, a.trials, a.epsilon_lower,
	a.processes, a.data_epoch, a.progress, a.watch, a.engine_epoch, a.violation, a.parsing >= 2, a.evidence_trials, q.destinations`

func scan(row pgx.CollectableRow) (a Audit, err error) {
	q := &a.Query
	err = row.Scan(&q.Key, &q.Shape, &q.Fingerprint, &q.Summary, &q.Statement, &a.Executions, &q.FirstSeen, &q.LastSeen, &a.State, &a.Verdict, &a.Trials, &a.Lower,
		&a.Processes, &a.DataEpoch, &a.Progress, &a.Watch, &a.EngineEpoch, &a.Violation, &a.Poisoned, &a.EvidenceTrials, &q.Destinations)
	if len(q.Destinations) == 0 {
		q.Destinations = nil
	}
	return a, err
}

// Keys returns the keys of the engine's audits, at most the given number: first those with a violation that is not
// resolved, then those that are not decided, each by when clients last ran the query, the latest first. poisoned are
// those whose restore did not complete twice in a row; they are left out.
func (e *Engine) Keys(ctx context.Context, most int) (keys, poisoned []string, err error) {
	rows, err := e.ledger.pool.Query(ctx, `
		SELECT q.key, a.parsing >= 2 FROM queries q JOIN audits a ON a.query = q.id WHERE q.engine = $1
		ORDER BY a.parsing >= 2, `+violates+` DESC, a.state = 'decided', q.last_seen DESC, q.id LIMIT $2`, e.name, most)
	var key string
	var bad bool
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&key, &bad}, func() error {
			if bad {
				poisoned = append(poisoned, key)
			} else {
				keys = append(keys, key)
			}
			return nil
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ledger: list audits: %w", sqlstate.Withhold(err))
	}
	return keys, poisoned, nil
}

// Find returns the stored form of an audit; false if there is none.
func (e *Engine) Find(ctx context.Context, key string) (Audit, bool, error) {
	rows, err := e.ledger.pool.Query(ctx, "SELECT "+columns+" FROM queries q JOIN audits a ON a.query = q.id WHERE q.engine = $1 AND q.key = $2", e.name, key)
	var a Audit
	if err == nil {
		a, err = pgx.CollectOneRow(rows, scan)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Audit{}, false, nil
	case err != nil:
		return Audit{}, false, fmt.Errorf("ledger: read an audit: %w", sqlstate.Withhold(err))
	}
	if q := &a.Query; q.Statement == nil && e.ledger.withhold {
		q.Unreadable = ErrWithheld
	}
	return a, true, nil
}

// Parsing records that an audit's statement is about to be parsed, and that it was: if the process crashes in between
// twice in a row, Keys no longer returns the audit.
func (e *Engine) Parsing(ctx context.Context, key string, done bool) error {
	return e.write(ctx, "restore an audit", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE audits a SET parsing = CASE WHEN $3 THEN 0 ELSE parsing + 1 END FROM queries q
			WHERE q.id = a.query AND q.engine = $1 AND q.key = $2`, e.name, key, done)
		return err
	})
}

// SetAside moves the progress of an audit that cannot be restored out of the way, with the reason. A turn of the audit
// that a worker has is outdated.
func (e *Engine) SetAside(ctx context.Context, key, reason string) error {
	return e.write(ctx, "set progress aside", func(tx pgx.Tx) error {
		if err := e.outdate(ctx, tx, key); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			WITH bad AS (SELECT a.query, a.progress FROM audits a JOIN queries q ON q.id = a.query WHERE q.engine = $1 AND q.key = $2 AND a.progress IS NOT NULL),
			kept AS (INSERT INTO set_aside (query, reason, progress) SELECT query, $3, progress FROM bad)
			UPDATE audits SET progress = NULL, evidence_trials = 0 WHERE query IN (SELECT query FROM bad)`, e.name, key, valid(reason))
		return err
	})
}
