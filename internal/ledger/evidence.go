package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrFewerTrials means that Save refused a state: its evidence has fewer trials than the stored evidence, and the audit
// has not begun again.
var ErrFewerTrials = errors.New("the stored evidence has more trials, and the audit has not begun again: the stored evidence stays")

// errFormer means that a state is one of an earlier beginning of the audit than the stored one.
var errFormer = errors.New("the audit has begun again since")

// keepFormer keeps the evidence that row $1 of a source of evidence has, unless evidence of more trials is kept.
const keepFormer = `INSERT INTO former_evidence (query, processes, verdict, trials, evidence_trials, epsilon_lower, data_epoch, engine_epoch, progress) %s
	ON CONFLICT (query) DO UPDATE SET at = now(), processes = excluded.processes, verdict = excluded.verdict, trials = excluded.trials, evidence_trials = excluded.evidence_trials,
	  epsilon_lower = excluded.epsilon_lower, data_epoch = excluded.data_epoch, engine_epoch = excluded.engine_epoch, progress = excluded.progress
	WHERE former_evidence.evidence_trials <= excluded.evidence_trials`

// retire keeps the stored evidence of an audit that begins again.
func retire(ctx context.Context, tx pgx.Tx, query int64) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(keepFormer, `SELECT query, processes, verdict, trials, evidence_trials, epsilon_lower, data_epoch, engine_epoch, progress
		FROM audits WHERE query = $1 AND progress IS NOT NULL AND evidence_trials > 0`), query)
	return err
}

// retireState keeps the evidence of a state that is one of an earlier beginning.
func retireState(ctx context.Context, tx pgx.Tx, query int64, a *Audit) error {
	if a.Progress == nil || a.EvidenceTrials == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(keepFormer, "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"),
		query, a.Processes, a.Verdict, a.Trials, a.EvidenceTrials, a.Lower, a.DataEpoch, a.EngineEpoch, a.Progress)
	return err
}

// admit decides what of a state is stored. A state without evidence, or with less than the stored evidence, leaves the
// evidence and its figures as they are: trouble and verdicts without trials do not replace it. The error is
// ErrFewerTrials, errFormer or that of the database. The row of the audit is locked until the transaction ends.
func admit(ctx context.Context, tx pgx.Tx, query int64, a *Audit) error {
	var stored Audit
	var evidence bool
	err := tx.QueryRow(ctx, "SELECT processes, trials, evidence_trials, epsilon_lower, data_epoch, engine_epoch, progress IS NOT NULL FROM audits WHERE query = $1 FOR UPDATE", query).
		Scan(&stored.Processes, &stored.Trials, &stored.EvidenceTrials, &stored.Lower, &stored.DataEpoch, &stored.EngineEpoch, &evidence)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case stored.Processes > a.Processes:
		return errFormer
	case stored.Processes < a.Processes: // the ledger has lost the beginning
		return retire(ctx, tx, query)
	case !evidence || a.Progress != nil && a.EvidenceTrials >= stored.EvidenceTrials:
		return nil
	case a.Progress != nil && a.EvidenceTrials > 0:
		return ErrFewerTrials
	}
	a.Progress, a.Trials, a.EvidenceTrials, a.Lower = nil, stored.Trials, stored.EvidenceTrials, stored.Lower
	a.DataEpoch, a.EngineEpoch = stored.DataEpoch, stored.EngineEpoch
	return nil
}

// outgrown removes the former evidence of an audit that has fewer trials than the present one.
func outgrown(ctx context.Context, tx pgx.Tx, query int64, a *Audit) error {
	_, err := tx.Exec(ctx, "DELETE FROM former_evidence WHERE query = $1 AND evidence_trials < $2", query, a.EvidenceTrials)
	return err
}
