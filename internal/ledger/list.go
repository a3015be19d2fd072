package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// ListOptions selects queries for a list.
type ListOptions struct {
	Engine string // "" = all
	Search string // part of the summary or of a user's name, or the beginning of a key or fingerprint; "" = all
	Status string // one of Statuses; "" = all
	Sort   string // one of Sorts; "" = severity
	Up     bool   // the smallest first
	Limit  int
	Offset int
}

// The statuses of queries in a list.
const (
	StatusOpen         = string(finding.Open)
	StatusAccepted     = string(finding.Accepted)
	StatusNoEvidence   = "no_evidence"  // decided
	StatusInconclusive = "inconclusive" // decided
	StatusRunning      = "running"      // an audit without a verdict
	StatusUntried      = "untried"      // no audit yet
)

// listStatus is the status of a query as SQL.
const listStatus = "coalesce(" + violationStatus + `, CASE WHEN a.query IS NULL THEN 'untried' WHEN a.verdict IN ('no_evidence', 'inconclusive') THEN a.verdict ELSE 'running' END)`

// severest is the bound of a violation as SQL: the order of queries that are equal in the chosen order.
const severest = "CASE WHEN " + violates + " THEN a.epsilon_lower END"

// sorts are the orders of a list as SQL, by name.
var sorts = map[string]string{
	"":           "CASE " + violationStatus + " WHEN '" + StatusOpen + "' THEN 2 WHEN '" + StatusAccepted + "' THEN 1 ELSE 0 END",
	"bound":      "a.epsilon_lower",
	"claim":      "q.epsilon",
	"trials":     "coalesce(a.trials, 0)",
	"executions": "q.executions",
	"last":       "q.last_seen",
	"first":      "q.first_seen",
	"summary":    "q.summary",
}

// Listed is a line of a list.
type Listed struct {
	Key        string
	Engine     string
	Summary    string
	Epsilon    *float64 // nil = the query has no claim
	Delta      *float64
	Executions int64
	FirstSeen  time.Time
	LastSeen   time.Time
	State      string
	Verdict    string
	Trials     int64
	Lower      *float64
	Status     string
	// Destinations are where answers went.
	Destinations []string
}

// ErrSort means that a list has no such order.
var ErrSort = errors.New("a list of queries cannot be sorted like this")

// List returns a page of the queries, and how many there are on all pages.
func (l *Ledger) List(ctx context.Context, o ListOptions) (page []Listed, total int, err error) {
	order, known := sorts[o.Sort]
	if !known {
		return nil, 0, ErrSort
	}
	direction := "DESC"
	if o.Up {
		direction = "ASC"
	}
	from := `FROM queries q LEFT JOIN audits a ON a.query = q.id
		LEFT JOIN ` + accepted + ` c ON c.query = q.id
		WHERE $1 IN ('', q.engine) AND ($2 = '' OR position(lower($2) IN lower(q.summary)) > 0 OR starts_with(q.key, $2) OR starts_with(q.fingerprint, $2)
		  OR EXISTS (SELECT FROM query_users u WHERE u.query = q.id AND position(lower($2) IN lower(u.username)) > 0))
		AND ($3 = '' OR ` + listStatus + ` = $3)`
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT count(*) "+from, o.Engine, o.Search, o.Status).Scan(&total); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT q.key, q.engine, q.summary, q.epsilon, q.delta, q.executions, q.first_seen, q.last_seen, coalesce(a.state, ''), coalesce(a.verdict, ''),
			coalesce(a.trials, 0), a.epsilon_lower, `+listStatus+", q.destinations "+from+" ORDER BY "+order+" "+direction+" NULLS LAST, "+severest+" DESC NULLS LAST, q.last_seen DESC, q.id LIMIT $4 OFFSET $5",
			o.Engine, o.Search, o.Status, o.Limit, o.Offset)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Listed])
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("ledger: list queries: %w", sqlstate.Withhold(err))
	}
	return page, total, nil
}
