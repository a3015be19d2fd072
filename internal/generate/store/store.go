// Package store writes generated tables to files or to a database.
//
// In: tables of package generate. Out: one CSV file or one table of PostgreSQL for each. Nothing that exists is
// replaced.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/generate"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Files writes each table to NAME.csv in a directory, which it creates, and returns the paths. If it fails or the
// context ends, the files that it created are removed.
func Files(ctx context.Context, dir string, tables []generate.Table) (paths []string, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	defer func() {
		if err != nil {
			for _, path := range paths {
				_ = os.Remove(path)
			}
			paths = nil
		}
	}()
	for _, t := range tables {
		path := filepath.Join(dir, t.Name+".csv")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640) // #nosec G304 -- the user names the directory
		if errors.Is(err, fs.ErrExist) {
			return paths, fmt.Errorf("generate: %s exists and is not replaced: remove it or name another directory", path)
		}
		if err != nil {
			return paths, fmt.Errorf("generate: %w", err)
		}
		paths = append(paths, path)
		if err := errors.Join(t.WriteCSV(interruptible{ctx, f}), f.Close()); err != nil {
			return paths, fmt.Errorf("generate %s: %w", path, err)
		}
	}
	return paths, nil
}

// interruptible is a writer that fails when the context has ended.
type interruptible struct {
	ctx context.Context
	io.Writer
}

func (w interruptible) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// Database creates the tables in a schema, fills them by COPY and analyzes them, in one transaction. The schema is
// created if it is absent. It returns the number of rows of each table. A table that exists is an error, and then
// nothing is changed.
func Database(ctx context.Context, conn *pgx.Conn, schema string, tables []generate.Table) (rows []int64, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := prepare(ctx, tx, schema); err != nil {
			return err
		}
		for _, t := range tables {
			var found bool
			name := ident.Quote(schema, t.Name)
			if err := tx.QueryRow(ctx, "select to_regclass($1) is not null", name).Scan(&found); err != nil {
				return fmt.Errorf("table %s.%s: %w", schema, t.Name, err)
			}
			if found {
				return fmt.Errorf("table %s.%s exists and is not replaced: drop it or choose another schema", schema, t.Name)
			}
			n, err := fill(ctx, tx, name, t)
			if err != nil {
				return fmt.Errorf("table %s.%s: %w", schema, t.Name, err)
			}
			rows = append(rows, n)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	return rows, nil
}

// prepare makes the schema exist and makes it the first of the search path: the types of columns refer to tables by
// their names alone.
func prepare(ctx context.Context, tx pgx.Tx, schema string) error {
	quoted := ident.Quote(schema)
	var exists bool
	if err := tx.QueryRow(ctx, "select exists (select from pg_catalog.pg_namespace where nspname = $1)", schema).Scan(&exists); err != nil {
		return fmt.Errorf("schema %s: %w", schema, err)
	}
	if !exists {
		if _, err := tx.Exec(ctx, "create schema "+quoted); err != nil {
			return fmt.Errorf("schema %s: %w", schema, err)
		}
	}
	_, err := tx.Exec(ctx, "set local search_path to "+quoted)
	return err
}

// fill creates a table and copies its rows.
func fill(ctx context.Context, tx pgx.Tx, name string, t generate.Table) (int64, error) {
	definitions := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		definitions[i] = ident.Quote(c.Name) + " " + c.SQL
	}
	if _, err := tx.Exec(ctx, "create table "+name+" ("+strings.Join(definitions, ", ")+")"); err != nil {
		return 0, err
	}
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		writer.CloseWithError(t.WriteCSV(writer))
	}()
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, reader, "copy "+name+" from stdin with (format csv, header)")
	_ = reader.Close() // ends the writer if the server stopped reading
	<-done
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "analyze "+name)
	return tag.RowsAffected(), err
}
