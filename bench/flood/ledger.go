package flood

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/program"
)

// compare waits until the ledger has every statement that was sent, or does not change any more, and reads what it has.
func (r *Result) compare(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was read only
	bound, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	err = program.Until(bound, func() (bool, error) {
		if err := r.read(ctx, conn); err != nil {
			return false, err
		}
		return r.Missing() <= 0 && r.Found > 0, nil
	})
	if err != nil && bound.Err() == nil {
		return err
	}
	return r.sizes(ctx, conn)
}

// read reads the counts.
func (r *Result) read(ctx context.Context, conn *pgx.Conn) error {
	err := conn.QueryRow(ctx, `
		SELECT coalesce(sum(n), 0)::bigint, count(*) FILTER (WHERE n = $1 AND NOT broken), count(*) FILTER (WHERE n > CASE WHEN broken THEN 1 ELSE $1 END),
		  count(*), coalesce(sum(unplaced), 0)::bigint
		FROM (SELECT q.summary LIKE '%leaky%' AS broken, q.executions AS n, (SELECT sum(unplaced) FROM dpwatch_ledger.query_hours h WHERE h.query = q.id) AS unplaced
		  FROM dpwatch_ledger.queries q) q`, r.PerText).Scan(&r.Executions, &r.Exact, &r.Over, &r.Queries, &r.Unplaced)
	if err != nil {
		return fmt.Errorf("the ledger's queries: %w", err)
	}
	r.Skipped = map[string]int{}
	rows, err := conn.Query(ctx, "SELECT reason, sum(statements)::bigint FROM dpwatch_ledger.skipped GROUP BY reason")
	if err != nil {
		return err
	}
	var reason string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&reason, &n}, func() error { r.Skipped[reason] = n; return nil }); err != nil {
		return err
	}
	// The violation: when it was stored, and how many other audits were in between.
	var found *time.Time
	err = conn.QueryRow(ctx, `
		SELECT (SELECT min(e.at) FROM dpwatch_ledger.events e JOIN dpwatch_ledger.queries q ON q.id = e.query WHERE q.summary LIKE '%leaky%' AND e.verdict = 'violation'),
		  (SELECT count(*) FROM dpwatch_ledger.audits), (SELECT count(*) FROM dpwatch_ledger.audits WHERE trials > 0)`).Scan(&found, &r.Audits, &r.Tried)
	if found != nil {
		r.Found = found.Sub(r.Sight)
	}
	return err
}

// sizes reads the size of the ledger.
func (r *Result) sizes(ctx context.Context, conn *pgx.Conn) error {
	err := conn.QueryRow(ctx, `
		SELECT sum(pg_total_relation_size(c.oid))::bigint, sum(pg_total_relation_size(c.oid)) FILTER (WHERE relname = 'audits')::bigint,
		  sum(pg_total_relation_size(c.oid)) FILTER (WHERE relname LIKE 'quer%')::bigint, (SELECT coalesce(avg(length(progress)), 0)::bigint FROM dpwatch_ledger.audits)
		FROM pg_class c WHERE c.relnamespace = 'dpwatch_ledger'::regnamespace AND c.relkind = 'r'`).Scan(&r.Size, &r.SizeAudits, &r.SizeQueries, &r.Progress)
	if err != nil {
		return fmt.Errorf("the ledger's size: %w", err)
	}
	return nil
}
