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

// Statement is one query, rewritten for every world.
type Statement struct {
	// Worlds is the query's text on D0, on D1, and on every further neighbour; at least two. With Places, it is on others.
	Worlds []string
	// Places are the places of the worlds among the copies: 0 is D0, then the neighbours, and after them the twin and the
	// guard. nil = the worlds are D0 and the neighbours.
	Places   []int
	Params   []capture.Param
	Settings map[string]string // the client's session settings, by lower-case name
	// SearchPath is the complete path with which types, operators and functions were resolved; nil means
	// Options.SearchPath.
	SearchPath []string
	Simple     bool // the client sent a simple query; see Options.Protocol
	// Named reports that the client's statement had a name, so that the server may have used one generic plan for all
	// parameters. Replays of an unnamed statement with parameters are planned for these parameters each time.
	Named bool
	// Hoist lets trials reuse the deterministic part of the query; nil means that every trial runs the whole query.
	Hoist *Hoisting
	// Separate runs every trial in a session of its own, whole; nil = sessions run many trials. With Separate, Hoist is
	// ignored.
	Separate *Separation
	// Then holds further statements, in their order: a trial runs all of them in its session, with Settings and
	// SearchPath, and its outcome is outcome.Join of theirs. It needs Separate, since what one trial leaves in its
	// session must not affect the next.
	Then []Step
	// Beside is what trials may read besides the copies without being seen, which Reads returns.
	Beside []string

	// setup prepares every session and returns a function to be called when the session has ended; nil = none.
	setup    func(context.Context, *pgconn.PgConn) (release func(), err error)
	together bool // trials may share an implicit transaction
}

// Round holds the outcomes of one trial on each world, in the order of Statement.Worlds. All neighbours are compared
// with the same trial on D0.
type Round []outcome.Outcome

// Run is a replay in progress. Each of its sessions runs trials of every world in random order, so that neither the
// session nor the time distinguishes the worlds. Not safe for concurrent use.
type Run struct {
	exec     executor
	coin     *rand.Rand
	sessions []*session
	hoist    *hoistRun // nil = not hoisted
	halt     *atomic.Bool
	sparing  *sparing
	owed     int // rounds of the whole query since the last opening one
}

// executor runs trials of one statement in sessions that it opens.
type executor struct {
	player   *Player
	stmt     Statement
	values   [][]byte
	oids     []uint32
	format   []int16
	planning *sharedPlanning
	simple   bool // trials are simple queries
	by       *bystander
}

// errHalted is the error of Rounds if Stream has ended meanwhile. The sessions remain usable.
var errHalted = errors.New("replay: the stream has ended")

// Start prepares a replay. seed determines the order of the worlds. Sessions are opened when they are needed.
func (p *Player) Start(s Statement, seed uint64) (*Run, error) {
	if len(s.Worlds) < 2 {
		return nil, errors.New("replay: a statement needs its text on D0 and on a neighbour at least")
	}
	if len(s.Params) > math.MaxUint16 {
		return nil, fmt.Errorf("replay: %d parameters; the protocol allows %d", len(s.Params), math.MaxUint16)
	}
	if err := p.checkStatement(s); err != nil {
		return nil, err
	}
	if err := p.checkSequence(s); err != nil {
		return nil, err
	}
	r := &Run{
		exec: executor{player: p, planning: newPlanning(unknownPlanning), by: new(bystander)}, coin: rand.New(rand.NewPCG(seed, 0x6470776174636800)),
		sessions: make([]*session, p.opt.Connections), halt: new(atomic.Bool), sparing: new(sparing),
	}
	r.exec.bind(s)
	if r.exec.simple {
		r.exec.planning.set(freshPlanning)
	}
	if s.Hoist != nil && s.Separate == nil && len(p.opt.Engines) == 0 { // an engine beside the database has no temporary tables
		r.hoist = r.hoisting()
	}
	return r, nil
}

// played are the rounds of a batch.
type played struct{ whole, hoisted, opening []Round }

// Rounds runs n new trials on each world; with Statement.Hoist some may be hoisted. On an error it returns nothing of
// the batch and closes the sessions; the next call opens new ones. See Transient, SetupError and EndsError.
func (r *Run) Rounds(ctx context.Context, n int) ([]Round, error) {
	p, err := r.rounds(ctx, n)
	return slices.Concat(p.whole, p.hoisted, p.opening), err
}

// rounds is Rounds with the kinds of rounds apart.
func (r *Run) rounds(ctx context.Context, n int) (p played, err error) {
	r.accompany(ctx)
	defer func() { err = r.examine(ctx, err) }()
	if r.hoist != nil {
		p, err = r.hoist.rounds(ctx, n)
	} else {
		p.whole, err = r.wholeRounds(ctx, n)
	}
	if err == nil {
		p.opening, err = r.openingRounds(ctx, len(p.whole))
	}
	return p, err
}

// wholeRounds runs n trials of the statement as it is on each world.
func (r *Run) wholeRounds(ctx context.Context, n int) ([]Round, error) {
	if r.exec.stmt.Separate != nil {
		return r.runSeparate(ctx, n)
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	worlds, rounds := len(r.exec.stmt.Worlds), r.newRounds(n)
	q := &queue{trials: make([]trial, 0, n*worlds), sessions: len(r.sessions)}
	for i := range rounds {
		for _, world := range r.coin.Perm(worlds) {
			if spares(r.sparing.now, world) {
				continue
			}
			q.trials = append(q.trials, trial{world: world, into: &rounds[i][world]})
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, s := range r.sessions {
		group.Go(func() error { return guarded(func() error { return r.play(gctx, s, q) }) })
	}
	return r.finish(ctx, group, rounds)
}

// newRounds returns n rounds without outcomes.
func (r *Run) newRounds(n int) []Round {
	worlds := len(r.exec.stmt.Worlds)
	flat := make([]outcome.Outcome, n*worlds)
	rounds := make([]Round, n)
	for i := range rounds {
		rounds[i] = flat[i*worlds : (i+1)*worlds : (i+1)*worlds]
	}
	return rounds
}

// finish waits for the sessions of a batch and returns its rounds.
func (r *Run) finish(ctx context.Context, sessions *errgroup.Group, rounds []Round) ([]Round, error) {
	if err := sessions.Wait(); err != nil {
		r.end()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if r.halt.Load() {
		return nil, errHalted
	}
	if err := r.confirmRefusals(ctx, rounds); err != nil {
		r.Close()
		return nil, err
	}
	return rounds, nil
}

// The time that a batch of Stream should take, and its maximal number of rounds: between two batches the sessions wait
// for each other.
const (
	batchTime = 50 * time.Millisecond
	maxBatch  = 1000
	// maxBatchBytes is the approximate limit for the memory of a batch's results. The next batch runs while one is
	// processed.
	maxBatchBytes = 8 << 20
	// When Stream ends, it waits up to haltTime for trials in flight, so that their sessions can be reused.
	haltTime = 200 * time.Millisecond
)

// nextBatch returns the number of rounds after a batch of n rounds that took the given time and whose results have the
// given bytes.
func nextBatch(n int, took time.Duration, bytes int) int {
	if took < batchTime/2 && n <= maxBatch/2 {
		n, bytes = 2*n, 2*bytes
	}
	if bytes > maxBatchBytes {
		n = max(1, int(int64(n)*maxBatchBytes/int64(bytes)))
	}
	return n
}

// sizeOf returns the approximate memory of the outcomes in bytes.
func sizeOf(rounds []Round) int {
	n := 0
	for _, round := range rounds {
		for i := range round {
			n += round[i].Size()
		}
	}
	return n
}

// Stream yields batches of n rounds, more for a quick query and fewer for large results, until the loop ends, ctx is
// done, or an error was yielded. The next batch runs while one is processed, so that the server does not wait.
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
				var p played
				r.sparing.begin()
				err := guarded(func() (err error) { p, err = r.rounds(ctx, n); return err })
				took := time.Since(began)
				if errors.Is(err, errHalted) {
					return
				}
				n = nextBatch(n, took, sizeOf(p.whole)+sizeOf(p.hoisted)+sizeOf(p.opening))
				select {
				case batches <- item{r.batch(p, took), err}:
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
			r.sparing.end()
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

// Batch is an element of Stream.
type Batch struct {
	Rounds  []Round // of the whole query
	Hoisted []Round
	Opening []Round // whose trials are the first ones of their sessions
	Took    time.Duration
	Spared  []bool // worlds that the rounds leave out, see Choice; nil = none
	Whole   bool   // trials will not be hoisted, for a reason that does not depend on their results
	Broken  string // why hoisted rounds are no evidence, those before included; "" = they are
}

// All returns the rounds of all kinds.
func (b *Batch) All() []Round { return slices.Concat(b.Rounds, b.Hoisted, b.Opening) }

func (r *Run) batch(p played, took time.Duration) Batch {
	b := Batch{Rounds: p.whole, Hoisted: p.hoisted, Opening: p.opening, Took: took, Spared: r.sparing.now, Whole: r.hoist == nil}
	if h := r.hoist; h != nil {
		b.Whole, b.Broken = h.never, h.broken
	}
	return b
}

// Close closes the sessions. The Run may be used again.
func (r *Run) Close() {
	r.end()
	r.exec.by.close()
}

// Rest closes the sessions that are cheap to open again, and reports whether others are left: those with the tables of
// a hoisted query. The Run may be used again.
func (r *Run) Rest() bool {
	if r.hoist == nil || !r.hoist.rest.alive() {
		r.Close()
		return false
	}
	r.hoist.whole.Close() // and the bystander
	return true
}

// alive reports whether a session is open.
func (r *Run) alive() bool {
	return r != nil && slices.ContainsFunc(r.sessions, func(s *session) bool { return s != nil && !s.conn.IsClosed() })
}

// trial is one execution and the destination of its outcome.
type trial struct {
	world int
	into  *outcome.Outcome
}

// queue holds the trials of one batch, round by round, the worlds of each round in random order. Sessions take from its
// front, so that none waits for a slower one. The world of a trial does not affect which session runs it.
type queue struct {
	mu       sync.Mutex // guards trials
	trials   []trial
	sessions int
}

// pipelineTime is the approximate time of the trials that are sent at once.
const pipelineTime = 10 * time.Millisecond

// share returns how many trials a session should take next if one takes about each (0 = unknown): fewer towards the
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

// play runs trials from the queue on one session, as many at a time as the Pace allows.
func (r *Run) play(ctx context.Context, s *session, q *queue) error {
	pace, query := r.exec.player.opt.Pace, r.exec.player.means.key(r.exec.stmt.Worlds[0])
	for {
		each := r.exec.player.means.least(query)
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
		var err error
		if len(trials) > 0 { // otherwise other sessions have taken the last ones
			began := time.Now()
			err = r.exec.pipeline(ctx, s, trials)
			took := time.Since(began)
			s.busy += took
			r.exec.player.means.record(query, took/time.Duration(len(trials)))
		}
		if pace != nil {
			pace.Leave()
		}
		if err != nil {
			return err
		}
	}
}
