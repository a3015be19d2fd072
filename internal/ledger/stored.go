package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// Find returns the stored form of an audit of an engine; false if there is none.
func (l *Ledger) Find(ctx context.Context, engine, key string) (Audit, bool, error) {
	return l.engine(engine).Audits.Find(ctx, key)
}

// storedRows bounds the users and events of a read.Stored.
const storedRows = 20

// Stored returns the queries of all engines whose keys begin with prefix, at most the given number.
func (l *Ledger) Stored(ctx context.Context, prefix string, most int) ([]read.Stored, error) {
	return l.stored(ctx, "starts_with(q.key, $1)", prefix, most)
}

// storedColumns are the columns of a read.Stored, of rows q of queries and a of audits, for collectStored.
const storedColumns = `q.id, q.key, q.engine, q.fingerprint, q.summary, q.epsilon, q.delta, q.claim_curve, q.claim_source, q.claim_rule, q.executions,
	(SELECT coalesce(sum(h.executions), 0) FROM query_hours h WHERE h.query = q.id AND h.hour > now() - interval '24 hours')::bigint, q.first_seen, q.last_seen,
	coalesce(a.state, ''), coalesce(a.verdict, ''), coalesce(a.trials, 0), a.epsilon_lower, coalesce(a.processes, 0), a.violation, coalesce(a.data_epoch, ''), coalesce(a.engine_epoch, ''), q.destinations`

// collectStored reads rows of storedColumns and closes them, then reads the acceptances. ids are those of the queries.
func collectStored(ctx context.Context, tx pgx.Tx, rows pgx.Rows) (found []read.Stored, ids []int64, err error) {
	var id int64
	var s read.Stored
	if _, err = pgx.ForEachRow(rows, []any{
		&id, &s.Key, &s.Engine, &s.Fingerprint, &s.Summary, &s.Epsilon, &s.Delta, &s.Curve, &s.Source, &s.Rule, &s.Executions, &s.LastDay, &s.FirstSeen, &s.LastSeen,
		&s.State, &s.Verdict, &s.Trials, &s.Lower, &s.Begun, (*[]byte)(&s.Violation), &s.DataEpoch, &s.EngineEpoch, &s.Destinations,
	}, func() error {
		ids, found = append(ids, id), append(found, s)
		return nil
	}); err != nil {
		return nil, nil, err
	}
	rows, err = tx.Query(ctx, "SELECT query, at, operator, role, action, reason, until FROM "+decisions+" d WHERE query = ANY ($1) AND action = 'accept'", ids)
	if err != nil {
		return nil, nil, err
	}
	place := map[int64]int{}
	for i, id := range ids {
		place[id] = i
	}
	var a read.Action
	_, err = pgx.ForEachRow(rows, []any{&id, &a.At, &a.Operator, &a.Role, &a.Action, &a.Reason, &a.Until}, func() error {
		accepted := a
		found[place[id]].Accepted = &accepted
		return nil
	})
	return found, ids, err
}

// stored returns the queries for which a condition on q (queries) and a (audits) with parameter $1 is true.
func (l *Ledger) stored(ctx context.Context, condition string, argument any, most int) ([]read.Stored, error) {
	var found []read.Stored
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT "+storedColumns+" FROM queries q LEFT JOIN audits a ON a.query = q.id WHERE "+condition+" ORDER BY q.last_seen DESC, q.id LIMIT $2", argument, most)
		if err != nil {
			return err
		}
		var ids []int64
		if found, ids, err = collectStored(ctx, tx, rows); err != nil {
			return err
		}
		for i, id := range ids {
			if found[i].Users, err = collect[read.User](ctx, tx, "SELECT username, database, application, executions, first_seen, last_seen FROM query_users WHERE query = $1 ORDER BY executions DESC LIMIT $2", id); err != nil {
				return err
			}
			if found[i].History, err = collect[read.Event](ctx, tx, "SELECT at, state, verdict, reason FROM events WHERE query = $1 ORDER BY id DESC LIMIT $2", id); err != nil {
				return err
			}
			if found[i].Actions, err = collect[read.Action](ctx, tx, "SELECT at, operator, role, action, reason, until FROM actions WHERE query = $1 ORDER BY id DESC LIMIT $2", id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ledger: read an audit: %w", sqlstate.Withhold(err))
	}
	return found, nil
}

func collect[T any](ctx context.Context, tx pgx.Tx, sql string, id int64) ([]T, error) {
	rows, err := tx.Query(ctx, sql, id, storedRows)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
