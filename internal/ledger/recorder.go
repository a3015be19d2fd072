package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Process is a process that captures the queries of an engine. Configuration is a hash of what decides about audits in
// its configuration; "" = not known. Since and Seen are read only.
type Process struct {
	Host          string    `json:"host"`
	Configuration string    `json:"configuration,omitempty"`
	Since         time.Time `json:"since,omitzero"`
	Seen          time.Time `json:"seen,omitzero"` // when it last wrote to the ledger
}

// Recorder writes what a process captures while another process audits the engine. Any number of processes may have
// one. It writes batches and labels only. It is safe for concurrent use.
type Recorder struct {
	engine  *Engine
	process Process
}

// Recorder returns a Recorder of an engine, which closes the ledger at its end.
func (l *Ledger) Recorder(ctx context.Context, engine string, p Process) (*Recorder, error) {
	r := &Recorder{engine: l.engine(engine), process: p}
	// The number is above those of all terms, so that no other process has it: a collision is an error of one of the
	// two, which tries again.
	err := l.pool.QueryRow(ctx, `
		INSERT INTO terms (engine, term)
		SELECT $1, greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT max(term) + 1 FROM terms WHERE engine = $1)) RETURNING term`, engine).Scan(&r.engine.term)
	if err != nil {
		return nil, fmt.Errorf("ledger: engine %s: record for another process: %w", engine, sqlstate.Withhold(err))
	}
	r.engine.w.fence = r.seen
	return r, nil
}

// seen notes that the process exists. It never refuses a write: batches only add to counts.
func (r *Recorder) seen(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO recorders (engine, term, host, configuration) VALUES ($1, $2, $3, $4)
		ON CONFLICT (engine, term) DO UPDATE SET seen = now()`, r.engine.w.name, r.engine.term, valid(r.process.Host), r.process.Configuration)
	return err
}

// Term returns the number of the process, for its batches.
func (r *Recorder) Term() int64 { return r.engine.term }

// Record is Engine.Record. Sightings are those of the process while it audited the engine; later ones are in Queries.
func (r *Recorder) Record(ctx context.Context, b Batch) error { return r.engine.Record(ctx, b) }

// SetLabel is Engine.SetLabel.
func (r *Recorder) SetLabel(ctx context.Context, label string) error {
	return r.engine.SetLabel(ctx, label)
}

// Holder returns the process that audits the engine, and notes that this one exists.
func (r *Recorder) Holder(ctx context.Context) (p Process, err error) {
	err = r.engine.w.write(ctx, "read which process audits the engine", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT host, configuration, at FROM engines WHERE name = $1", r.engine.w.name).Scan(&p.Host, &p.Configuration, &p.Since)
	})
	return p, err
}

// Close removes the process from those that record, and closes the ledger.
func (r *Recorder) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = r.engine.ledger.pool.Exec(ctx, "DELETE FROM recorders WHERE engine = $1 AND term = $2", r.engine.w.name, r.engine.term)
	r.engine.ledger.Close()
}

// SetProcess stores which process audits the engine.
func (e *Engine) SetProcess(ctx context.Context, p Process) error {
	return e.w.write(ctx, "write which process audits the engine", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE engines SET host = $2, configuration = $3 WHERE name = $1", e.w.name, valid(p.Host), p.Configuration)
		return err
	})
}

// Recorders returns the processes that record for this one and wrote within the age, the first one first. Those that
// did not write for a day are forgotten.
func (e *Engine) Recorders(ctx context.Context, age time.Duration) (all []Process, err error) {
	err = e.w.write(ctx, "list the processes that record", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM recorders WHERE engine = $1 AND seen < now() - interval '1 day'", e.w.name); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT host, configuration, since, seen FROM recorders WHERE engine = $1 AND seen > now() - $2 * interval '1 second' ORDER BY since, term", e.w.name, age.Seconds())
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Process])
		}
		return err
	})
	return all, err
}
