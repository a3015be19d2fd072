package replay

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/replay"
)

// methods are pgbench, dpwatch, and collectors.
func (b *bench) methods() []method {
	var out []method
	for _, n := range []int{1, 2} {
		out = append(out,
			method{"pgbench, prepared", n, func(ctx context.Context, q query) (float64, error) { return b.pgbench(ctx, q, n, "prepared") }},
			method{"dpwatch, extended queries", n, func(ctx context.Context, q query) (float64, error) { return b.dpwatch(ctx, q, n, false) }},
			method{"pgbench, simple", n, func(ctx context.Context, q query) (float64, error) { return b.pgbench(ctx, q, n, "simple") }},
			method{"dpwatch, simple queries", n, func(ctx context.Context, q query) (float64, error) { return b.dpwatch(ctx, q, n, true) }},
		)
	}
	return append(out,
		method{"collector, connections kept", 2, func(ctx context.Context, q query) (float64, error) { return b.collector(ctx, q, false) }},
		method{"collector, as the seed's: two new connections a run", 2, func(ctx context.Context, q query) (float64, error) {
			return b.collector(ctx, q, true)
		}},
	)
}

// sessions are ways to reset the state of a session between trials.
func (b *bench) sessions() []method {
	return []method{
		{"nothing, plans kept", 1, func(ctx context.Context, q query) (float64, error) {
			return b.session(ctx, q, func(p *pgconn.Pipeline, name, _ string) {
				p.SendQueryPrepared(name, nil, nil, nil)
				p.SendPipelineSync()
			})
		}},
		{"nothing, parsed and planned anew", 1, func(ctx context.Context, q query) (float64, error) {
			return b.session(ctx, q, func(p *pgconn.Pipeline, _, sql string) {
				p.SendQueryParams(sql, nil, nil, nil, nil)
				p.SendPipelineSync()
			})
		}},
		{"DISCARD ALL", 1, func(ctx context.Context, q query) (float64, error) {
			return b.session(ctx, q, func(p *pgconn.Pipeline, _, sql string) {
				p.SendQueryParams(sql, nil, nil, nil, nil)
				p.SendPipelineSync()
				p.SendQueryParams("DISCARD ALL", nil, nil, nil, nil)
				p.SendPipelineSync()
			})
		}},
		{"a new session", 1, b.newSessions},
	}
}

// dpwatch replays like an audit.
func (b *bench) dpwatch(ctx context.Context, q query, connections int, simple bool) (float64, error) {
	player, err := replay.New(replay.Options{
		DSN: b.dsn, SearchPath: []string{"public"}, StatementTimeout: time.Minute, ConnectTimeout: time.Minute,
		MaxRows: 10_000, MaxBytes: 8 << 20, Connections: connections,
	})
	if err != nil {
		return 0, err
	}
	run, err := player.Start(replay.Statement{Worlds: []string{q.sql("d0"), q.sql("d1")}, Simple: simple}, 1)
	if err != nil {
		return 0, err
	}
	defer run.Close()
	if _, err := run.Rounds(ctx, 1); err != nil { // pgbench's figure also excludes the time of connecting
		return 0, err
	}
	began, trials := time.Now(), 0
	for batch, err := range run.Stream(ctx, 25) {
		if err != nil {
			return 0, err
		}
		trials += 2 * len(batch.Rounds)
		if time.Since(began) >= b.slice(q) {
			break
		}
	}
	return float64(trials) / time.Since(began).Seconds(), nil
}

// session pipelines trials of both worlds on one connection.
func (b *bench) session(ctx context.Context, q query, send func(p *pgconn.Pipeline, name, sql string)) (float64, error) {
	conn, err := pgconn.Connect(ctx, b.dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	worlds := []string{"d0", "d1"}
	for _, w := range worlds {
		if _, err := conn.Prepare(ctx, w, q.sql(w), nil); err != nil {
			return 0, err
		}
	}
	began, trials := time.Now(), 0
	for time.Since(began) < b.slice(q) {
		p := conn.StartPipeline(ctx)
		for i := range 50 {
			send(p, worlds[i%2], q.sql(worlds[i%2]))
		}
		if err := p.Flush(); err != nil {
			return 0, err
		}
		for {
			result, err := p.GetResults()
			if err != nil {
				return 0, err
			}
			if result == nil {
				break
			}
			if r, ok := result.(*pgconn.ResultReader); ok {
				for r.NextRow() {
				}
				if tag, err := r.Close(); err != nil {
					return 0, err
				} else if tag.Select() {
					trials++
				}
			}
		}
		if err := p.Close(); err != nil {
			return 0, err
		}
	}
	return float64(trials) / time.Since(began).Seconds(), nil
}

// newSessions runs every trial on a connection of its own.
func (b *bench) newSessions(ctx context.Context, q query) (float64, error) {
	began, trials := time.Now(), 0
	for ; time.Since(began) < b.slice(q); trials++ {
		conn, err := pgconn.Connect(ctx, b.dsn)
		if err != nil {
			return 0, err
		}
		result := conn.ExecParams(ctx, q.sql([]string{"d0", "d1"}[trials%2]), nil, nil, nil, nil).Read()
		if err := conn.Close(ctx); err != nil {
			return 0, err
		}
		if result.Err != nil {
			return 0, result.Err
		}
	}
	return float64(trials) / time.Since(began).Seconds(), nil
}

// collector requests one result at a time, of both worlds concurrently, with the simple protocol and a transaction of
// three round trips each; fresh = on new connections every time.
func (b *bench) collector(ctx context.Context, q query, fresh bool) (float64, error) {
	conns := make([]*pgconn.PgConn, 2)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close(ctx)
			}
		}
	}()
	one := func(i int) (err error) {
		if conns[i] == nil {
			if conns[i], err = pgconn.Connect(ctx, b.dsn); err != nil {
				return err
			}
		}
		for _, sql := range []string{"BEGIN", q.sql([]string{"d0", "d1"}[i]), "COMMIT"} {
			if _, err := conns[i].Exec(ctx, sql).ReadAll(); err != nil {
				return err
			}
		}
		if fresh {
			err = conns[i].Close(ctx)
			conns[i] = nil
		}
		return err
	}
	began, trials := time.Now(), 0
	for time.Since(began) < b.slice(q) {
		var group errgroup.Group
		group.Go(func() error { return one(0) })
		group.Go(func() error { return one(1) })
		if err := group.Wait(); err != nil {
			return 0, err
		}
		trials += 2
	}
	return float64(trials) / time.Since(began).Seconds(), nil
}
