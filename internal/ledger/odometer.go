package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/odometer"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Analyst is who receives answers. A field that a budget does not tell apart is empty.
type Analyst struct{ User, Database, Application string }

// Received is what an analyst received.
type Received struct {
	Analyst Analyst
	Spent   odometer.Spent
}

// Answers selects answers: of analysts with these names ("" = any), since the beginning of an hour (zero = ever). They
// are told apart by application if Applications is set. Without Repeated, an answer to a query that the analyst had run
// before does not count.
type Answers struct {
	Analyst                Analyst
	Since                  time.Time
	Applications, Repeated bool
}

// Received returns what each analyst received by the claims of the answers, in the order of their names. Answers
// without a claim do not count. An hour counts if it began at Since or later.
func (l *Ledger) Received(ctx context.Context, engine string, a Answers) ([]Received, error) {
	since := &a.Since
	if a.Since.IsZero() {
		since = nil
	}
	rows, err := l.pool.Query(ctx, `
		SELECT username, database, CASE WHEN $6 THEN application ELSE '' END, sum(answers)::bigint, sum(epsilon), sum(squares), sum(drift), sum(delta), sum(rho), sum(unread)::bigint
		FROM analyst_hours WHERE engine = $1 AND ($2::timestamptz IS NULL OR hour >= $2) AND $3 IN ('', username) AND $4 IN ('', database) AND $5 IN ('', application) AND ($7 OR NOT repeated)
		GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
		engine, since, a.Analyst.User, a.Analyst.Database, a.Analyst.Application, a.Applications, a.Repeated)
	var all []Received
	if err == nil {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Received, err error) {
			s, who := &r.Spent, &r.Analyst
			err = row.Scan(&who.User, &who.Database, &who.Application, &s.Answers, &s.Epsilon, &s.Squares, &s.Drift, &s.Delta, &s.Rho, &s.Unread)
			return r, err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: read what analysts received: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Received is Ledger.Received for this engine.
func (e *Engine) Received(ctx context.Context, a Answers) ([]Received, error) {
	return e.ledger.Received(ctx, e.w.name, a)
}

// Exceeded returns the analysts whose answers exceed a budget, and since when.
func (l *Ledger) Exceeded(ctx context.Context, engine, budget string) (map[Analyst]time.Time, error) {
	rows, err := l.pool.Query(ctx, "SELECT username, database, application, since FROM budgets_exceeded WHERE engine = $1 AND budget = $2", engine, budget)
	all := map[Analyst]time.Time{}
	var who Analyst
	var since time.Time
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&who.User, &who.Database, &who.Application, &since}, func() error {
			all[who] = since
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: read the exceeded budgets: %w", sqlstate.Withhold(err))
	}
	return all, nil
}

// Exceeded is Ledger.Exceeded for this engine.
func (e *Engine) Exceeded(ctx context.Context, budget string) (map[Analyst]time.Time, error) {
	return e.ledger.Exceeded(ctx, e.w.name, budget)
}

// SetExceeded notes that an analyst's answers exceed a budget, or that they do not any more.
func (e *Engine) SetExceeded(ctx context.Context, budget string, a Analyst, exceeded bool) error {
	return e.w.write(ctx, "note an exceeded budget", func(tx pgx.Tx) error {
		sql := "DELETE FROM budgets_exceeded WHERE (engine, budget, username, database, application) = ($1, $2, $3, $4, $5)"
		if exceeded {
			sql = "INSERT INTO budgets_exceeded (engine, budget, username, database, application) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
		}
		_, err := tx.Exec(ctx, sql, e.w.name, budget, a.User, a.Database, a.Application)
		return err
	})
}

// received identifies a row of analyst_hours.
type received struct {
	analyst  Analyst
	hour     time.Time
	repeated bool
}

// meter adds up what sightings cost, by the claims of their queries.
type meter map[received]odometer.Spent

// add counts the answers of a sighting; first means that the analyst had not run the query before.
func (m meter) add(s *Sighting, first bool) {
	c := s.Query.Claim
	if c == nil || s.Together {
		return
	}
	at := received{Analyst{valid(s.User), valid(s.Database), valid(s.Application)}, Hour(s.Query.LastSeen), false}
	n := s.Executions
	if first && n > 0 {
		m[at] = m[at].Add(odometer.Of(c.Epsilon, c.Delta, 1))
		n--
	}
	if n > 0 {
		at.repeated = true
		m[at] = m[at].Add(odometer.Of(c.Epsilon, c.Delta, n))
	}
}

// refuse counts refused statements. Whether they repeat earlier ones is not known: they count as if they did.
func (m meter) refuse(r *Refusal) {
	at := received{Analyst{valid(r.User), valid(r.Database), valid(r.Application)}, Hour(r.Hour), r.Claim != nil}
	if r.Claim == nil {
		m[at] = m[at].Add(odometer.Spent{Unread: r.Statements})
		return
	}
	m[at] = m[at].Add(odometer.Of(r.Claim.Epsilon, r.Claim.Delta, r.Statements))
}

// store adds the sums to those of the ledger.
func (r *recording) store(ctx context.Context, m meter) error {
	var all pgx.Batch
	for at, s := range m {
		all.Queue(`
			INSERT INTO analyst_hours AS h (engine, hour, username, database, application, repeated, answers, epsilon, squares, drift, delta, rho, unread)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
			ON CONFLICT (engine, hour, username, database, application, repeated) DO UPDATE SET answers = h.answers + excluded.answers, epsilon = h.epsilon + excluded.epsilon,
			  squares = h.squares + excluded.squares, drift = h.drift + excluded.drift, delta = h.delta + excluded.delta, rho = h.rho + excluded.rho, unread = h.unread + excluded.unread`,
			r.w.name, at.hour, at.analyst.User, at.analyst.Database, at.analyst.Application, at.repeated, s.Answers, s.Epsilon, s.Squares, s.Drift, s.Delta, s.Rho, s.Unread)
	}
	results := r.tx.SendBatch(ctx, &all)
	for range all.Len() {
		if _, err := results.Exec(); err != nil {
			return errors.Join(err, results.Close())
		}
	}
	return results.Close()
}

// foldHours adds the rows of analyst_hours of engine $1 that are older than $2 to those of the epoch: a budget for ever
// still counts them.
const foldHours = `
	WITH old AS (
	  DELETE FROM analyst_hours WHERE ctid = ANY(ARRAY(SELECT ctid FROM analyst_hours WHERE engine = $1 AND hour < $2 AND hour > 'epoch' AND $3::text[] IS NOT NULL LIMIT $4))
	  RETURNING *)
	INSERT INTO analyst_hours AS h (engine, hour, username, database, application, repeated, answers, epsilon, squares, drift, delta, rho, unread)
	SELECT engine, 'epoch', username, database, '', repeated, sum(answers), sum(epsilon), sum(squares), sum(drift), sum(delta), sum(rho), sum(unread) FROM old GROUP BY engine, username, database, repeated
	ON CONFLICT (engine, hour, username, database, application, repeated) DO UPDATE SET answers = h.answers + excluded.answers, epsilon = h.epsilon + excluded.epsilon,
	  squares = h.squares + excluded.squares, drift = h.drift + excluded.drift, delta = h.delta + excluded.delta, rho = h.rho + excluded.rho, unread = h.unread + excluded.unread`
