package connect

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection or a transaction.
type Conn interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Run executes statements in order, up to the first that fails.
func Run(ctx context.Context, conn Conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// Value returns the result of a query of one row and one column. The error is pgx.ErrNoRows if there is no row.
func Value[T any](ctx context.Context, conn Conn, sql string, args ...any) (value T, err error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return value, err
	}
	return pgx.CollectOneRow(rows, pgx.RowTo[T])
}

// Values returns the rows of a query of one column.
func Values[T any](ctx context.Context, conn Conn, sql string, args ...any) ([]T, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// Structs returns the rows of a query whose columns are, in order, the fields of T.
func Structs[T any](ctx context.Context, conn Conn, sql string, args ...any) ([]T, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
