package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Changes returns the latest changes of the audits of all engines, the latest first, at most the given number:
// verdicts, resolutions, noted events, and new fingerprints. Changes of a state alone are left out.
func (l *Ledger) Changes(ctx context.Context, most int) ([]read.Change, error) {
	rows, err := l.pool.Query(ctx, `
		(SELECT e.at, q.engine, q.key, q.summary, e.state, e.verdict, e.reason FROM events e JOIN queries q ON q.id = e.query
		  WHERE e.verdict <> '' OR e.state IN ('resolved', 'changed', 'reaudit') ORDER BY e.at DESC, e.id DESC LIMIT $1)
		UNION ALL
		(SELECT q.first_seen, q.engine, q.key, q.summary, $2, '', '' FROM (SELECT * FROM queries ORDER BY id DESC LIMIT 10 * $1) q
		  WHERE NOT EXISTS (SELECT FROM queries o WHERE o.engine = q.engine AND o.fingerprint = q.fingerprint AND o.id < q.id)
		  ORDER BY q.id DESC LIMIT $1)
		ORDER BY 1 DESC LIMIT $1`, most, read.FirstSeen)
	if err == nil {
		var all []read.Change
		if all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[read.Change]); err == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("ledger: read the latest changes: %w", sqlstate.Withhold(err))
}
