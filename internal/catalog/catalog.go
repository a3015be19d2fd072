// Package catalog reads what rewriting needs from a PostgreSQL database's catalog.
//
// In: a connection string. Out: a rewrite.Catalog, plain data, of one moment. It owns the queries on pg_catalog; package
// rewrite interprets the results. It reads only catalogs, in one read-only transaction with one snapshot, and works for any
// role that may connect.
package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/rewrite"
)

// ApplicationName identifies the reader in pg_stat_activity.
const ApplicationName = "dpwatch-catalog"

// MaxRows bounds every list: a larger database is not read at all, rather than in part.
const MaxRows = 500_000

// Read connects, reads the catalog and disconnects, within timeout. Errors do not quote the connection string; server
// messages are withheld (withheld.Reveal shows them).
func Read(ctx context.Context, dsn string, timeout time.Duration) (*rewrite.Catalog, error) {
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

// reader fills a catalog within one transaction.
type reader struct {
	ctx     context.Context //nolint:containedctx // lives as long as one Read
	tx      pgx.Tx
	catalog rewrite.Catalog
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
		{"settings", r.settings},
		{"privileges", r.denied},
	} {
		if err := step.read(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// rows runs a query and calls each for every row.
func (r *reader) rows(sql string, each func(pgx.Rows) error) error {
	rows, err := r.tx.Query(r.ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		if n == MaxRows {
			return fmt.Errorf("more than %d rows", MaxRows)
		}
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
