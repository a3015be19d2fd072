//go:build linux

package chaos_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// queries is the number of distinct queries, and sessions that of the clients, each of which keeps its session.
const queries, sessions = 4, 6

// sql returns a query that spends half of the epsilon that it claims, so that its audit goes on.
func sql(query int) string {
	return fmt.Sprintf("SELECT noisy(%d, count(*), 4) FROM people /*dp_epsilon='0.5'*/", query)
}

// clients send queries through dpwatch.
type clients struct {
	dsn      string                 // of the engine
	address  atomic.Pointer[string] // of dpwatch
	outage   atomic.Bool            // the relay is killed: sessions may end
	began    [queries]atomic.Int64  // executions, by query
	complete [queries]atomic.Int64
	failed   [queries]atomic.Int64 // executions without an answer, because the relay was killed
	stop     chan struct{}
	running  sync.WaitGroup
}

func newClients(dsn string) *clients { return &clients{dsn: dsn, stop: make(chan struct{})} }

func (c *clients) start(t *testing.T, address string) {
	c.address.Store(&address)
	for i := range sessions {
		c.running.Go(func() { c.run(t, i) })
	}
}

// run sends queries until stop is closed. A session that ends otherwise than by the end of the relay fails the test.
func (c *clients) run(t *testing.T, n int) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}()
	for ; ; n++ {
		select {
		case <-c.stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if err := c.send(&conn, n); err != nil && !c.outage.Load() {
			t.Errorf("a session noticed: %v", err)
			return
		}
	}
}

// send executes a query on the session, which it opens if there is none.
func (c *clients) send(session **pgx.Conn, n int) error {
	ctx := context.Background()
	if *session == nil {
		u, err := url.Parse(c.dsn)
		if err != nil {
			return err
		}
		u.Host = *c.address.Load()
		if *session, err = pgx.Connect(ctx, u.String()); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	mode := pgx.QueryExecModeSimpleProtocol
	if n%2 == 0 {
		mode = pgx.QueryExecModeCacheStatement
	}
	query, answer := n%queries, 0.0
	c.began[query].Add(1)
	if err := (*session).QueryRow(ctx, sql(query), mode).Scan(&answer); err != nil {
		c.failed[query].Add(1)
		_ = (*session).Close(ctx)
		*session = nil
		return fmt.Errorf("statement %d: %w", n, err)
	}
	c.complete[query].Add(1)
	return nil
}

// counts returns a counter of executions by query.
func counts(of *[queries]atomic.Int64) (out [queries]int) {
	for i := range of {
		out[i] = int(of[i].Load())
	}
	return out
}

func (c *clients) end() {
	close(c.stop)
	c.running.Wait()
}
