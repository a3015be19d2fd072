package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// total returns an estimate of the rows that are written for the set.
func (b *Builder) total() int64 {
	if b.method == spec.View {
		return b.rows
	}
	return b.rows * int64(len(b.Options.D1)+1)
}

// Plan selects the method and prepares the statements.
func (b *Builder) Plan() error {
	var bytes int64
	for _, r := range b.Model.Relations {
		if r.Stores() {
			b.rows += r.Rows
		}
		bytes += r.Bytes
	}
	b.d, b.names = ddl.Define(b.Model), ddl.NewNames(b.Model)
	b.method = b.Options.Method
	if b.method == spec.Auto {
		b.method = spec.Copy
		if b.Options.Relation == spec.Remove && bytes*int64(len(b.Options.D1)+1) > b.Options.CopyLimit {
			b.method = spec.View
			b.Options.Notef("%d copies of %d MiB would pass neighbours.copy_limit: neighbours are views over d0", len(b.Options.D1)+1, bytes>>20)
		}
	}
	return b.planFunctions()
}

// planFunctions keeps the SQL functions that actually read a copied table or take its rows, and can be copied, with
// those of the same name.
func (b *Builder) planFunctions() error {
	var left []source.Function
	kept := slices.DeleteFunc(b.Model.Functions, func(f source.Function) bool {
		if f.Body == "" { // BEGIN ATOMIC
			if f.Why == 'n' {
				left = append(left, f)
			}
			return f.Why == 'n'
		}
		_, reads, err := ddl.RenameBody(f, b.Model, b.Options, "d0")
		if err != nil {
			b.Options.Notef("function %s is not copied: the names in its body cannot be replaced: %v", f.Table, err)
			return true
		}
		if !reads && f.Why != 'r' {
			left = append(left, f)
			return true
		}
		return false
	})
	for _, f := range kept {
		b.names.Functions[f.Table] = f.Copy
	}
	for _, f := range left {
		if _, ok := b.names.Functions[f.Table]; ok {
			kept = append(kept, f)
		}
	}
	b.Model.Functions = kept
	return nil
}

// makeD0 creates D0 and copies the rows into it, in one transaction.
func (b *Builder) makeD0(ctx context.Context, src *source.Snapshot) error {
	return pgx.BeginFunc(ctx, b.Conn, func(tx pgx.Tx) error {
		if err := b.start(ctx, tx, 0); err != nil {
			return err
		}
		if err := b.run(ctx, tx, 0, b.d.Tables); err != nil {
			return err
		}
		for _, r := range b.Model.Tables() {
			if !r.Stores() {
				continue
			}
			if err := b.stream(ctx, src, tx, r); err != nil {
				return fmt.Errorf("rows of %s: %w", r.Table, err)
			}
		}
		return b.finish(ctx, tx, 0)
	})
}

// start creates the schema and the objects that tables need.
func (b *Builder) start(ctx context.Context, tx pgx.Tx, world int) error {
	if _, err := tx.Exec(ctx, "CREATE SCHEMA "+ident.Quote(b.stage(world))); err != nil {
		return err
	}
	return b.run(ctx, tx, world, b.d.Sequences)
}

// finish creates the objects that come after the rows.
func (b *Builder) finish(ctx context.Context, tx pgx.Tx, world int) error {
	b.Options.ReportProgress("index "+b.final(world), b.done.Load(), b.total())
	for _, statements := range [][]ddl.Statement{b.d.Indexes, b.d.Keys, b.d.Filled} {
		if err := b.run(ctx, tx, world, statements); err != nil {
			return err
		}
	}
	return b.makeViews(ctx, tx, world)
}

// run executes definitions with the names of a world.
func (b *Builder) run(ctx context.Context, tx pgx.Tx, world int, statements []ddl.Statement) error {
	for _, s := range statements {
		sql, err := b.names.Rename(s.SQL, b.stage(world), s.Defined)
		if err != nil {
			return fmt.Errorf("%s: %w", s.About, err)
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", s.About, err)
		}
	}
	return nil
}

// reads rejects a world that reads anything except itself, D0 (if it consists of views), and public tables.
func (b *Builder) reads(ctx context.Context, tx pgx.Tx, world int) error {
	public := make([]string, len(b.Options.Public))
	for i, t := range b.Options.Public {
		public[i] = t.SQL()
	}
	allowed := []string{b.stage(world)}
	if world > 0 && b.method == spec.View {
		allowed = append(allowed, b.stage(0))
	}
	var what string
	err := tx.QueryRow(ctx, `SELECT format('%I reads %I.%I', o.name, n.nspname, c.relname) FROM (
		SELECT 'pg_rewrite'::regclass AS classid, w.oid, v.relname AS name FROM pg_rewrite w JOIN pg_class v ON v.oid = w.ev_class
			WHERE v.relnamespace = to_regnamespace($1)
		UNION ALL SELECT 'pg_attrdef'::regclass, x.oid, v.relname FROM pg_attrdef x JOIN pg_class v ON v.oid = x.adrelid WHERE v.relnamespace = to_regnamespace($1)
		UNION ALL SELECT 'pg_constraint'::regclass, k.oid, k.conname FROM pg_constraint k WHERE k.connamespace = to_regnamespace($1)
		UNION ALL SELECT 'pg_proc'::regclass, f.oid, f.proname FROM pg_proc f WHERE f.pronamespace = to_regnamespace($1)) o
		JOIN pg_depend d ON d.classid = o.classid AND d.objid = o.oid AND d.refclassid = 'pg_class'::regclass
		JOIN pg_class c ON c.oid = d.refobjid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind <> 'c' AND n.nspname <> ALL($2::text[]) AND n.nspname NOT IN ('pg_catalog', 'information_schema')
		AND c.oid NOT IN (SELECT to_regclass(p) FROM unnest($3::text[]) p WHERE to_regclass(p) IS NOT NULL)
		UNION ALL SELECT format('materialized view %I calls function %I, which reads tables when it runs: write its query in the view', v.relname, f.proname)
		FROM pg_class v JOIN pg_rewrite w ON w.ev_class = v.oid JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
			AND d.refclassid = 'pg_proc'::regclass JOIN pg_proc f ON f.oid = d.refobjid
		WHERE v.relkind = 'm' AND v.relnamespace = to_regnamespace($1) AND f.pronamespace = v.relnamespace AND f.prosqlbody IS NULL
		LIMIT 1`, ident.Quote(b.stage(world)), allowed, public).Scan(&what)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("a copy would depend on other schemas: %s", what)
}

// stream copies the rows of one table from the source with constant memory, from COPY TO to COPY FROM. It uses the
// binary format if every type is built in; user-defined types have other OIDs in another database.
func (b *Builder) stream(ctx context.Context, src *source.Snapshot, tx pgx.Tx, r *source.Relation) error {
	format := "binary"
	for _, c := range r.Live() {
		if c.TypeOID >= 16384 {
			format = "text"
		}
	}
	columns := ident.List(r.Stored())
	out := fmt.Sprintf("COPY (SELECT %s FROM ONLY %s) TO STDOUT (FORMAT %s)", columns, r.SQL(), format)
	in := fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT %s)", b.in(0, b.Model.Entrance(r)), columns, format)
	pr, pw := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := src.Conn.PgConn().CopyTo(ctx, pw, out)
		_ = pw.CloseWithError(err) // nil ends the stream
		read <- err
	}()
	before, counted := b.done.Load(), int64(0)
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, &meter{r: pr, each: func(bytes int64) {
		counted = min(r.Rows, r.Rows*bytes/max(r.Bytes, 1)) // the table is somewhat larger than its rows
		b.Options.ReportProgress("copy "+r.Name, before+counted, b.total())
	}}, in)
	_ = pr.CloseWithError(errors.New("the copy ended"))
	if readErr := <-read; readErr != nil && (err == nil || isAborted(err)) {
		err = fmt.Errorf("read from the source: %w", src.Explain(readErr))
	}
	if err != nil {
		return err
	}
	b.done.Add(tag.RowsAffected())
	b.Options.ReportProgress("copy "+r.Name, b.done.Load(), b.total())
	return nil
}

// isAborted reports whether a COPY ended because its input ended.
func isAborted(err error) bool {
	var e *pgconn.PgError
	return !errors.As(err, &e) || e.Code == "57014"
}

// meter reports the number of bytes read, periodically.
type meter struct {
	r           io.Reader
	bytes, last int64
	each        func(bytes int64)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.bytes += int64(n)
	if m.bytes-m.last >= 4<<20 {
		m.last = m.bytes
		m.each(m.bytes)
	}
	return n, err
}
