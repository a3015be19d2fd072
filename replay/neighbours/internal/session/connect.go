// Package session opens sessions in the source and the shadow database, and explains errors of the server.
package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// Open opens a session. what is the configuration key that errors name; they never quote the connection string.
func Open(ctx context.Context, dsn, what string) (*pgx.Conn, error) {
	cfg, err := connect.Parse(dsn, connect.Options{Application: applicationName})
	if err != nil {
		return nil, fmt.Errorf("%s %w", what, err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // statements differ every time, so preparing them saves nothing
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		if remedy := connect.Remedy(&cfg.Config, err); remedy != "" {
			return nil, &explained{fmt.Errorf("connect to %s (%s): %w", what, connect.Where(cfg), err), remedy}
		}
		return nil, fmt.Errorf("connect to %s (%s): %w", what, connect.Where(cfg), err)
	}
	return conn, nil
}

// Defaults resets, in a session or (local) in a transaction only, settings of the role or the database that would end a
// long command, change how definitions print, or change text forms (money's digits depend on lc_monetary). It also
// turns off partition pruning, which drops partitions that have matching rows: PostgreSQL before 15.20, and 18.4, never
// scan a DEFAULT partition that is itself partitioned by a range of the column by which a table above it is partitioned
// by list, whatever the condition. Settings that the server's version does not have are skipped.
func Defaults(local bool) string { return fmt.Sprintf(sessionDefaultsSQL, local) }

const sessionDefaultsSQL = `SELECT pg_catalog.set_config(name, value, %t) FROM (VALUES ('statement_timeout', '0'), ('lock_timeout', '0'),
	('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'), ('transaction_timeout', '0'),
	('standard_conforming_strings', 'on'), ('quote_all_identifiers', 'off'), ('row_security', 'off'), ('synchronize_seqscans', 'off'),
	('extra_float_digits', '3'), ('datestyle', 'iso'), ('intervalstyle', 'postgres'), ('lc_monetary', 'C'), ('bytea_output', 'hex'),
	('xmloption', 'content'), ('array_nulls', 'on'), ('default_transaction_isolation', 'read committed'),
	('enable_partition_pruning', 'off')) s(name, value)
	WHERE name IN (SELECT lower(p.name) FROM pg_catalog.pg_settings p)`

// Explain adds a remedy to server errors that users meet. It does not quote the detail of an error, which may quote
// rows. cfg is the configuration of the session that met the error.
func Explain(cfg *pgconn.Config, err error) error {
	var e *pgconn.PgError
	var done *explained
	if errors.As(err, &done) || !errors.As(err, &e) {
		return err
	}
	hint := ""
	switch {
	case e.Code == "42501":
		hint = connect.Denied(cfg, err)
	case e.Code == "53200" && strings.Contains(e.Hint, "max_"): // the lock table is full
		hint = "the server's lock table is too small for so many tables, partitions and indexes: " + e.Hint
	case e.Code == "22021" || e.Code == "22P05":
		hint = "the shadow database cannot hold the source's text: create it with the source's encoding, or correct the rows that are invalid in the source's own encoding"
	case e.Code == "53100" || e.Code == "53200" || e.Code == "58030":
		hint = "the server has too little space for the copies: free space, request fewer neighbours, or set neighbours.method to view"
	case e.Code == "42P01" && strings.Contains(e.Message, "relation"):
		hint = "a table was dropped during the command, or a definition names a table that is not copied"
	case e.Code == "42704" || e.Code == "3F000" || e.Code == "42883":
		hint = "the shadow database needs the source's extensions and the functions that definitions call, under the same names: create them in the shadow database first"
	case e.Code == "55P03" || e.Code == "40P01":
		hint = "another session holds a lock: run the command again"
	case strings.HasPrefix(e.Code, "57P"):
		hint = "the server ended the session: run the command again"
	}
	if hint == "" {
		return err
	}
	return &explained{err, hint}
}

// explained is an error with a remedy.
type explained struct {
	error
	hint string
}

func (e *explained) Error() string { return e.error.Error() + "; " + e.hint }

func (e *explained) Unwrap() error { return e.error }

// applicationName identifies this package in pg_stat_activity.
const applicationName = "dpwatch-neighbours"
