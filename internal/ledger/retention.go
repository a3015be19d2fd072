package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// pruneBatch is the number of rows of a table that Prune removes at most: other writes wait meanwhile.
const pruneBatch = 1000

// lockCounts locks the counts of an engine until the end of the transaction.
const lockCounts = "SELECT pg_advisory_xact_lock(hashtextextended('dpwatch counts ' || $1, 0))"

// Pruned is what Prune removed.
type Pruned struct {
	Queries int64 // with their audits, evidence and history
	Rows    int64 // of the other tables
	More    bool  // there is more to remove
}

// prunes remove rows of engine $1 that are older than $2. A query, with everything about it, goes if its audit has no
// violation and its key is not among $3. The history of a violation stays.
var prunes = []struct {
	queries bool
	sql     string
}{
	{true, `DELETE FROM queries WHERE id = ANY(ARRAY(SELECT q.id FROM queries q WHERE q.engine = $1 AND q.last_seen < $2 AND NOT (q.key = ANY($3))
		AND NOT EXISTS (SELECT FROM audits a WHERE a.query = q.id AND ` + violates + `) LIMIT $4))`},
	{false, `DELETE FROM query_hours WHERE ctid = ANY(ARRAY(SELECT h.ctid FROM query_hours h JOIN queries q ON q.id = h.query WHERE q.engine = $1 AND h.hour < $2 AND $3::text[] IS NOT NULL LIMIT $4))`},
	{false, `DELETE FROM query_users WHERE ctid = ANY(ARRAY(SELECT u.ctid FROM query_users u JOIN queries q ON q.id = u.query WHERE q.engine = $1 AND u.last_seen < $2 AND $3::text[] IS NOT NULL LIMIT $4))`},
	{false, `DELETE FROM skipped WHERE ctid = ANY(ARRAY(SELECT ctid FROM skipped WHERE engine = $1 AND hour < $2 AND $3::text[] IS NOT NULL LIMIT $4))`},
	{false, `DELETE FROM samples WHERE ctid = ANY(ARRAY(SELECT ctid FROM samples WHERE engine = $1 AND at < $2 AND $3::text[] IS NOT NULL LIMIT $4))`},
	{false, `DELETE FROM budget_hours WHERE ctid = ANY(ARRAY(SELECT ctid FROM budget_hours WHERE engine = $1 AND hour < $2 AND $3::text[] IS NOT NULL LIMIT $4))`},
	{false, foldHours},
	{false, `DELETE FROM events WHERE id = ANY(ARRAY(SELECT e.id FROM events e JOIN queries q ON q.id = e.query WHERE q.engine = $1 AND e.at < $2 AND $3::text[] IS NOT NULL
		AND NOT EXISTS (SELECT FROM audits a WHERE a.query = q.id AND ` + violates + `) LIMIT $4))`},
	{false, `DELETE FROM set_aside WHERE ctid = ANY(ARRAY(SELECT s.ctid FROM set_aside s JOIN queries q ON q.id = s.query WHERE q.engine = $1 AND s.at < $2 AND $3::text[] IS NOT NULL LIMIT $4))`},
	{false, `DELETE FROM former_evidence WHERE ctid = ANY(ARRAY(SELECT f.ctid FROM former_evidence f JOIN queries q ON q.id = f.query WHERE q.engine = $1 AND f.at < $2 AND $3::text[] IS NOT NULL
		AND NOT EXISTS (SELECT FROM audits a WHERE a.query = q.id AND (a.verdict = 'violation' OR a.violation IS NOT NULL)) LIMIT $4))`},
	{false, prunedTerms},
	{false, prunedControls},
}

// prunedTerms removes the terms that ended, because the next one began, before $2 and more than 30 days ago. The number
// of a term is when it began, in milliseconds. A row shows which batches of its term were stored: it must be there as
// long as their files may be, as the rows of spooled. A Recorder may go on after the next term began: its next batch
// adds its row again.
const prunedTerms = `DELETE FROM terms WHERE ctid = ANY(ARRAY(SELECT t.ctid FROM terms t WHERE t.engine = $1 AND $3::text[] IS NOT NULL AND t.term < (
	SELECT max(n.term) FROM terms n WHERE n.engine = $1 AND n.term < extract(epoch FROM least($2, now() - interval '30 days')) * 1000) LIMIT $4))`

// Prune removes records of the engine that are older than age, at most a batch of each table. keep are the keys of
// queries that stay. now is the caller's time; the server's is used if it is earlier, so that a clock that is ahead
// removes nothing too early.
func (e *Engine) Prune(ctx context.Context, now time.Time, age time.Duration, keep []string) (p Pruned, err error) {
	if keep == nil {
		keep = []string{}
	}
	for _, one := range prunes {
		err := e.w.write(ctx, "remove old records", func(tx pgx.Tx) error {
			// Not at the same time as Record: both lock many rows, in different orders.
			if _, err := tx.Exec(ctx, lockCounts, e.w.name); err != nil {
				return err
			}
			var server time.Time
			if err := tx.QueryRow(ctx, "SELECT now()").Scan(&server); err != nil {
				return err
			}
			before := now
			if server.Before(now) {
				before = server
			}
			tag, err := tx.Exec(ctx, one.sql, e.w.name, before.Add(-age), keep, pruneBatch)
			n := tag.RowsAffected()
			if one.queries {
				p.Queries += n
			} else {
				p.Rows += n
			}
			p.More = p.More || n == pruneBatch
			return err
		})
		if err != nil {
			return p, err
		}
	}
	return p, nil
}
