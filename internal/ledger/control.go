package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// controlSuffix follows the key of a query in the key of its control audit.
const controlSuffix = "-control"

// ControlKey returns the key of the control audit of a query: D0 against its twin, two copies of the same data.
func ControlKey(key string) string { return key + controlSuffix }

// ControlOf returns the key of the query of a control audit; false if it is the key of another audit. The Audits of an
// Engine keep control audits apart: lists, counts and histories of audits leave them out.
func ControlOf(key string) (query string, control bool) { return strings.CutSuffix(key, controlSuffix) }

// ControlAudit is what the ledger has of a control audit on one version of the copies.
type ControlAudit struct {
	Key       string
	DataEpoch string
	Verdict   string // "" = none yet
}

// Controls returns the control audits of the engine on all versions of the copies.
func (s *Audits) Controls(ctx context.Context) (all []ControlAudit, err error) {
	rows, err := s.w.pool.Query(ctx, "SELECT key, data_epoch, verdict FROM control_audits WHERE engine = $1", s.w.name)
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ControlAudit])
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: list control audits: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// FalseAlarms returns the figures of the decided control audits of an engine; nil if there are none.
func (l *Ledger) FalseAlarms(ctx context.Context, engine string) (*read.FalseAlarms, error) {
	var alarms, others, inconclusive int
	err := l.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE verdict = 'violation'), count(*) FILTER (WHERE verdict = 'no_evidence'),
		count(*) FILTER (WHERE verdict = 'inconclusive') FROM control_audits WHERE engine = $1`, engine).Scan(&alarms, &others, &inconclusive)
	if err != nil {
		return nil, fmt.Errorf("ledger: count control audits: %w", sqlstate.Withhold(err))
	}
	if alarms+others+inconclusive == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	f := read.NewFalseAlarms(alarms, others, inconclusive)
	return &f, nil
}

// saveControl stores the state of a control audit, unless that on these copies is decided or has evidence of more
// trials. Without evidence it leaves the stored evidence as it is.
func (s *Audits) saveControl(ctx context.Context, a *Audit) error {
	return s.w.write(ctx, "save a control audit", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO control_audits AS c (engine, key, data_epoch, verdict, state, trials, epsilon_lower, processes, engine_epoch, evidence_trials, progress)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (engine, key, data_epoch) DO UPDATE SET verdict = excluded.verdict, state = excluded.state, trials = excluded.trials,
			  epsilon_lower = excluded.epsilon_lower, processes = excluded.processes, engine_epoch = excluded.engine_epoch,
			  evidence_trials = CASE WHEN excluded.progress IS NULL THEN c.evidence_trials ELSE excluded.evidence_trials END,
			  progress = coalesce(excluded.progress, c.progress), updated = now()
			WHERE c.verdict = '' AND (c.processes < excluded.processes
			  OR c.processes = excluded.processes AND (excluded.progress IS NULL OR c.evidence_trials <= excluded.evidence_trials))`,
			s.w.name, a.Query.Key, a.DataEpoch, a.Verdict, a.State, a.Trials, a.Lower, a.Processes, a.EngineEpoch, a.EvidenceTrials, a.Progress)
		return err
	})
}

// findControl returns the stored form of a control audit, without its query, on the copies on which it ran last; false
// if there is none.
func (s *Audits) findControl(ctx context.Context, key string) (a Audit, found bool, err error) {
	a.Query.Key = key
	err = s.w.pool.QueryRow(ctx, `SELECT data_epoch, verdict, state, trials, epsilon_lower, processes, engine_epoch, evidence_trials, progress
		FROM control_audits WHERE engine = $1 AND key = $2 ORDER BY updated DESC LIMIT 1`, s.w.name, key).
		Scan(&a.DataEpoch, &a.Verdict, &a.State, &a.Trials, &a.Lower, &a.Processes, &a.EngineEpoch, &a.EvidenceTrials, &a.Progress)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Audit{}, false, nil
	case err != nil:
		return Audit{}, false, fmt.Errorf("ledger: read a control audit: %w", sqlstate.Withhold(err))
	}
	return a, true, nil
}

// setControlAside removes the evidence of a control audit that cannot be used: the audit begins again.
func (s *Audits) setControlAside(ctx context.Context, key string) error {
	return s.w.write(ctx, "set progress aside", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE control_audits SET progress = NULL, evidence_trials = 0 WHERE engine = $1 AND key = $2 AND verdict = ''", s.w.name, key)
		return err
	})
}

// prunedControls removes the evidence of control audits that are older than $2. Their results, which hold no values of
// rows, stay: the rate of false alarms is that of all.
const prunedControls = `UPDATE control_audits SET progress = NULL WHERE ctid = ANY(ARRAY(SELECT c.ctid FROM control_audits c WHERE c.engine = $1 AND c.updated < $2
	AND c.progress IS NOT NULL AND $3::text[] IS NOT NULL LIMIT $4))`
