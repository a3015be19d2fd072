package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// idle prints the proxies' memory with many idle sessions.
func idle(ctx context.Context, targets []*target) error {
	fmt.Println("\n| idle sessions | target | RSS MB | KB per session |")
	fmt.Println("|---|---|---|---|")
	for _, n := range []int{1000} {
		for _, t := range targets {
			if t.pid == 0 {
				continue
			}
			before := t.rss()
			conns := make([]*pgconn.PgConn, 0, n)
			var err error
			for range n {
				var c *pgconn.PgConn
				if c, err = pgconn.Connect(ctx, t.dsn); err != nil {
					break
				}
				conns = append(conns, c)
			}
			time.Sleep(500 * time.Millisecond)
			after := t.rss()
			for _, c := range conns {
				_ = c.Close(ctx)
			}
			if err != nil {
				return fmt.Errorf("%s: session %d: %w", t.name, len(conns)+1, err)
			}
			fmt.Printf("| %d | %s | %.1f | %.1f |\n", n, t.name, float64(after)/1e6, float64(after-before)/1e3/float64(n))
		}
	}
	return nil
}
