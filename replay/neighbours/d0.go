package neighbours

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// progressCount counts rows over all workers.
type progressCount struct{ rows atomic.Int64 }

func (p *progressCount) load() int64 { return p.rows.Load() }

// total returns an estimate of the rows that are written for the set.
func (b *builder) total() int64 {
	if b.method == View {
		return b.rows
	}
	return b.rows * int64(len(b.o.D1)+1)
}

// plan selects the method and prepares the statements.
func (b *builder) plan() error {
	var bytes int64
	for _, r := range b.m.relations {
		if r.stores() {
			b.rows += r.rows
		}
		bytes += r.bytes
	}
	b.d, b.names = define(b.m), newNames(b.m)
	b.method = b.o.Method
	if b.method == Auto {
		b.method = Copy
		if b.o.Relation == Remove && bytes*int64(len(b.o.D1)+1) > b.o.CopyLimit {
			b.method = View
			b.o.note("%d copies of %d MiB would pass neighbours.copy_limit: neighbours are views over d0", len(b.o.D1)+1, bytes>>20)
		}
	}
	return b.planFunctions()
}

// planFunctions keeps the SQL functions that actually read a copied table or take its rows, and can be copied, with those
// of the same name.
func (b *builder) planFunctions() error {
	var left []function
	kept := slices.DeleteFunc(b.m.functions, func(f function) bool {
		if f.body == "" { // BEGIN ATOMIC
			if f.why == 'n' {
				left = append(left, f)
			}
			return f.why == 'n'
		}
		_, reads, err := renameBody(f, b.m, b.o, "d0")
		if err != nil {
			b.o.note("function %s is not copied: its body cannot be pointed at a copy: %v", f.Table, err)
			return true
		}
		if !reads && f.why != 'r' {
			left = append(left, f)
			return true
		}
		return false
	})
	for _, f := range kept {
		b.names.functions[f.Table] = f.copy
	}
	for _, f := range left {
		if _, ok := b.names.functions[f.Table]; ok {
			kept = append(kept, f)
		}
	}
	b.m.functions = kept
	return nil
}

// makeD0 creates D0 and copies the rows into it, in one transaction.
func (b *builder) makeD0(ctx context.Context, src *source) error {
	return pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		if err := b.start(ctx, tx, 0); err != nil {
			return err
		}
		if err := b.run(ctx, tx, 0, b.d.tables); err != nil {
			return err
		}
		for _, r := range b.m.tables() {
			if !r.stores() {
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
func (b *builder) start(ctx context.Context, tx pgx.Tx, world int) error {
	if _, err := tx.Exec(ctx, "CREATE SCHEMA "+ident.Quote(b.stage(world))); err != nil {
		return err
	}
	return b.run(ctx, tx, world, b.d.sequences)
}

// finish creates the objects that come after the rows.
func (b *builder) finish(ctx context.Context, tx pgx.Tx, world int) error {
	b.o.progress("index "+b.final(world), b.done.load(), b.total())
	for _, statements := range [][]statement{b.d.indexes, b.d.keys, b.d.filled} {
		if err := b.run(ctx, tx, world, statements); err != nil {
			return err
		}
	}
	return b.makeViews(ctx, tx, world)
}

// run executes definitions with the names of a world.
func (b *builder) run(ctx context.Context, tx pgx.Tx, world int, statements []statement) error {
	for _, s := range statements {
		sql, err := b.names.rename(s.sql, b.stage(world), s.defined)
		if err != nil {
			return fmt.Errorf("%s: %w", s.about, err)
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", s.about, err)
		}
	}
	return nil
}

// reads rejects a world that reads anything except itself, D0 (if it consists of views), and public tables.
func (b *builder) reads(ctx context.Context, tx pgx.Tx, world int) error {
	public := make([]string, len(b.o.Public))
	for i, t := range b.o.Public {
		public[i] = t.SQL()
	}
	allowed := []string{b.stage(world)}
	if world > 0 && b.method == View {
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
	return fmt.Errorf("a copy would not stand alone: %s", what)
}

// stream copies the rows of one table from the source with constant memory, from COPY TO to COPY FROM. It uses the binary
// format if every type is built in; user-defined types have other OIDs in another database.
func (b *builder) stream(ctx context.Context, src *source, tx pgx.Tx, r *relation) error {
	format := "binary"
	for _, c := range r.live() {
		if c.typeOID >= 16384 {
			format = "text"
		}
	}
	columns := ident.List(r.stored())
	out := fmt.Sprintf("COPY (SELECT %s FROM ONLY %s) TO STDOUT (FORMAT %s)", columns, r.SQL(), format)
	in := fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT %s)", b.in(0, b.m.entrance(r)), columns, format)
	pr, pw := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := src.conn.PgConn().CopyTo(ctx, pw, out)
		_ = pw.CloseWithError(err) // nil ends the stream
		read <- err
	}()
	before, counted := b.done.load(), int64(0)
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, &meter{r: pr, each: func(bytes int64) {
		counted = min(r.rows, r.rows*bytes/max(r.bytes, 1)) // the table is somewhat larger than its rows
		b.o.progress("copy "+r.Name, before+counted, b.total())
	}}, in)
	_ = pr.CloseWithError(errors.New("the copy ended"))
	if readErr := <-read; readErr != nil && (err == nil || isAborted(err)) {
		err = fmt.Errorf("read from the source: %w", readErr)
	}
	if err != nil {
		return err
	}
	b.done.rows.Add(tag.RowsAffected())
	b.o.progress("copy "+r.Name, b.done.load(), b.total())
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
	bytes, told int64
	each        func(bytes int64)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.bytes += int64(n)
	if m.bytes-m.told >= 4<<20 {
		m.told = m.bytes
		m.each(m.bytes)
	}
	return n, err
}
