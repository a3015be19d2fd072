// Package shadow keeps the records of sets in the shadow database: what was created, which set is current, and what
// killed commands left behind.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// recordVersion is the version of the control schema's tables.
const recordVersion = 1

// recordTables creates the control schema's tables: a record of everything that was created, so that it can be found
// and removed in any case. The units' keys are personal data; replay roles can read only the set.
const recordTables = `
CREATE TABLE %[1]s.neighbour_version (version int NOT NULL, salt text NOT NULL);
CREATE TABLE %[1]s.neighbour_set (epoch bigint PRIMARY KEY, state text NOT NULL CHECK (state IN ('building', 'current', 'old')),
	d0 text NOT NULL, d1 text[] NOT NULL, relation text NOT NULL, method text NOT NULL, source text NOT NULL,
	tables text[] NOT NULL, made timestamptz NOT NULL DEFAULT now(), twin text NOT NULL DEFAULT '', guard text NOT NULL DEFAULT '', verified timestamptz);
CREATE UNIQUE INDEX ON %[1]s.neighbour_set (state) WHERE state = 'current';
CREATE TABLE %[1]s.neighbour_unit (epoch bigint NOT NULL, schema text NOT NULL, key text[] NOT NULL, why text NOT NULL,
	rows bigint NOT NULL, account jsonb NOT NULL DEFAULT '{}', PRIMARY KEY (epoch, schema));
CREATE TABLE %[1]s.neighbour_object (epoch bigint NOT NULL, number int NOT NULL, kind text NOT NULL, name text NOT NULL,
	PRIMARY KEY (epoch, number));
`

// DB is a session in the shadow database with the exclusive right to change its sets.
type DB struct {
	Conn    *pgx.Conn
	Options *spec.Options
}

// Open connects, takes the lock that prevents concurrent commands, and checks the records. Without records it returns
// ErrNoSet, unless build is set.
func Open(ctx context.Context, o *spec.Options, build bool) (*DB, error) {
	s := &DB{Options: o}
	var err error
	if s.Conn, err = s.Session(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, build); err != nil {
		s.Close(ctx)
		return nil, s.Explain(err)
	}
	return s, nil
}

// Explain adds a remedy to an error of the session.
func (s *DB) Explain(err error) error { return session.Explain(&s.Conn.Config().Config, err) }

// Close ends the session, which releases the lock.
func (s *DB) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.Conn.Close(ctx)
}

// Session opens a connection for building: the search path is pg_catalog, the engine's functions and the schemas of
// extensions (citext must be compared with its own operators), rows are returned in physical order, and the server
// checks whether this process still exists.
func (s *DB) Session(ctx context.Context) (*pgx.Conn, error) {
	conn, err := session.Open(ctx, s.Options.Target, "neighbours.target")
	if err != nil {
		return nil, err
	}
	path := "pg_catalog"
	if len(s.Options.FunctionPath) > 0 {
		path += ", " + ident.List(s.Options.FunctionPath)
	}
	settings := `SET check_function_bodies TO off; SET default_transaction_read_only TO off; SET synchronous_commit TO on;
		SET maintenance_work_mem TO '256MB'; SET work_mem TO '64MB'; SET client_min_messages TO warning;` + session.Defaults(false)
	if _, err = conn.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err == nil {
		_, err = conn.Exec(ctx, `SELECT set_config('search_path', $1 || coalesce((SELECT string_agg(DISTINCT ', ' || quote_ident(n.nspname), '')
			FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE o.oprname = '=' AND n.nspname <> 'pg_catalog'), ''), false)`, path)
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("neighbours.target: %w", err)
	}
	// Servers before 14, or not on Linux or macOS, do not have this setting: there the statement of a killed command
	// runs to its end.
	_, _ = conn.Exec(ctx, "SET client_connection_check_interval TO 1000", pgx.QueryExecModeSimpleProtocol)
	return conn, nil
}

// Record returns the quoted name of a table of the control schema.
func (s *DB) Record(table string) string { return ident.Quote(s.Options.Control, table) }

// prepare takes the lock and checks the records; only building can continue without them.
func (s *DB) prepare(ctx context.Context, build bool) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	exists, err := s.Exists(ctx)
	switch {
	case err != nil:
		return err
	case exists:
		return s.CheckVersion(ctx)
	case !build:
		return ErrNoSet
	}
	return nil
}

// MakeRecords creates the tables of the control schema.
func (s *DB) MakeRecords(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
		schema := ident.Quote(s.Options.Control)
		if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema+";"+fmt.Sprintf(recordTables, schema), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO "+s.Record("neighbour_version")+" VALUES ($1, gen_random_uuid()::text)", recordVersion)
		return err
	})
}

// lockPatience is how long a command waits for another to end: the server takes about a second to notice that a client
// process was killed, and many seconds on an overloaded machine.
const lockPatience = 30 * time.Second

func (s *DB) lock(ctx context.Context) error {
	for start := time.Now(); ; {
		free, err := connect.Value[bool](ctx, s.Conn, "SELECT pg_try_advisory_lock(hashtextextended('dpwatch neighbours ' || $1, 0))", s.Options.Control)
		if err != nil || free {
			return err
		}
		if time.Since(start) > lockPatience {
			return errors.New("another `dpwatch neighbours` command, or a `dpwatch audit` that makes copies anew, is using this shadow database: wait until it ends")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Exists reports whether the control schema has records.
func (s *DB) Exists(ctx context.Context) (bool, error) {
	return connect.Value[bool](ctx, s.Conn, "SELECT to_regclass($1) IS NOT NULL", s.Record("neighbour_version"))
}

// CheckVersion rejects records of another version of this package.
func (s *DB) CheckVersion(ctx context.Context) error {
	version, err := connect.Value[int](ctx, s.Conn, "SELECT version FROM "+s.Record("neighbour_version"))
	if err != nil {
		return fmt.Errorf("read the records in schema %s: %w", s.Options.Control, err)
	}
	if version != recordVersion {
		return fmt.Errorf("the records in schema %s are of version %d, and this dpwatch supports version %d: use the dpwatch that created them, or drop the set with it and create it again",
			s.Options.Control, version, recordVersion)
	}
	return nil
}

// Grant grants the replay roles the privileges to read the schemas of a set.
func (s *DB) Grant(ctx context.Context, tx pgx.Tx, schemas []string) error {
	list := ident.List(schemas)
	for _, role := range s.Options.Grant {
		to := " TO " + ident.Quote(role)
		err := connect.Run(ctx, tx, "GRANT USAGE ON SCHEMA "+list+to, "GRANT SELECT ON ALL TABLES IN SCHEMA "+list+to,
			"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "+list+to) // a default privilege may revoke it from PUBLIC
		if err != nil {
			return fmt.Errorf("grant role %s the right to read the copies: %w", role, err)
		}
	}
	return nil
}

// Begin records a set that is being built, before any of its objects is created.
func (s *DB) Begin(ctx context.Context, source string, method spec.Method, tables []string) (epoch int64, err error) {
	if err = connect.Run(ctx, s.Conn, "ALTER TABLE "+s.Record("neighbour_set")+" ADD COLUMN IF NOT EXISTS twin text NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS guard text NOT NULL DEFAULT ''",
		"ALTER TABLE "+s.Record("neighbour_unit")+" ADD COLUMN IF NOT EXISTS account jsonb NOT NULL DEFAULT '{}'"); err != nil {
		return 0, err // the records are of an earlier version
	}
	err = s.Conn.QueryRow(ctx, `INSERT INTO `+s.Record("neighbour_set")+` (epoch, state, d0, d1, relation, method, source, tables, twin, guard)
		SELECT greatest(extract(epoch FROM now())::bigint, coalesce(max(epoch), 0) + 1), 'building', $1, $2, $3, $4, $5, $6, $7, $8
		FROM `+s.Record("neighbour_set")+` RETURNING epoch`,
		s.Options.D0, s.Options.D1, string(s.Options.Relation), string(method), source, tables, s.Options.Twin, s.Options.Guard).Scan(&epoch)
	return epoch, err
}

// RemoveLeftovers removes every schema of this package that is not the current set (a killed command leaves some), and
// the types that were created for a set that was never completed.
func (s *DB) RemoveLeftovers(ctx context.Context) error {
	// A schema with such a name that is not recorded belongs to someone else.
	schemas, err := connect.Values[string](ctx, s.Conn, `SELECT n.nspname FROM pg_namespace n JOIN `+s.Record("neighbour_set")+` e
		ON EXISTS (SELECT FROM unnest($1::text[]) prefix WHERE starts_with(n.nspname, prefix || e.epoch || '_')) ORDER BY 1`, s.Options.Prefixes())
	if err != nil {
		return err
	}
	// Neighbours first: views depend on D0.
	for _, schema := range slices.Backward(schemas) {
		if err := connect.Run(ctx, s.Conn, "DROP SCHEMA IF EXISTS "+ident.Quote(schema)+" CASCADE"); err != nil {
			return fmt.Errorf("remove schema %s of an earlier set: %w", schema, err)
		}
	}
	if err := s.DropTypes(ctx, "epoch IN (SELECT epoch FROM "+s.Record("neighbour_set")+" WHERE state = 'building')"); err != nil {
		return err
	}
	return connect.Run(ctx, s.Conn,
		"DELETE FROM "+s.Record("neighbour_unit")+" WHERE epoch NOT IN (SELECT epoch FROM "+s.Record("neighbour_set")+" WHERE state = 'current')",
		"DELETE FROM "+s.Record("neighbour_set")+" WHERE state <> 'current'")
}

// DropTypes drops the recorded types and schemas that meet a condition, in reverse order of creation. One that
// something else now uses stays, with a note.
func (s *DB) DropTypes(ctx context.Context, condition string) error {
	objects, err := connect.Structs[struct {
		Epoch      int64
		Number     int
		Kind, Name string
	}](ctx, s.Conn, "SELECT epoch, number, kind, name FROM "+s.Record("neighbour_object")+" WHERE "+condition+" ORDER BY epoch DESC, number DESC")
	if err != nil {
		return err
	}
	for _, x := range objects {
		_, err := s.Conn.Exec(ctx, "DROP "+x.Kind+" IF EXISTS "+x.Name)
		var used *pgconn.PgError
		switch {
		case errors.As(err, &used) && used.Code == "2BP01":
			s.Options.Notef("%s %s is not removed: another object uses it", strings.ToLower(x.Kind), x.Name)
		case err != nil:
			return err
		}
		if _, err := s.Conn.Exec(ctx, "DELETE FROM "+s.Record("neighbour_object")+" WHERE epoch = $1 AND number = $2", x.Epoch, x.Number); err != nil {
			return err
		}
	}
	return nil
}
