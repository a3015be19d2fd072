package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

//go:embed migrations/*.sql
var files embed.FS

// versions is the table of applied migrations, in the ledger's schema.
const versions = "migrations"

// DefaultSchema is the schema of a ledger whose configuration names none.
const DefaultSchema = "dpwatch_ledger"

// Errors of Open.
var (
	ErrNotMigrated = errors.New("the ledger's schema is missing or older than this program: run `dpwatch migrate`, or set ledger.migrate: true")
	ErrFormer      = errors.New("the ledger was written by dpwatch 0.1.0 or earlier and cannot be upgraded")
	ErrNewer       = errors.New("the ledger was written by a newer version of dpwatch: upgrade this program, or give it another ledger")
)

// Options say where a ledger is.
type Options struct {
	DSN    string // of the role that owns the schema, or may create it
	Schema string // "" = DefaultSchema
	// Connections bounds the pool; 0 = pgx's default.
	Connections int32
	// Withhold is true if captured statements and their parameters are not stored.
	Withhold bool
}

// ErrWithheld means that statements are not stored.
var ErrWithheld = errors.New("statements are not stored: ledger.statements is withheld")

// Ledger is an open ledger. It is safe for concurrent use.
type Ledger struct {
	Alerts  *Alerts
	Workers *Workers
	Actions *Actions

	pool     *pgxpool.Pool
	schema   string
	withhold bool // statements are not stored
	queue    *queue
}

// config returns the pool's configuration: names are resolved in the ledger's schema alone.
func (o Options) config() (*pgxpool.Config, string, error) {
	schema := o.Schema
	if schema == "" {
		schema = DefaultSchema
	}
	c, err := pgxpool.ParseConfig(o.DSN)
	if err != nil {
		return nil, "", errors.New("ledger.dsn is not a connection string")
	}
	for name, value := range map[string]string{
		"search_path": ident.Quote(schema), "application_name": "dpwatch ledger",
		"TimeZone": "UTC", "statement_timeout": "60s", "idle_in_transaction_session_timeout": "120s",
	} {
		c.ConnConfig.RuntimeParams[name] = value
	}
	connect.DetectLoss(&c.ConnConfig.Config)
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connect.DefaultTimeout
	}
	if o.Connections > 0 {
		c.MaxConns = o.Connections
	}
	return c, schema, nil
}

// Open connects to a ledger and checks its version. It returns ErrNotMigrated or ErrNewer, wrapped, if the version is
// not the one that this program writes, and the driver's error if the server cannot be reached.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	c, schema, err := o.config()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", sqlstate.Withhold(err))
	}
	l := &Ledger{pool: pool, schema: schema, withhold: o.Withhold, queue: &queue{pool: pool, schema: schema, times: defaultJobTimes}}
	l.Alerts, l.Workers, l.Actions = &Alerts{pool, l.queue}, &Workers{pool, l.queue, l.engine}, &Actions{pool}
	if err := l.check(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("ledger in schema %s: %w", schema, sqlstate.Withhold(err))
	}
	return l, nil
}

// Close closes all connections.
func (l *Ledger) Close() { l.pool.Close() }

// check compares the schema's version with the newest migration of this program.
func (l *Ledger) check(ctx context.Context) error {
	have, err := version(func(sql string, args ...any) scanner { return l.pool.QueryRow(ctx, sql, args...) }, l.schema)
	if err != nil {
		return err
	}
	_, want, err := known()
	if err == nil && have < want {
		err = ErrNotMigrated
	}
	return err
}

// scanner is a row of either driver.
type scanner interface{ Scan(...any) error }

// version returns the version of the ledger in a schema; 0 = there is none. It is an error if this program can neither
// use the ledger nor upgrade it.
func version(row func(sql string, args ...any) scanner, schema string) (have int64, err error) {
	table := ident.Quote(schema) + "." + versions
	var there bool
	if err := row("SELECT to_regclass($1) IS NOT NULL", table).Scan(&there); err != nil || !there {
		return 0, err
	}
	if err := row("SELECT coalesce(max(version_id), 0) FROM " + table + " WHERE is_applied").Scan(&have); err != nil {
		return 0, err
	}
	first, last, err := known()
	switch {
	case err != nil:
		return have, err
	case have > 0 && have < first:
		return have, fmt.Errorf("%w (its version is %d, this program begins at %d): keep it with the former program and give this one another schema (ledger.schema), or give it up with DROP SCHEMA %s CASCADE; evidence, findings, acceptances and budgets begin again",
			ErrFormer, have, first, ident.Quote(schema))
	case have > last:
		return have, fmt.Errorf("%w (its version is %d, this program's is %d)", ErrNewer, have, last)
	}
	return have, nil
}

// known returns the versions of the first and the last migration in this program.
func known() (first, last int64, err error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return 0, 0, errors.Join(err, errors.New("no migrations in this program"))
	}
	if first, err = goose.NumericComponent(names[0]); err == nil {
		last, err = goose.NumericComponent(names[len(names)-1])
	}
	return first, last, err
}

// Migrate creates the schema or brings it to this program's version. Several processes may call it at once. It returns
// the versions before and after. A ledger that this program cannot upgrade is left alone, with ErrFormer or ErrNewer.
func Migrate(ctx context.Context, o Options) (from, to int64, err error) {
	c, schema, err := o.config()
	if err != nil {
		return 0, 0, err
	}
	c.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	db := stdlib.OpenDB(*c.ConnConfig)
	defer db.Close() //nolint:errcheck // the result is known by then
	// One migration at a time: goose takes no lock here, and two CREATE SCHEMA at once can fail.
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("ledger: %w", sqlstate.Withhold(err))
	}
	defer conn.Close() //nolint:errcheck // likewise
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(hashtextextended('dpwatch ledger ' || $1, 0))", schema); err != nil {
		return 0, 0, fmt.Errorf("ledger: %w", sqlstate.Withhold(err))
	}
	from, err = version(func(sql string, args ...any) scanner { return conn.QueryRowContext(ctx, sql, args...) }, schema)
	if err != nil {
		return from, from, fmt.Errorf("ledger in schema %s: %w", schema, sqlstate.Withhold(err))
	}
	if _, err := conn.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+ident.Quote(schema)); err != nil {
		return 0, 0, fmt.Errorf("ledger: create schema %s (its role needs CREATE on the database, or to own the schema): %w", schema, sqlstate.Withhold(err))
	}
	if err := migrateQueue(ctx, c, schema); err != nil { // before the version that promises it
		return 0, 0, fmt.Errorf("ledger: create the job queue: %w", sqlstate.Withhold(err))
	}
	to, err = migrate(ctx, db)
	return from, to, err
}

func migrate(ctx context.Context, db *sql.DB) (to int64, err error) {
	store, err := database.NewStore(database.DialectPostgres, versions)
	if err != nil {
		return 0, err
	}
	root, err := fs.Sub(files, "migrations")
	if err != nil {
		return 0, err
	}
	p, err := goose.NewProvider("", db, root, goose.WithStore(store))
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", sqlstate.Withhold(err))
	}
	if _, err := p.Up(ctx); err != nil {
		return 0, fmt.Errorf("ledger: migrate: %w", sqlstate.Withhold(err))
	}
	return p.GetDBVersion(ctx)
}

// CheckHidden returns an error if a role can read the ledger: what clients send is replayed as the replay role, and a
// crafted query must not reach the ledger.
func (l *Ledger) CheckHidden(ctx context.Context, role string) error {
	var usage, super bool
	err := l.pool.QueryRow(ctx, "SELECT has_schema_privilege(rolname, $2, 'USAGE'), rolsuper FROM pg_roles WHERE rolname = $1", role, l.schema).Scan(&usage, &super)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // the role is of another server
	case err != nil:
		return fmt.Errorf("ledger: rights of role %s: %w", role, sqlstate.Withhold(err))
	case super:
		return fmt.Errorf("role %s of shadow.dsn is a superuser and can read the ledger in schema %s: replay with a role that is not", role, l.schema)
	case usage:
		return fmt.Errorf("role %s of shadow.dsn has USAGE on schema %s and can read the ledger: REVOKE USAGE ON SCHEMA %s FROM %s, or keep the ledger in another database (ledger.dsn)",
			role, l.schema, ident.Quote(l.schema), ident.Quote(role))
	}
	return nil
}
