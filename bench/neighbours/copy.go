package neighbours

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
)

// transfer streams the rows of a query into a table of another database.
func transfer(ctx context.Context, source, target *pgx.Conn, query, table string) error {
	r, w := io.Pipe()
	go func() {
		_, err := source.PgConn().CopyTo(ctx, w, "COPY ("+query+") TO STDOUT (FORMAT binary)")
		_ = w.CloseWithError(err)
	}()
	_, err := target.PgConn().CopyFrom(ctx, r, "COPY "+table+" FROM STDIN (FORMAT binary)")
	_ = r.CloseWithError(io.ErrClosedPipe)
	return err
}
