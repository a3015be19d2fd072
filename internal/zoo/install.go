package zoo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

//go:embed sql/*.sql
var files embed.FS

// Beginner begins a transaction: a *pgx.Conn or a pool.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Install creates the functions in the schema, which it creates if it does not exist. It needs a superuser (one state
// function is PostgreSQL's own C function) and PostgreSQL 13 or later. If a function with the same name and arguments
// exists, nothing is changed and the error names it.
func Install(ctx context.Context, db Beginner, schema string) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("install dp functions: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	quoted := ident.Quote(schema)
	if _, err := tx.Exec(ctx, "create schema if not exists "+quoted+"; set local search_path to "+quoted); err != nil {
		return fmt.Errorf("install dp functions into %s: %w", schema, err)
	}
	for _, name := range scripts() {
		if _, err := tx.Exec(ctx, script(name, quoted)); err != nil {
			return fmt.Errorf("install dp functions into %s: %s: %w", schema, name, err)
		}
	}
	return tx.Commit(ctx)
}

// scripts returns the names of the embedded files in order of their dependencies.
func scripts() []string {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return names
}

// script returns one file with the schema's quoted name in calls between functions.
func script(name, quoted string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return strings.ReplaceAll(string(text), "@zoo@", quoted)
}
