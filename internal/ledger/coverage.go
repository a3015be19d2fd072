package ledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Volume is how many statements, and how many distinct queries, have one outcome.
type Volume struct {
	Outcome    string
	Queries    int64
	Statements int64
}

// Outcomes of queries, besides the verdicts and states of their audits.
const (
	Unclaimed  = "no_claim"   // the query has no claim, so that there can be no violation
	Untried    = "queued"     // its audit has had no trial
	Vacuous    = "vacuous"    // its audit was decided without a trial: the person whom D1 lacks does not take part
	Untestable = "untestable" // its audit was decided without a trial: no number of trials that the configuration allows can test the claim
	Unplaced   = "no_place"   // it had no place for an audit; the statements are in Volumes.Skipped, by reason
)

// Volumes are the statements since a time. Each statement is in exactly one Volume.
type Volumes struct {
	Since   time.Time // not before the ledger's first record
	Engines []string
	Queries []Volume // by the verdict or state of an audit with trials, or Unclaimed, Vacuous, Untried, Untestable, Unplaced, waiting
	Skipped []Volume // statements that are not audited, by reason; without Queries
	Samples []Sample // a few of them, the newest of each reason first
}

// Volumes returns the statements of an engine ("" = all) since the beginning of an hour. It returns an error with the
// names of the engines if there is no such engine.
func (l *Ledger) Volumes(ctx context.Context, engine string, since time.Time) (Volumes, error) {
	return l.VolumesUntil(ctx, engine, since, nil)
}

// ErrNoEngine is wrapped by the error for an engine that the ledger does not have.
var ErrNoEngine = errors.New("no engine")

// ofSequences matches the summaries of sequences, whose statements are counted one by one.
const ofSequences = "^[0-9]+ queries together: "

var summaryOfSequence = regexp.MustCompile(ofSequences)

// IsSequence reports whether a summary is that of a sequence, whose executions are those of its statements, too.
func IsSequence(summary string) bool { return summaryOfSequence.MatchString(summary) }

// VolumesUntil is Volumes without the hours that began at until or later; nil = with all.
func (l *Ledger) VolumesUntil(ctx context.Context, engine string, since time.Time, until *time.Time) (Volumes, error) {
	v := Volumes{Since: Hour(since)}
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var all []string
		if err := tx.QueryRow(ctx, `SELECT coalesce(array_agg(name ORDER BY name), '{}'), coalesce(array_agg(name ORDER BY name) FILTER (WHERE $1 IN ('', name)), '{}') FROM engines`,
			engine).Scan(&all, &v.Engines); err != nil {
			return err
		}
		if len(v.Engines) == 0 && engine != "" {
			return fmt.Errorf("it has %w %q; it has: %s", ErrNoEngine, engine, strings.Join(all, ", "))
		}
		first, err := firstRecord(ctx, tx, v.Engines)
		if err != nil {
			return err
		}
		if first != nil && first.After(v.Since) {
			v.Since = Hour(*first)
		}
		if v.Queries, err = volumes(ctx, tx, `
			WITH h AS (SELECT query, sum(executions)::bigint AS executions, sum(unplaced)::bigint AS unplaced FROM query_hours WHERE hour >= $2 AND ($3::timestamptz IS NULL OR hour < $3) GROUP BY query)
			SELECT CASE WHEN a.query IS NULL AND h.unplaced = h.executions THEN 'no_place' WHEN q.epsilon IS NULL THEN 'no_claim' WHEN a.reason_code = 'vacuous' THEN 'vacuous'
			  WHEN a.trials = 0 AND a.verdict <> 'violation' THEN CASE a.state WHEN 'decided' THEN 'untestable' WHEN 'waiting' THEN 'waiting' ELSE 'queued' END
			  ELSE coalesce(nullif(a.verdict, ''), a.state, 'queued') END, count(*), sum(h.executions - h.unplaced)::bigint
			FROM h JOIN queries q ON q.id = h.query LEFT JOIN audits a ON a.query = q.id WHERE q.engine = ANY($1) AND q.summary !~ $4 GROUP BY 1 ORDER BY 3 DESC, 1`, v.Engines, v.Since, until, ofSequences); err != nil {
			return err
		}
		v.Skipped, err = volumes(ctx, tx, `SELECT reason, 0::bigint, sum(statements)::bigint FROM skipped WHERE hour >= $2 AND ($3::timestamptz IS NULL OR hour < $3) AND engine = ANY($1) GROUP BY 1 ORDER BY 3 DESC, 1`, v.Engines, v.Since, until)
		if err != nil {
			return err
		}
		return samples(ctx, tx, &v, until)
	})
	if err != nil {
		return v, fmt.Errorf("ledger: coverage: %w", sqlstate.Withhold(err))
	}
	return v, nil
}

// firstRecord returns the time of the first record of what clients ran, or when an engine was last taken over, whichever
// is earlier; nil if there are no engines.
func firstRecord(ctx context.Context, tx pgx.Tx, engines []string) (at *time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT least((SELECT min(hour) FROM query_hours), (SELECT min(hour) FROM skipped), (SELECT min(at) FROM engines WHERE name = ANY($1)))`, engines).Scan(&at)
	return at, err
}

func volumes(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]Volume, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Volume])
}
