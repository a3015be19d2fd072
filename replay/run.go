package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Statement is one query, ready for every world.
type Statement struct {
	// Worlds is the query's text on D0, on D1, and on every further neighbour: two at least.
	Worlds   []string
	Params   []capture.Param
	Settings map[string]string // the client's session settings, by lower-case name
	// SearchPath is the path under which types, operators and functions were judged, all of it; nil = Options.SearchPath.
	SearchPath []string
	Simple     bool // the client sent a simple query; see Options.Protocol
	// Named: the server kept the client's statement under a name, and may have had one plan for all parameters. Replays of
	// another with parameters are planned for these each time.
	Named bool
	// Hoist lets trials run on what all of them would compute alike; nil = every trial runs the whole query.
	Hoist *Hoisting
	// Separate runs every trial in a session of its own, whole; nil = sessions run many trials. Hoist is not used then.
	Separate *Separation

	// setup prepares every session, and returns what is called when that has ended; nil = none.
	setup    func(context.Context, *pgconn.PgConn) (release func(), err error)
	together bool // trials may share an implicit transaction
}

// Round is one fresh trial on each world, in the order of Statement.Worlds: all neighbours are compared with the
// same trial on D0.
type Round []outcome.Outcome

// Run is a replay in progress: sessions each of which runs trials of every world in random order, so that
// neither the session nor the moment tells the worlds apart. Not safe for use by several goroutines.
type Run struct {
	player   *Player
	stmt     Statement
	coin     *rand.Rand
	values   [][]byte
	oids     []uint32
	format   []int16
	sessions []*session
	planning planning
	simple   bool      // trials are simple queries
	hoist    *hoistRun // nil = not hoisted
	halt     *atomic.Bool
}

// errHalted is what Rounds returns when Stream has ended meanwhile. The sessions stay as they are.
var errHalted = errors.New("replay: the stream has ended")

// Start prepares a replay. seed decides the order of the worlds. Sessions are opened when they are needed.
func (p *Player) Start(s Statement, seed uint64) (*Run, error) {
	if len(s.Worlds) < 2 {
		return nil, errors.New("replay: a statement needs its text on D0 and on a neighbour at least")
	}
	if len(s.Params) > math.MaxUint16 {
		return nil, fmt.Errorf("replay: %d parameters; the protocol allows %d", len(s.Params), math.MaxUint16)
	}
	if err := p.fits(s); err != nil {
		return nil, err
	}
	r := &Run{
		player: p, stmt: s, coin: rand.New(rand.NewPCG(seed, 0x6470776174636800)),
		sessions: make([]*session, p.opt.Connections), simple: p.simple(s), halt: new(atomic.Bool),
	}
	if r.simple {
		r.planning = freshPlanning
	}
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
	if s.Hoist != nil && s.Separate == nil && len(p.opt.Engines) == 0 { // an engine beside the database knows no temporary tables
		r.hoist = r.hoisting()
	}
	return r, nil
}

// Rounds runs n fresh trials on each world. On an error nothing of the batch is returned and the sessions are
// closed; the next call opens new ones. See Transient, SetupError and DisagreementError.
func (r *Run) Rounds(ctx context.Context, n int) ([]Round, error) {
	if r.stmt.Separate != nil {
		return r.separately(ctx, n)
	}
	if r.hoist != nil {
		return r.hoist.rounds(ctx, n)
	}
	if err := r.proveWorlds(ctx); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	worlds := len(r.stmt.Worlds)
	flat := make([]outcome.Outcome, n*worlds)
	rounds := make([]Round, n)
	for i := range rounds {
		rounds[i] = flat[i*worlds : (i+1)*worlds : (i+1)*worlds]
	}
	q := &queue{trials: make([]trial, 0, n*worlds), sessions: len(r.sessions)}
	for i := range rounds {
		for _, world := range r.coin.Perm(worlds) {
			q.trials = append(q.trials, trial{world: world, into: &rounds[i][world]})
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, s := range r.sessions {
		group.Go(func() error { return guarded(func() error { return r.play(gctx, s, q) }) })
	}
	if err := group.Wait(); err != nil {
		r.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if r.halt.Load() {
		return nil, errHalted
	}
	return rounds, r.version(rounds)
}

// How long a batch of Stream should take, and how many rounds it has at most: between two batches the sessions wait
// for each other.
const (
	batchTime = 50 * time.Millisecond
	maxBatch  = 1000
	// maxBatchBytes is about what the results of a batch may take in memory: while it is looked at, the next one runs.
	maxBatchBytes = 8 << 20
	// haltTime is how long the end of Stream waits for trials that are on their way, so that their sessions can be used
	// again.
	haltTime = 200 * time.Millisecond
)

// nextBatch returns how many rounds come after a batch of n that took so long and whose results have so many bytes.
func nextBatch(n int, took time.Duration, bytes int) int {
	if took < batchTime/2 && n <= maxBatch/2 {
		n, bytes = 2*n, 2*bytes
	}
	if bytes > maxBatchBytes {
		n = max(1, int(int64(n)*maxBatchBytes/int64(bytes)))
	}
	return n
}

// sizeOf returns about how many bytes of memory the outcomes hold.
func sizeOf(rounds []Round) int {
	n := 0
	for _, round := range rounds {
		for i := range round {
			n += round[i].Size()
		}
	}
	return n
}

// Stream gives batches of n rounds, more of a quick query and fewer of one with large results, until the loop ends, ctx does, or an error was given.
// While a batch is looked at the next one runs already, so that the server does not wait.
func (r *Run) Stream(ctx context.Context, n int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		type item struct {
			batch Batch
			err   error
		}
		batches := make(chan item)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !r.halt.Load() {
				began := time.Now()
				var rounds []Round
				err := guarded(func() (err error) { rounds, err = r.Rounds(ctx, n); return err })
				took := time.Since(began)
				if errors.Is(err, errHalted) {
					return
				}
				n = nextBatch(n, took, sizeOf(rounds))
				select {
				case batches <- item{Batch{rounds, took}, err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		}()
		defer func() {
			r.halt.Store(true)
			select {
			case <-batches:
			case <-done:
			case <-time.After(haltTime):
			}
			stop()
			<-done
			r.halt.Store(false)
		}()
		for {
			select {
			case b := <-batches:
				if !yield(b.batch, b.err) || b.err != nil {
					return
				}
			case <-ctx.Done():
				yield(Batch{}, ctx.Err())
				return
			}
		}
	}
}

// Batch is what Stream gives.
type Batch struct {
	Rounds []Round
	Took   time.Duration
}

// Close ends the sessions. The Run may be used again.
func (r *Run) Close() {
	if r.hoist != nil {
		r.hoist.close()
	}
	for i, s := range r.sessions {
		s.close()
		r.sessions[i] = nil
	}
}

// Rest closes the sessions that cost little to open again, and reports whether others are left: those with the tables of a
// hoisted query. A Run that rests may be used again.
func (r *Run) Rest() bool {
	if r.hoist == nil || !r.hoist.rest.alive() {
		r.Close()
		return false
	}
	r.hoist.whole.Close()
	return true
}

// alive reports whether there is a session.
func (r *Run) alive() bool {
	return r != nil && slices.ContainsFunc(r.sessions, func(s *session) bool { return s != nil && !s.conn.IsClosed() })
}

// trial is one execution and where its outcome goes.
type trial struct {
	world int
	into  *outcome.Outcome
}

// queue is the trials of one batch, round after round, the worlds of each in random order. Sessions take from its front,
// so that none waits for a slower one; which of them gets a trial does not depend on its world.
type queue struct {
	mu       sync.Mutex // guards trials
	trials   []trial
	sessions int
}

// pipelineTime is about how long the trials take that are sent at once.
const pipelineTime = 10 * time.Millisecond

// share returns how many trials a session should take next when one takes about each (0 = not known): fewer towards the
// end, so that all sessions end together.
func (q *queue) share(each time.Duration) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 4
	if each > 0 {
		n = int(pipelineTime / each)
	}
	return min(len(q.trials), max(1, min(n, len(q.trials)/(2*q.sessions))))
}

func (q *queue) take(n int) []trial {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.trials))
	taken := q.trials[:n]
	q.trials = q.trials[n:]
	return taken
}

// play runs trials of the queue on one session, as many at a time as the pace allows.
func (r *Run) play(ctx context.Context, s *session, q *queue) error {
	pace, query := r.player.opt.Pace, r.player.baseline(r.stmt.Worlds[0])
	for {
		each := r.player.leastTime(query)
		n := q.share(each)
		if n == 0 || r.halt.Load() {
			return nil
		}
		if pace != nil {
			var err error
			if n, err = pace.Enter(ctx, n, each); err != nil {
				return err
			}
		}
		trials := q.take(n)
		slowdown := 1.0
		var err error
		if len(trials) > 0 { // else others took the last ones meanwhile
			began := time.Now()
			err = r.pipeline(ctx, s, trials)
			took := time.Since(began)
			s.busy += took
			slowdown = r.player.slowdown(query, took/time.Duration(len(trials)))
		}
		if pace != nil {
			pace.Leave(slowdown)
		}
		if err != nil {
			return err
		}
	}
}
