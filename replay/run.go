package replay

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Statement is one query, ready for both worlds.
type Statement struct {
	D0, D1   string // the query's text on D0 and on D1
	Params   []capture.Param
	Settings map[string]string // the client's session settings, by lower-case name
	// SearchPath is the client's path, for types, operators and functions; Options.SearchPath comes after it.
	SearchPath []string
}

// Pair is one trial on each world.
type Pair struct{ D0, D1 outcome.Outcome }

// Run is a replay in progress: two sessions, each of which runs trials of both worlds in random order, so that
// neither the session nor the moment tells the worlds apart. Not safe for use by several goroutines.
type Run struct {
	player *Player
	stmt   Statement
	coin   *rand.Rand
	values [][]byte
	oids   []uint32
	format []int16
	conns  [2]*pgconn.PgConn
	used   int // trials that the present sessions ran, each
}

// Start prepares a replay. seed decides the order of the worlds. Sessions are opened when they are needed.
func (p *Player) Start(s Statement, seed uint64) (*Run, error) {
	if len(s.Params) > math.MaxUint16 {
		return nil, fmt.Errorf("replay: %d parameters; the protocol allows %d", len(s.Params), math.MaxUint16)
	}
	r := &Run{player: p, stmt: s, coin: rand.New(rand.NewPCG(seed, 0x6470776174636800))}
	for _, param := range s.Params {
		value := param.Value
		switch {
		case param.Null:
			value = nil
		case value == nil:
			value = []byte{}
		}
		r.values = append(r.values, value)
		r.oids = append(r.oids, param.OID)
		r.format = append(r.format, param.Format)
	}
	return r, nil
}

// Pairs runs n fresh trials on each world. On an error nothing of the batch is returned and the sessions are
// closed; the next call opens new ones. See Transient and SetupError.
func (r *Run) Pairs(ctx context.Context, n int) ([]Pair, error) {
	if err := r.open(ctx, n); err != nil {
		return nil, err
	}
	pairs := make([]Pair, n)
	plans := [2][]trial{make([]trial, n), make([]trial, n)}
	for i := range pairs {
		d0 := trial{sql: r.stmt.D0, into: &pairs[i].D0}
		d1 := trial{sql: r.stmt.D1, into: &pairs[i].D1}
		side := r.coin.IntN(2)
		plans[side][i], plans[1-side][i] = d0, d1
	}
	group, gctx := errgroup.WithContext(ctx)
	for i := range plans {
		group.Go(func() error { return r.play(gctx, r.conns[i], plans[i]) })
	}
	if err := group.Wait(); err != nil {
		r.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	r.used += n
	return pairs, nil
}

// Close ends the sessions. The Run may be used again.
func (r *Run) Close() {
	for i, conn := range r.conns {
		if conn != nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			_ = conn.Close(ctx)
			cancel()
			r.conns[i] = nil
		}
	}
	r.used = 0
}

func (r *Run) open(ctx context.Context, n int) error {
	if r.used > 0 && r.used+n > r.player.opt.SessionTrials {
		r.Close()
	}
	for i := range r.conns {
		if r.conns[i] != nil && !r.conns[i].IsClosed() {
			continue
		}
		conn, err := r.player.connect(ctx, r.stmt)
		if err != nil {
			r.Close()
			return err
		}
		r.conns[i] = conn
	}
	return nil
}

// trial is one execution and where its outcome goes.
type trial struct {
	sql  string
	into *outcome.Outcome
}

// play pipelines the trials on one session, each behind a Sync of its own: one implicit transaction a trial,
// and an error ends only its own.
func (r *Run) play(ctx context.Context, conn *pgconn.PgConn, trials []trial) error {
	pipeline := conn.StartPipeline(ctx)
	for _, t := range trials {
		pipeline.SendQueryParams(t.sql, r.values, r.oids, r.format, nil)
		pipeline.SendPipelineSync()
	}
	if err := pipeline.Flush(); err != nil {
		return &transientError{op: "replay", err: err}
	}
	for i, t := range trials {
		result, err := pipeline.GetResults()
		if err == nil {
			reader, ok := result.(*pgconn.ResultReader)
			if !ok {
				return fmt.Errorf("replay trial %d: unexpected %T from the server", i, result)
			}
			*t.into, err = r.player.read(reader)
		}
		if err != nil {
			state, fault := classify(err)
			if fault != nil {
				return fault
			}
			*t.into = outcome.Outcome{SQLState: state}
		}
		if _, err := pipeline.GetResults(); err != nil { // the Sync
			return &transientError{op: "replay", err: err}
		}
	}
	if err := pipeline.Close(); err != nil {
		return &transientError{op: "replay", err: err}
	}
	return nil
}
