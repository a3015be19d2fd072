package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Audit is the stored form of an audit.
type Audit struct {
	Query   Query
	State   string
	Verdict string // "" = none yet
	Reason  string // of the verdict or the state, for the history; no values of rows
	// ReasonCode is analysis.Report.ReasonCode; written only.
	ReasonCode string
	Trials     int
	Lower      *float64 // lower bound of epsilon; nil = none
	Processes  int      // how often the evidence began
	DataEpoch  string   // of the copies
	Progress   []byte   // nil = no evidence
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

// Audits are the stored audits of an engine.
type Audits struct {
	w        *writer
	outdates bool // what this process writes outdates the turn of the audit; a worker writes in its turn
}

// Begin records that an audit's evidence begins. It returns how often that was so for this audit, from 1, and the fleet
// with this beginning, if the query has a claim. Former evidence stays in the ledger, apart, until Save stores new
// evidence of more trials. A turn of the audit that a worker has is outdated, unless it is this Engine's.
func (s *Audits) Begin(ctx context.Context, a Audit) (processes int, fleet Fleet, err error) {
	err = s.w.write(ctx, "begin an audit", func(tx pgx.Tx) error {
		if err := s.outdate(ctx, tx, a.Query.Key); err != nil {
			return err
		}
		id, err := s.w.query(ctx, tx, &a.Query)
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
			  processes = audits.processes + 1, data_epoch = excluded.data_epoch, engine_epoch = excluded.engine_epoch, violation = excluded.violation, reason_code = '',
			  progress = NULL, evidence_trials = 0, watch = NULL, updated = now()
			RETURNING processes`, id, a.State, a.DataEpoch, a.EngineEpoch, a.Violation).Scan(&processes)
	})
	return processes, fleet, err
}

// Save stores the present state of an audit, and an event if its state or verdict has changed. A state without evidence
// leaves the stored evidence and its figures as they are. A state of an earlier beginning changes nothing, but its
// evidence is kept as Begin keeps it. The error is ErrFewerTrials, wrapped, if the state has evidence of fewer trials
// than the stored one. If the state has evidence, a turn of the audit that a worker has is outdated, unless it is this
// Engine's.
func (s *Audits) Save(ctx context.Context, a Audit) error {
	if _, control := ControlOf(a.Query.Key); control {
		return s.saveControl(ctx, &a)
	}
	return s.w.write(ctx, "save an audit", func(tx pgx.Tx) error {
		if a.Progress != nil {
			if err := s.outdate(ctx, tx, a.Query.Key); err != nil {
				return err
			}
		}
		return s.save(ctx, tx, &a)
	})
}

func (s *Audits) save(ctx context.Context, tx pgx.Tx, a *Audit) error {
	id, err := s.w.query(ctx, tx, &a.Query)
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
		INSERT INTO audits (query, state, verdict, trials, epsilon_lower, processes, data_epoch, progress, engine_epoch, violation, evidence_trials, reason_code)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (query) DO UPDATE SET state = excluded.state, verdict = excluded.verdict, trials = excluded.trials, epsilon_lower = excluded.epsilon_lower,
		  processes = greatest(audits.processes, excluded.processes), data_epoch = excluded.data_epoch, progress = coalesce(excluded.progress, audits.progress),
		  engine_epoch = excluded.engine_epoch, violation = excluded.violation,
		  evidence_trials = excluded.evidence_trials, reason_code = excluded.reason_code, updated = now()`,
		id, a.State, a.Verdict, a.Trials, a.Lower, a.Processes, a.DataEpoch, a.Progress, a.EngineEpoch, a.Violation, a.EvidenceTrials, a.ReasonCode)
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
func (s *Audits) Keys(ctx context.Context, most int) (keys, poisoned []string, err error) {
	rows, err := s.w.pool.Query(ctx, `
		SELECT q.key, a.parsing >= 2 FROM queries q JOIN audits a ON a.query = q.id WHERE q.engine = $1
		ORDER BY a.parsing >= 2, `+violates+` DESC, a.state = 'decided', q.last_seen DESC, q.id LIMIT $2`, s.w.name, most)
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
func (s *Audits) Find(ctx context.Context, key string) (Audit, bool, error) {
	if _, control := ControlOf(key); control {
		return s.findControl(ctx, key)
	}
	rows, err := s.w.pool.Query(ctx, "SELECT "+columns+" FROM queries q JOIN audits a ON a.query = q.id WHERE q.engine = $1 AND q.key = $2", s.w.name, key)
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
	if q := &a.Query; q.Statement == nil && s.w.withhold {
		q.Unreadable = ErrWithheld
	}
	return a, true, nil
}

// Parsing records that an audit's statement is about to be parsed, and that it was: if the process crashes in between
// twice in a row, Keys no longer returns the audit.
func (s *Audits) Parsing(ctx context.Context, key string, done bool) error {
	return s.w.write(ctx, "restore an audit", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE audits a SET parsing = CASE WHEN $3 THEN 0 ELSE parsing + 1 END FROM queries q
			WHERE q.id = a.query AND q.engine = $1 AND q.key = $2`, s.w.name, key, done)
		return err
	})
}

// SetAside moves the progress of an audit that cannot be restored out of the way, with the reason. A turn of the audit
// that a worker has is outdated.
func (s *Audits) SetAside(ctx context.Context, key, reason string) error {
	if _, control := ControlOf(key); control {
		return s.setControlAside(ctx, key)
	}
	return s.w.write(ctx, "set progress aside", func(tx pgx.Tx) error {
		if err := s.outdate(ctx, tx, key); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			WITH bad AS (SELECT a.query, a.progress FROM audits a JOIN queries q ON q.id = a.query WHERE q.engine = $1 AND q.key = $2 AND a.progress IS NOT NULL),
			kept AS (INSERT INTO set_aside (query, reason, progress) SELECT query, $3, progress FROM bad)
			UPDATE audits SET progress = NULL, evidence_trials = 0 WHERE query IN (SELECT query FROM bad)`, s.w.name, key, valid(reason))
		return err
	})
}

// outdate makes the turn of an audit outdated, because the auditor writes other evidence. It must come before other
// statements about the audit in the transaction: a worker locks in this order, too.
func (s *Audits) outdate(ctx context.Context, tx pgx.Tx, key string) error {
	if !s.outdates {
		return nil
	}
	_, err := tx.Exec(ctx, "DELETE FROM turns WHERE engine = $1 AND key = $2", s.w.name, key)
	return err
}
