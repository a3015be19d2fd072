package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/showcase"
)

// client is an application that sends the same queries repeatedly, through the proxy.
type client struct {
	dsn        string
	decided    <-chan struct{} // is closed when a query has a verdict; nil = Run does not wait for that
	statements int             // succeeded, or failed as expected
	failures   int             // the others
}

// pauseBetweenRounds leaves processor time to the audits.
const pauseBetweenRounds = time.Second

// Run sends every query, each in its own session, round after round until ctx ends. It waits for the channel decided after
// the first query that is audited, whose verdict the trials of the others would delay. It counts statements that fail or
// succeed unexpectedly. It returns an error only if the proxy cannot be reached.
func (c *client) Run(ctx context.Context, queries []showcase.Query) error {
	conns := make([]*pgx.Conn, len(queries))
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close(context.WithoutCancel(ctx))
			}
		}
	}()
	for i, q := range queries {
		conn, err := c.connect(ctx, q)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		conns[i] = conn
	}
	for ctx.Err() == nil {
		for i, q := range queries {
			// Statements are not interrupted: ctx only ends the rounds.
			err := ask(context.WithoutCancel(ctx), conns[i], q)
			if (err != nil) == q.Fails {
				c.statements++
			} else {
				c.failures++
			}
			if q.WantVerdict != "" && c.decided != nil {
				select {
				case <-ctx.Done():
				case <-c.decided:
				}
			}
			if ctx.Err() != nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauseBetweenRounds):
		}
	}
	return nil
}

func (c *client) connect(ctx context.Context, q showcase.Query) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(c.dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["application_name"] = q.Name
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, sql := range q.Setup {
		if _, err := conn.Exec(ctx, sql); err != nil {
			_ = conn.Close(ctx)
			return nil, err
		}
	}
	return conn, nil
}

// ask runs one query and reads the whole result.
func ask(ctx context.Context, conn *pgx.Conn, q showcase.Query) error {
	if q.Simple {
		_, err := conn.PgConn().Exec(ctx, q.SQL).ReadAll()
		if err == nil && q.Then != "" {
			_, err = conn.PgConn().Exec(ctx, q.Then).ReadAll()
		}
		return err
	}
	rows, _ := conn.Query(ctx, q.SQL, q.Params...) // CollectRows returns the error
	_, err := pgx.CollectRows(rows, pgx.RowToMap)
	return err
}
