package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Concerned returns the queries of all engines that a report of a period concerns: those that clients ran or whose
// audit changed in it, and those with a violation that is not resolved and began before its end. Hours count if they
// began in the period. At most the given number is returned.
func (l *Ledger) Concerned(ctx context.Context, since, until time.Time, most int) ([]read.Stored, error) {
	return l.stored(ctx, `(EXISTS (SELECT FROM query_hours h WHERE h.query = q.id AND h.hour >= ($1::timestamptz[])[1] AND h.hour < ($1::timestamptz[])[2])
		OR EXISTS (SELECT FROM events e WHERE e.query = q.id AND e.at >= ($1::timestamptz[])[1] AND e.at < ($1::timestamptz[])[2])
		OR (coalesce(`+violates+`, false) AND q.first_seen < ($1::timestamptz[])[2]))`, []time.Time{Hour(since), until}, most)
}

// Reached counts changes of audits of an engine to a verdict.
type Reached struct {
	Engine  string `json:"engine"`
	Verdict string `json:"verdict"`
	Events  int64  `json:"events"`
	Queries int64  `json:"queries"`
}

// Reached returns how often audits came to each verdict in a period.
func (l *Ledger) Reached(ctx context.Context, since, until time.Time) ([]Reached, error) {
	all, err := connect.Structs[Reached](ctx, l.pool, `SELECT q.engine, e.verdict, count(*), count(DISTINCT q.id) FROM events e JOIN queries q ON q.id = e.query
		WHERE e.at >= $1 AND e.at < $2 AND e.verdict <> '' GROUP BY 1, 2 ORDER BY 1, 2`, since, until)
	if err != nil {
		return nil, fmt.Errorf("ledger: read the verdicts of a period: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Fleet returns the counts of the ledger; see Begin.
func (l *Ledger) Fleet(ctx context.Context) (f Fleet, err error) {
	if err = l.pool.QueryRow(ctx, "SELECT begun, reported FROM fleet").Scan(&f.Begun, &f.Reported); err != nil {
		err = fmt.Errorf("ledger: read the number of audits: %w", sqlstate.Withhold(err))
	}
	return f, err
}

// ServerVersion returns the version of the ledger's server.
func (l *Ledger) ServerVersion(ctx context.Context) (string, error) {
	return connect.Value[string](ctx, l.pool, "SHOW server_version")
}
