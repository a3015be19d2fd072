// Package read reads the catalog of a PostgreSQL database.
//
// In: a connection string. Out: a catalog.Catalog, plain data, of one moment: it is read in one read-only transaction
// with one snapshot. Schemas answers one question in the caller's session. The package reads only catalogs, and works
// for any role that may connect.
package read

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// ApplicationName identifies the reader in pg_stat_activity.
const ApplicationName = "dpwatch-catalog"

// MaxRows bounds every list: a larger database is not read at all, rather than in part.
const MaxRows = 500_000

// Catalog connects, reads the catalog and disconnects, within timeout. Errors do not quote the connection string;
// server messages are withheld (withheld.Reveal shows them).
func Catalog(ctx context.Context, dsn string, timeout time.Duration) (*catalog.Catalog, error) {
	cfg, err := connect.Parse(dsn, connect.Options{Application: ApplicationName, Timeout: timeout, ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("read the catalog: the string %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	where := "read the catalog of " + connect.Where(cfg)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, sqlstate.Withhold(err))
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was written
	r := &reader{ctx: ctx}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		r.tx = tx
		return r.read()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, sqlstate.Withhold(err))
	}
	return &r.catalog, nil
}

// Defaults returns a function that reads Catalog.Defaults alone, within timeout. It keeps its connection, and is not safe
// for concurrent use.
func Defaults(dsn string, timeout time.Duration) func(context.Context) ([]catalog.Default, error) {
	var conn *pgx.Conn
	return func(ctx context.Context) ([]catalog.Default, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = connect.Open(ctx, dsn, connect.Options{Application: ApplicationName, Timeout: timeout, ReadOnly: true}); err != nil {
				conn = nil
				return nil, fmt.Errorf("read the initial settings: %w", err)
			}
		}
		r := &reader{ctx: ctx}
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			r.tx = tx
			return r.defaults()
		})
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
			conn = nil
			return nil, fmt.Errorf("read the initial settings: %w", sqlstate.Withhold(err))
		}
		return r.catalog.Defaults, nil
	}
}

// reader fills a catalog within one transaction.
type reader struct {
	ctx     context.Context //nolint:containedctx // lives as long as one Catalog call
	tx      pgx.Tx
	catalog catalog.Catalog
}

// defaults reads the initial settings of sessions.
func (r *reader) defaults() error {
	if err := r.serverPath(); err != nil {
		return err
	}
	if _, err := r.tx.Exec(r.ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
		return err
	}
	return r.settings()
}

func (r *reader) read() error {
	if err := r.serverPath(); err != nil { // before this session sets its own search_path
		return fmt.Errorf("settings: %w", err)
	}
	// Every name below is looked up only in pg_catalog, so that no user-defined function can be called instead.
	if _, err := r.tx.Exec(r.ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
		return err
	}
	if err := r.tx.QueryRow(r.ctx, "SELECT current_database()").Scan(&r.catalog.Database); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		read func() error
	}{
		{"schemas", r.schemas},
		{"relations", r.relations},
		{"functions", r.functions},
		{"operators", r.operators},
		{"types", r.types},
		{"casts", r.casts},
		{"event triggers", r.eventTriggers},
		{"settings", r.settings},
		{"privileges", r.denied},
		{"security labels", r.labels},
		{"system catalogs", r.system},
		{"built-in functions", r.unlisted},
	} {
		if err := step.read(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// each runs a query, and for every row scans the values and calls do.
func (r *reader) each(sql string, do func() error, values ...any) error {
	rows, err := r.tx.Query(r.ctx, sql)
	if err != nil {
		return err
	}
	n := 0
	_, err = pgx.ForEachRow(rows, values, func() error {
		if n++; n > MaxRows {
			return fmt.Errorf("more than %d rows", MaxRows)
		}
		return do()
	})
	return err
}

// add returns a function for each that appends the scanned value to a list.
func add[T any](to *[]T, value *T) func() error {
	return func() error {
		*to = append(*to, *value)
		return nil
	}
}

// list is a query that returns oid, schema and name, and the list of the object with that oid to which the name
// belongs.
type list[T any] struct {
	sql string
	of  func(*T) *[]catalog.Table
}

// fill runs queries and appends each name to its list, if its object is in places.
func fill[T any](r *reader, objects []T, places map[uint32]int, lists ...list[T]) error {
	for _, l := range lists {
		var oid uint32
		var t catalog.Table
		err := r.each(l.sql, func() error {
			if i, ok := places[oid]; ok {
				to := l.of(&objects[i])
				*to = append(*to, t)
			}
			return nil
		}, &oid, &t.Schema, &t.Name)
		if err != nil {
			return err
		}
	}
	return nil
}
