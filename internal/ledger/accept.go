package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Acceptance is an operator's decision that a violation sends no alert, which is neither revoked nor recorded as ended.
// Its date may have passed.
type Acceptance struct {
	ID          int64       `json:"-"`
	Engine      string      `json:"engine"`
	Key         string      `json:"key"`
	Fingerprint string      `json:"fingerprint"`
	Summary     string      `json:"summary"`
	Epsilon     *float64    `json:"epsilon_claimed"`
	Delta       *float64    `json:"delta_claimed"`
	Curve       curve.Curve `json:"claim_curve,omitempty"` // the whole claim if it is a curve
	Source      string      `json:"claim_source"`
	Lower       *float64    `json:"epsilon_lower"`
	Trials      int64       `json:"trials"`
	Violation   []byte      `json:"-"`    // see Audit.Violation
	Open        bool        `json:"open"` // the audit still has a violation
	At          time.Time   `json:"at"`
	Operator    string      `json:"operator"`
	Reason      string      `json:"reason"`
	Until       time.Time   `json:"until"`
	EngineEpoch string      `json:"engine_epoch"` // when it was accepted; "" = not known
}

// Acceptances returns the acceptances of an engine, or of all if engine is "": first the one that ends first.
func (l *Ledger) Acceptances(ctx context.Context, engine string) ([]Acceptance, error) {
	return acceptances(ctx, l.pool, engine)
}

func acceptances(ctx context.Context, pool *pgxpool.Pool, engine string) ([]Acceptance, error) {
	rows, err := pool.Query(ctx, `
		SELECT c.id, q.engine, q.key, q.fingerprint, q.summary, q.epsilon, q.delta, q.claim_curve, q.claim_source, a.epsilon_lower, coalesce(a.trials, 0), a.violation,
		  coalesce(`+violates+`, false), c.at, c.operator, c.reason, c.until, c.engine_epoch
		FROM `+decisions+` c
		JOIN queries q ON q.id = c.query LEFT JOIN audits a ON a.query = c.query
		WHERE c.action = 'accept' AND $1 IN ('', q.engine) ORDER BY c.until, c.id`, engine)
	var all []Acceptance
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Acceptance])
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: list accepted violations: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Acceptances returns the acceptances of the engine.
func (s *Audits) Acceptances(ctx context.Context) ([]Acceptance, error) {
	return acceptances(ctx, s.w.pool, s.w.name)
}

// EndAcceptance records that an acceptance has ended, and why. It returns false if an operator has decided otherwise
// since.
func (s *Audits) EndAcceptance(ctx context.Context, id int64, reason string) (ended bool, err error) {
	err = s.w.write(ctx, "end an acceptance", func(tx pgx.Tx) error {
		var query int64
		if err := tx.QueryRow(ctx, "SELECT query FROM actions WHERE id = $1", id).Scan(&query); err != nil {
			return err
		}
		if err := lockActions(ctx, tx, query); err != nil {
			return err
		}
		last, err := lastDecision(ctx, tx, query)
		if err != nil || last.id != id {
			return err
		}
		ended = true
		_, err = tx.Exec(ctx, "INSERT INTO actions (query, operator, action, reason) VALUES ($1, 'dpwatch', 'end', $2)", query, reason)
		return err
	})
	return ended && err == nil, err
}
