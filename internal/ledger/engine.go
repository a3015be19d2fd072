package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Engine is the part of a ledger that belongs to one DP engine. One process at a time may write to it: Acquire. A
// worker may write the audit of the turn that it was given: Turn. It is safe for concurrent use.
type Engine struct {
	Audits *Audits
	Turns  *Turns

	ledger *Ledger
	w      *writer
	term   int64
	lock   *pgx.Conn // holds the advisory lock; nil = this is the Engine of a Turn or a Recorder
}

// engine returns the part of an engine without a term, whose fence is not set.
func (l *Ledger) engine(name string) *Engine {
	w := &writer{pool: l.pool, name: name, withhold: l.withhold}
	return &Engine{Audits: &Audits{w: w}, Turns: &Turns{w, l.queue}, ledger: l, w: w}
}

// Errors of an Engine.
var (
	// ErrInUse: another process audits the engine.
	ErrInUse = errors.New("another process audits this engine with the same ledger: stop it, or give each its own engine.name")
	// ErrReplaced: another process has acquired the engine since.
	ErrReplaced = errors.New("another process has taken over the audits of this engine")
)

// Acquire makes this process the only one that writes the engine's audits, until Close. It returns ErrInUse if another
// process does.
func (l *Ledger) Acquire(ctx context.Context, name string) (*Engine, error) {
	lock, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", sqlstate.Withhold(err))
	}
	e := l.engine(name)
	e.lock, e.w.fence, e.Audits.outdates = lock, e.holdsTerm, true
	if err := e.acquire(ctx); err != nil {
		_ = lock.Close(ctx)
		return nil, fmt.Errorf("ledger: engine %s: %w", name, sqlstate.Withhold(err))
	}
	return e, nil
}

func (e *Engine) acquire(ctx context.Context) error {
	if _, err := e.lock.Exec(ctx, "SET idle_in_transaction_session_timeout = 0"); err != nil {
		return err
	}
	var mine bool
	err := e.lock.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended('dpwatch engine ' || $1 || ' ' || $2, 0))", e.ledger.schema, e.w.name).Scan(&mine)
	if err == nil && !mine {
		return ErrInUse
	}
	if err != nil {
		return err
	}
	if _, err := e.lock.Exec(ctx, "LISTEN "+turnEnded); err != nil { // see WaitForTurn
		return err
	}
	// By the clock: a ledger that lost its last transactions (a crash with synchronous_commit off, a backup) must not
	// use a term again. Recorders have terms as well.
	return e.lock.QueryRow(ctx, `
		WITH e AS (
		  INSERT INTO engines (name, term) VALUES ($1, greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT max(term) + 1 FROM terms WHERE engine = $1)))
		  ON CONFLICT (name) DO UPDATE SET term = greatest(engines.term + 1, excluded.term), at = now()
		  RETURNING term)
		INSERT INTO terms (engine, term) SELECT $1, term FROM e RETURNING term`, e.w.name).Scan(&e.term)
}

// Term returns the number of the process's turn at auditing the engine.
func (e *Engine) Term() int64 { return e.term }

// Close releases the engine and closes the ledger.
func (e *Engine) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// A server may notice late that a session has ended; whoever takes over need not wait for that.
	_, _ = e.lock.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	_ = e.lock.Close(ctx)
	e.ledger.Close()
}

// holdsTerm returns ErrReplaced if another process has acquired the engine; none does until the transaction ends.
func (e *Engine) holdsTerm(ctx context.Context, tx pgx.Tx) error {
	var term int64
	if err := tx.QueryRow(ctx, "SELECT term FROM engines WHERE name = $1 FOR SHARE", e.w.name).Scan(&term); err != nil {
		return err
	}
	if term != e.term {
		return ErrReplaced
	}
	return nil
}
