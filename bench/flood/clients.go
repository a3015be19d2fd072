package flood

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
)

// send executes every text equally often, in rounds of all texts in random order, and returns how long that took.
func send(ctx context.Context, dsn string, o Options) (time.Duration, error) {
	var queue []int
	order := rand.New(rand.NewPCG(1, 1))
	for range o.PerText {
		queue = append(queue, order.Perm(o.Texts)...)
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for first := range o.Sessions {
		group.Go(func() error {
			conn, err := pgconn.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			defer conn.Close(ctx) //nolint:errcheck // it was used
			for n := first; n < len(queue); n += o.Sessions {
				if o.Rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(float64(n) / o.Rate * float64(time.Second)))))
				}
				if err := execute(ctx, conn, text(queue[n], o.Shapes)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// execute executes a statement with the simple protocol.
func execute(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("a client's statement: %w", err)
	}
	return nil
}
