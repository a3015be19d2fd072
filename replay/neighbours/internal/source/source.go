// Package source reads the definitions of the source, or of a schema of copies: relations, columns, constraints,
// indexes, sequences, functions and types, and how the rows of each table belong to privacy units. It changes nothing.
package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Snapshot is a transaction on the source database: one snapshot, read only, with locks that prevent changes of the
// tables.
type Snapshot struct {
	Conn    *pgx.Conn
	Tx      pgx.Tx
	Model   *Model
	Options *spec.Options
}

// Open connects, locks the tables with ACCESS SHARE (which blocks only changes of the tables themselves) and reads
// the model in the snapshot of the copy.
func Open(ctx context.Context, o *spec.Options) (*Snapshot, error) {
	conn, err := session.Open(ctx, o.Source, "neighbours.source")
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Conn: conn, Options: o}
	if err := s.begin(ctx); err != nil {
		s.Close(ctx)
		return nil, fmt.Errorf("read the source: %w", s.Explain(err))
	}
	return s, nil
}

// Explain adds a remedy to an error of the session.
func (s *Snapshot) Explain(err error) error { return session.Explain(&s.Conn.Config().Config, err) }

// Close ends the transaction and the session.
func (s *Snapshot) Close(ctx context.Context) { _ = s.Conn.Close(context.WithoutCancel(ctx)) }

// errChanged reports that the locked tables are not those found afterwards.
var errChanged = errors.New("the tables of the source changed while they were read: run the command again")

// sourceTries bounds how often the source is read again because its tables are altered concurrently.
const sourceTries = 5

func (s *Snapshot) begin(ctx context.Context) error {
	return s.Retry(ctx, func() error { return s.once(ctx) })
}

// Retry calls read, which begins a transaction, until it is not disturbed by concurrent changes of tables.
func (s *Snapshot) Retry(ctx context.Context, read func() error) error {
	for try := 1; ; try++ {
		err := read()
		var gone *pgconn.PgError
		if errors.As(err, &gone) && gone.Code == "XX000" && // an index is rebuilt between the snapshot and the reading of its definition
			(strings.HasPrefix(gone.Message, "cache lookup failed") || strings.HasPrefix(gone.Message, "could not open relation")) {
			err = fmt.Errorf("%w: %w", errChanged, err)
		}
		again := errors.Is(err, errChanged) || errors.As(err, &gone) && gone.Code == "42P01"
		if err == nil || !again || try == sourceTries {
			return err
		}
		if err := s.Tx.Rollback(ctx); err != nil {
			return err
		}
	}
}

// once lists the tables, locks them in a second transaction and reads the model there. Only this second reading calls
// Options.Note.
func (s *Snapshot) once(ctx context.Context) error {
	before, err := s.transaction(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.Tx.Rollback(ctx); err != nil {
		return err
	}
	after, err := s.transaction(ctx, before)
	if err != nil {
		return err
	}
	oids := func(m *Model) []uint32 {
		var out []uint32
		for _, r := range m.Relations {
			out = append(out, r.OID)
		}
		slices.Sort(out)
		return out
	}
	if !slices.Equal(oids(before), oids(after)) {
		return errChanged
	}
	s.Model = after
	return nil
}

// transaction begins the transaction, locks the tables of a model, and reads the model; without a model it only lists
// the tables.
func (s *Snapshot) transaction(ctx context.Context, lock *Model) (*Model, error) {
	if err := s.Open(ctx); err != nil {
		return nil, err
	}
	tx := s.Tx
	if lock != nil {
		for _, r := range lock.Tables() { // before the snapshot, which LOCK does not take
			if _, err := tx.Exec(ctx, "LOCK TABLE ONLY "+r.SQL()+" IN ACCESS SHARE MODE"); err != nil {
				return nil, err
			}
		}
	}
	if _, err := tx.Exec(ctx, session.Defaults(true)); err != nil { // a SELECT takes the snapshot
		return nil, err
	}
	if lock == nil {
		o := *s.Options
		o.Note = nil // only the second reading writes notes
		d := &Discovery{Ctx: ctx, Tx: tx, Options: &o, Model: &Model{}, Dependents: true}
		if err := d.Find(); err != nil {
			return nil, err
		}
		return d.Model, d.describe()
	}
	return Read(ctx, tx, s.Options, true)
}

// Open begins the transaction.
func (s *Snapshot) Open(ctx context.Context) (err error) {
	s.Tx, err = s.Conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	// With row_security off the server reports an error instead of hiding rows, which would be missing from the copy.
	// Partition pruning: see session.Defaults.
	const before = "SET LOCAL search_path TO pg_catalog; SET LOCAL row_security TO off; SET LOCAL enable_partition_pruning TO off; SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0"
	_, err = s.Tx.Exec(ctx, before, pgx.QueryExecModeSimpleProtocol)
	return err
}

// Read reads everything that is needed for the copies; with dependents also the views over the listed relations.
func Read(ctx context.Context, tx pgx.Tx, o *spec.Options, dependents bool) (*Model, error) {
	return (&Discovery{Ctx: ctx, Tx: tx, Options: o, Model: &Model{}, Dependents: dependents}).read()
}

// ReadSchema reads a whole schema of copies.
func ReadSchema(ctx context.Context, tx pgx.Tx, schema string) (*Model, error) {
	return (&Discovery{Ctx: ctx, Tx: tx, Options: &spec.Options{}, Model: &Model{}, schema: schema}).read()
}

func (d *Discovery) read() (*Model, error) {
	for _, step := range []func() error{
		d.Find, d.describe, d.columns, d.checks, d.indexes, d.foreignKeys, d.sequences, d.functions, d.statistics, d.types, d.names, d.leftOut, d.drawn, d.random,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d.Model, nil
}

// Discovery fills a model within one transaction.
type Discovery struct {
	Ctx     context.Context //nolint:containedctx // lives as long as one reading of the model
	Tx      pgx.Tx
	Options *spec.Options
	Model   *Model
	oids    []uint32

	Dependents bool
	schema     string // reads all relations and functions of this schema, not those of Options; "" = none
}

// rows runs a query whose columns are, in order, the fields of T.
func rows[T any](d *Discovery, sql string, args ...any) ([]T, error) {
	return connect.Structs[T](d.Ctx, d.Tx, sql, args...)
}

// list runs a query of one column of OIDs.
func (d *Discovery) list(sql string, args ...any) ([]uint32, error) {
	return connect.Values[uint32](d.Ctx, d.Tx, sql, args...)
}

// texts runs a query of one column of texts.
func (d *Discovery) texts(sql string, args ...any) ([]string, error) {
	return connect.Values[string](d.Ctx, d.Tx, sql, args...)
}

// Find selects the relations to copy: the protected ones, their partitions and children, and the views over them.
func (d *Discovery) Find() error {
	var err error
	if d.Model.Database, err = connect.Value[string](d.Ctx, d.Tx, "SELECT current_database()"); err != nil {
		return err
	}
	if d.schema != "" {
		d.oids, err = d.list("SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1", ident.Quote(d.schema))
		return err
	}
	listed, err := d.lookUp(d.Options.Protected)
	if err != nil {
		return err
	}
	var missing []error
	for i, oid := range listed {
		if oid == 0 {
			missing = append(missing, fmt.Errorf("table %s does not exist in the source database %s: correct privacy.protected", d.Options.Protected[i], d.Model.Database))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return err
	}
	tables, err := d.list(`WITH RECURSIVE t(oid) AS (SELECT unnest($1::oid[]) UNION
		SELECT i.inhrelid FROM pg_inherits i JOIN t ON i.inhparent = t.oid) SELECT oid FROM t`, listed)
	if err != nil {
		return err
	}
	if !d.Dependents {
		d.oids = tables
		return nil
	}
	views, err := d.views(tables, listed)
	d.oids = append(tables, views...)
	return err
}

// lookUp returns the OIDs of relations, 0 for one that does not exist.
func (d *Discovery) lookUp(tables []ident.Table) ([]uint32, error) {
	var schemas, names []string
	for _, t := range tables {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	return d.list(`SELECT coalesce(c.oid, 0)::oid
		FROM unnest($1::text[], $2::text[]) WITH ORDINALITY t(s, n, i)
		LEFT JOIN pg_namespace ns ON ns.nspname = t.s
		LEFT JOIN pg_class c ON c.relnamespace = ns.oid AND c.relname = t.n ORDER BY t.i`, schemas, names)
}

// viewReads returns the pairs (view, relation that it reads) for a list of views.
const viewReads = `SELECT DISTINCT w.ev_class, d.refobjid, n.nspname, c.relname, v.relname
	FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
	AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class
	JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_class v ON v.oid = w.ev_class
	WHERE w.ev_type = '1' AND c.relkind <> 'c' AND w.ev_class = ANY($1::oid[]) ORDER BY 1, 2`

// viewRead is one row of viewReads.
type viewRead struct {
	View, Read             uint32
	Schema, Name, ViewName string
}

// views returns the views over the tables that read only copied and public relations. A listed view that reads
// something else is a fault; any other is left out.
func (d *Discovery) views(tables, listed []uint32) ([]uint32, error) {
	public, err := d.lookUp(d.Options.Public)
	if err != nil {
		return nil, err
	}
	views, err := d.list(`WITH RECURSIVE v(oid) AS (SELECT unnest($1::oid[]) UNION
		SELECT w.ev_class FROM v JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = v.oid
		JOIN pg_rewrite w ON w.oid = d.objid AND d.classid = 'pg_rewrite'::regclass AND w.ev_type = '1')
		SELECT c.oid FROM v JOIN pg_class c USING (oid) WHERE c.relkind IN ('v', 'm') AND c.oid <> ALL($2::oid[])
		ORDER BY 1`, tables, public)
	if err != nil {
		return nil, err
	}
	reads, err := rows[viewRead](d, viewReads, views)
	if err != nil {
		return nil, err
	}
	for {
		known := slices.Concat(tables, views, public)
		var faults []error
		var out uint32
		for _, r := range reads {
			switch {
			case out != 0 || slices.Contains(known, r.Read) || r.Schema == "pg_catalog" || r.Schema == "information_schema":
			case slices.Contains(listed, r.View):
				faults = append(faults, fmt.Errorf("view %s reads %s.%s, which is neither in privacy.protected nor in privacy.public: list it in one of them", r.ViewName, r.Schema, r.Name))
			default:
				d.Options.Notef("view %s is not copied: it reads %s.%s, which is neither protected nor public", r.ViewName, r.Schema, r.Name)
				out = r.View
			}
		}
		if err := errors.Join(faults...); err != nil {
			return nil, err
		}
		if out == 0 {
			return slices.DeleteFunc(views, func(v uint32) bool { return slices.Contains(tables, v) }), nil
		}
		views = slices.DeleteFunc(views, func(v uint32) bool { return v == out })
		reads = slices.DeleteFunc(reads, func(r viewRead) bool { return r.View == out })
	}
}
