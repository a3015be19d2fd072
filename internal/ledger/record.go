package ledger

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/curve"
)

// Query is a captured query by its identity.
type Query struct {
	Key                 string // identity of the mechanism
	Shape               string
	Fingerprint         string
	Summary             string // without literals
	Statement           []byte // binary form of the captured statement; nil = not kept, or Unreadable says why
	Unreadable          error  `json:"-"` // read only: why there is no Statement
	Claim               *Claim // nil = none
	FirstSeen, LastSeen time.Time
	// Destinations are where the answers went: read.ToClient, "into table marts.daily". The ledger keeps
	// read.MostDestinations.
	Destinations []string `json:",omitempty"`
}

// Claim is what the engine promises for a query.
type Claim struct {
	Epsilon, Delta float64
	Source, Rule   string
	// Curve is the whole claim if it is a curve, of which (Epsilon, Delta) is one point; "" = that is all.
	Curve curve.Curve `json:",omitempty"`
}

// Sighting counts executions of a query by one user in one hour.
type Sighting struct {
	Query                       Query
	User, Database, Application string
	Executions                  int64
	Unplaced                    int64 // of these, those while the query had no place for an audit; they are also in a Skip
	// Together means that the query is a sequence, whose statements have sightings, too: it adds nothing to the coverage
	// and to what analysts learned.
	Together bool `json:",omitempty"`
}

// Skip counts statements of one hour that are not audited, for one reason.
type Skip struct {
	Reason     string
	Hour       time.Time
	Statements int64
}

// Refusal counts executions of refused DP queries by one user in one hour. They are also in a Skip.
type Refusal struct {
	User, Database, Application string
	Hour                        time.Time
	Statements                  int64
	Claim                       *Claim // of each; nil = not known
}

// Batch is what was observed in a short time. Term is that of the Engine; Seq grows from batch to batch of the term,
// from 1. File is the spooled file of captured queries from which the batch comes, "" = none. A batch of a process that
// never was the engine's auditor has Term 0: then File is its own file.
type Batch struct {
	Term, Seq int64
	File      string
	Sightings []Sighting
	Skips     []Skip
	Refused   []Refusal `json:",omitempty"`
	Samples   []Sample  `json:",omitempty"`
	// Placed are the queries whose audits have a place and have not begun, with their statements: another process
	// begins them if this one ends. Displaced are the keys of those that lost it.
	Placed    []Query  `json:",omitempty"`
	Displaced []string `json:",omitempty"`
	// Queries are captured queries that the process which audits the engine submits, each with its length (a varint)
	// before it, in the binary form of package capture. Statements is their number.
	Queries    []byte `json:",omitempty"`
	Statements int    `json:",omitempty"`
	// Captured is the number of the Capture whose queries the observations are; 0 = none. It is removed.
	Captured int64 `json:",omitempty"`
}

// Record stores a batch in one transaction. A batch that was stored before changes nothing, so that a caller who does
// not know whether a batch arrived may send it again.
func (e *Engine) Record(ctx context.Context, b Batch) error {
	return e.w.write(ctx, "record observations", func(tx pgx.Tx) error {
		r := recording{w: e.w, tx: tx, b: &b}
		if first, err := r.first(ctx); err != nil || !first {
			return err
		}
		if err := r.count(ctx); err != nil {
			return err
		}
		if err := r.place(ctx); err != nil {
			return err
		}
		return r.capture(ctx)
	})
}

// recording stores one batch in a transaction.
type recording struct {
	w  *writer
	tx pgx.Tx
	b  *Batch
}

// place stores which audits have a place and have not begun.
func (r *recording) place(ctx context.Context) error {
	if len(r.b.Displaced) > 0 {
		if _, err := r.tx.Exec(ctx, `DELETE FROM audits a USING queries q WHERE q.id = a.query AND q.engine = $1 AND q.key = ANY($2) AND a.processes = 0`, r.w.name, r.b.Displaced); err != nil {
			return err
		}
	}
	for i := range r.b.Placed {
		id, err := r.w.query(ctx, r.tx, &r.b.Placed[i])
		if err != nil {
			return err
		}
		if _, err := r.tx.Exec(ctx, `INSERT INTO audits (query, state, verdict, trials, processes, data_epoch) VALUES ($1, 'queued', '', 0, 0, '') ON CONFLICT DO NOTHING`, id); err != nil {
			return err
		}
	}
	return nil
}

// first reports whether a batch has not been stored before, and notes that it is.
func (r *recording) first(ctx context.Context) (bool, error) {
	if r.b.Term != 0 {
		tag, err := r.tx.Exec(ctx, `INSERT INTO terms (engine, term, seq) VALUES ($1, $2, $3)
			ON CONFLICT (engine, term) DO UPDATE SET seq = excluded.seq WHERE terms.seq < excluded.seq`, r.w.name, r.b.Term, r.b.Seq)
		if err != nil || tag.RowsAffected() == 0 || r.b.File == "" && r.b.Captured == 0 {
			return err == nil && tag.RowsAffected() == 1, err
		}
	}
	if r.b.Captured != 0 {
		tag, err := r.tx.Exec(ctx, "DELETE FROM captures WHERE id = $1", r.b.Captured)
		return err == nil && tag.RowsAffected() == 1, err
	}
	if _, err := r.tx.Exec(ctx, "DELETE FROM spooled WHERE at < now() - interval '30 days'"); err != nil {
		return false, err
	}
	tag, err := r.tx.Exec(ctx, "INSERT INTO spooled (file) VALUES ($1) ON CONFLICT DO NOTHING", r.b.File)
	return err == nil && tag.RowsAffected() == 1, err
}

// Submitted reports whether the captured queries of a spooled file were recorded.
func (e *Engine) Submitted(ctx context.Context, file string) (yes bool, err error) {
	err = e.w.write(ctx, "read the spooled files", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM spooled WHERE file = $1)", file).Scan(&yes)
	})
	return yes, err
}

func (r *recording) count(ctx context.Context) error {
	var all pgx.Batch
	all.Queue(lockCounts, r.w.name)
	for i := range r.b.Sightings {
		s := &r.b.Sightings[i]
		all.Queue(`
			WITH q AS (
			  INSERT INTO queries (engine, key, shape, fingerprint, summary, statement, epsilon, delta, claim_source, claim_rule, first_seen, last_seen, destinations, claim_curve, executions)
			  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
			  ON CONFLICT (engine, key) DO UPDATE SET executions = queries.executions + excluded.executions, `+addDestinations+`,
			    first_seen = least(queries.first_seen, excluded.first_seen), last_seen = greatest(queries.last_seen, excluded.last_seen)
			  RETURNING id),
			u AS (
			  INSERT INTO query_users (query, username, database, application, executions, first_seen, last_seen)
			  SELECT id, $16, $17, $18, $15, $11, $12 FROM q
			  ON CONFLICT (query, username, database, application) DO UPDATE SET executions = query_users.executions + excluded.executions,
			    first_seen = least(query_users.first_seen, excluded.first_seen), last_seen = greatest(query_users.last_seen, excluded.last_seen)
			  RETURNING xmax = 0 AS first),
			h AS (
			  INSERT INTO query_hours (query, hour, executions, unplaced) SELECT id, $19, $15, $20 FROM q
			  ON CONFLICT (query, hour) DO UPDATE SET executions = query_hours.executions + excluded.executions, unplaced = query_hours.unplaced + excluded.unplaced)
			SELECT first FROM u`,
			append(r.w.queryArguments(&s.Query), s.Executions, valid(s.User), valid(s.Database), valid(s.Application), Hour(s.Query.LastSeen), s.Unplaced)...)
	}
	for _, s := range r.b.Skips {
		all.Queue(`
			INSERT INTO skipped (engine, reason, hour, statements) VALUES ($1, $2, $3, $4)
			ON CONFLICT (engine, reason, hour) DO UPDATE SET statements = skipped.statements + excluded.statements`,
			r.w.name, s.Reason, Hour(s.Hour), s.Statements)
	}
	r.sample(&all)
	results, sums := r.tx.SendBatch(ctx, &all), meter{}
	_, err := results.Exec()
	for i := range r.b.Sightings {
		var first bool
		if err == nil {
			err = results.QueryRow().Scan(&first)
		}
		sums.add(&r.b.Sightings[i], first)
	}
	for range all.Len() - 1 - len(r.b.Sightings) { // the skips and the samples
		if err == nil {
			_, err = results.Exec()
		}
	}
	if err := errors.Join(err, results.Close()); err != nil {
		return err
	}
	for i := range r.b.Refused {
		sums.refuse(&r.b.Refused[i])
	}
	return r.store(ctx, sums)
}

// valid replaces what PostgreSQL does not store as text: clients choose the name of their application, in any encoding.
func valid(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "\uFFFD")
}

// storable returns an error for River, which stores its message as jsonb.
func storable(err error) error {
	if err == nil || valid(err.Error()) == err.Error() {
		return err
	}
	return errors.New(valid(err.Error()))
}

// Hour is the unit in which executions are counted over time.
func Hour(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }
