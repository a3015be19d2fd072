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

// Plan selects the method and prepares the statements.
func (b *Builder) Plan() error {
	rows, bytes, copies := int64(0), b.Model.Bytes(), len(b.Options.Schemas())
	for _, r := range b.Model.Relations {
		if r.Stores() {
			rows += r.Rows
		}
	}
	b.method = b.Options.Method
	if b.method == spec.Auto {
		b.method = spec.Copy
		if b.Options.Relation == spec.Remove && bytes*int64(copies) > b.Options.CopyLimit {
			b.method = spec.View
			b.Options.Notef("%d copies of %d MiB would pass neighbours.copy_limit: neighbours are views over d0", copies, bytes>>20)
		}
	}
	if b.method != spec.View {
		rows *= int64(copies)
	}
	b.staging, b.progress = &staging{options: b.Options}, &progress{options: b.Options, total: rows}
	b.objects = &objects{
		db: b.DB, options: b.Options, model: b.Model, method: b.method, d: ddl.Define(b.Model), names: ddl.NewNames(b.Model),
		staging: b.staging, progress: b.progress,
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
		b.objects.names.Functions[f.Table] = f.Copy
	}
	for _, f := range left {
		if _, ok := b.objects.names.Functions[f.Table]; ok {
			kept = append(kept, f)
		}
	}
	b.Model.Functions = kept
	return nil
}

// makeD0 creates D0 and copies the rows into it, in one transaction.
func (b *Builder) makeD0(ctx context.Context, src *source.Snapshot) error {
	return pgx.BeginFunc(ctx, b.Conn, func(tx pgx.Tx) error {
		if err := b.objects.start(ctx, tx, 0); err != nil {
			return err
		}
		if err := b.objects.run(ctx, tx, 0, b.objects.d.Tables); err != nil {
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
		return b.objects.finish(ctx, tx, 0)
	})
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
	in := fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT %s)", b.staging.in(0, b.Model.Entrance(r)), columns, format)
	pr, pw := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := src.Conn.PgConn().CopyTo(ctx, pw, out)
		_ = pw.CloseWithError(err) // nil ends the stream
		read <- err
	}()
	before, counted := b.progress.done.Load(), int64(0)
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, &meter{r: pr, each: func(bytes int64) {
		counted = min(r.Rows, r.Rows*bytes/max(r.Bytes, 1)) // the table is somewhat larger than its rows
		b.Options.ReportProgress("copy "+r.Name, before+counted, b.progress.total)
	}}, in)
	_ = pr.CloseWithError(errors.New("the copy ended"))
	if readErr := <-read; readErr != nil && (err == nil || isAborted(err)) {
		err = fmt.Errorf("read from the source: %w", src.Explain(readErr))
	}
	if err != nil {
		return err
	}
	b.progress.done.Add(tag.RowsAffected())
	b.progress.report("copy " + r.Name)
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
