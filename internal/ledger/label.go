package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Label returns the label of the engine's last deploy; "" = none was posted.
func (e *Engine) Label(ctx context.Context) (label string, err error) {
	if err = e.ledger.pool.QueryRow(ctx, "SELECT label FROM engines WHERE name = $1", e.w.name).Scan(&label); err != nil {
		return "", fmt.Errorf("ledger: read the label: %w", sqlstate.Withhold(err))
	}
	return label, nil
}

// SetLabel stores the label of a deploy.
func (e *Engine) SetLabel(ctx context.Context, label string) error {
	return e.w.write(ctx, "write the label", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE engines SET label = $2 WHERE name = $1", e.w.name, label)
		return err
	})
}
