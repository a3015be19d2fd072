package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// The list of package read in SQL: a filter selects the same audits in the same order as read.Select.

// listStatus is read.Audit.ListStatus for a row q of queries with its rows a of audits and c of accepted.
const listStatus = "coalesce(" + violationStatus + ", CASE WHEN a.query IS NULL THEN '" + read.StatusUntried + `' WHEN a.verdict IN ('no_evidence', 'inconclusive') THEN a.verdict ELSE '` + read.StatusRunning + "' END)"

// severest is the bound of a violation: the order of queries that are equal in the chosen order.
const severest = "CASE WHEN " + violates + " THEN a.epsilon_lower END"

// sorts are the orders of package read that the ledger has.
var sorts = map[string]string{
	read.BySeverity:   "CASE " + violationStatus + " WHEN '" + read.StatusOpen + "' THEN 2 WHEN '" + read.StatusAccepted + "' THEN 1 ELSE 0 END",
	read.ByBound:      "a.epsilon_lower",
	read.ByClaim:      "q.epsilon",
	read.ByTrials:     "coalesce(a.trials, 0)",
	read.ByExecutions: "q.executions",
	read.ByLast:       "q.last_seen",
	read.ByFirst:      "q.first_seen",
	read.BySummary:    `q.summary COLLATE "C"`,
}

// errFilter is the error of a filter with a part that the ledger does not have.
var errFilter = errors.New("ledger: a list of queries has no filter by state or verdict, and no cursor")

// List returns the page of the queries that a filter selects. It reads no users and no history.
func (l *Ledger) List(ctx context.Context, f read.Filter) (page read.Page, err error) {
	order, known := sorts[f.Sort]
	switch {
	case !known:
		return page, read.ErrSort
	case f.State != "" || f.Verdict != "" || f.Cursor != "":
		return page, errFilter
	}
	direction := "DESC"
	if f.Up {
		direction = "ASC"
	}
	from := `FROM queries q LEFT JOIN audits a ON a.query = q.id
		LEFT JOIN ` + accepted + ` c ON c.query = q.id
		WHERE $1 IN ('', q.engine) AND ($2 = '' OR position(lower($2) IN lower(q.summary)) > 0 OR starts_with(q.key, $2) OR starts_with(q.fingerprint, $2)
		  OR EXISTS (SELECT FROM query_users u WHERE u.query = q.id AND position(lower($2) IN lower(u.username)) > 0))
		AND ($3 = '' OR ` + listStatus + ` = $3)`
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT count(*) "+from, f.Engine, f.Search, f.Status).Scan(&page.Total); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT "+storedColumns+" "+from+" ORDER BY "+order+" "+direction+" NULLS LAST, "+severest+` DESC NULLS LAST, q.last_seen DESC, q.key COLLATE "C", q.id LIMIT nullif($4::bigint, 0) OFFSET $5`,
			f.Engine, f.Search, f.Status, f.Limit, f.Offset)
		if err != nil {
			return err
		}
		found, _, err := collectStored(ctx, tx, rows)
		for i := range found {
			page.Audits = append(page.Audits, found[i].Audit())
		}
		return err
	})
	if err != nil {
		return read.Page{}, fmt.Errorf("ledger: list queries: %w", sqlstate.Withhold(err))
	}
	page.Left = max(0, page.Total-f.Offset-len(page.Audits))
	return page, nil
}
