package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/gentle"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Options wires an Auditor.
type Options struct {
	Rewriter *rewrite.Rewriter // until Renew gives another
	// Renew returns a Rewriter that knows the databases as they are now; with an error, which Status shows, it may
	// return nil: then the Rewriter stays. nil = Rewriter is for good. It is called by Run before the first query is
	// looked at, then every RenewEvery, and soon after a query was refused for a name that is not known.
	Renew      func(context.Context) (*rewrite.Rewriter, error)
	RenewEvery time.Duration
	Player     *replay.Player
	OwnText    bool         // every world has an engine of its own: statements are replayed as they came, nothing is renamed
	Gate       *gentle.Gate // the Player's pace, or nil
	D0         string       // schema of D0
	D1         []string     // schemas of its neighbours
	Tables     []string     // protected tables without schema, for the check of the shadow database
	Hoist      bool         // trials may run on what all of them would compute alike
	// NoiseFunctions draw noise whatever the catalog declares them as, by name without schema.
	NoiseFunctions []string

	Analysis    analysis.Options // MaxTrials and Confidence are for one audit, over all its neighbours
	Family      bool             // 1 - Confidence is for all audits together, each having its share in the order of their beginning
	BatchTrials int              // rounds a batch, at least
	TurnTrials  int              // rounds a worker runs before the next audit's turn, at least; see turnTime
	Workers     int
	MaxAudits   int
	RetryAfter  time.Duration
	EpochEvery  time.Duration // how often the copies are looked at while nothing is replayed; 0 = 30 s
	ShowSQL     bool
	ShowValues  bool // status, findings and logs hold what comes from rows: group keys, texts, thresholds, the server's messages

	// Announce is called before a worker lets the SQL library, which is C, take a statement apart, and what it returns
	// afterwards; nil = nobody wants to know. What Submit parses is announced by its caller.
	Announce func(sql string) (done func())
	// Route names the engine that a query went to; nil, or "" = there is only one.
	Route     func(capture.Query) string
	OnFinding func(alert.Finding)
	Logger    *zap.Logger
	Metrics   prometheus.Registerer
	Now       func() time.Time
	Seed      func() uint64 // for the order of the worlds
}

// noClaimTrials bounds the replays of a query that claims nothing: its estimate is shown, nothing can be violated.
const noClaimTrials = 500

// Auditor audits captured queries. It is safe for use by several goroutines.
type Auditor struct {
	opt     Options
	metrics *metrics
	secret  string        // of the ids of groups
	ready   chan struct{} // wakes workers; capacity 1
	begun   atomic.Int64  // audits of a claim that began

	rewriter atomic.Pointer[rewrite.Rewriter]
	kept     keeper
	informed chan struct{} // closed when Renew was tried once, or is not there
	stale    chan struct{} // asks for Renew before its time; capacity 1

	mu       sync.Mutex // guards the fields below and every job's fields but those of its turn
	byKey    map[string]*job
	order    []*job
	queue    []*job // jobs without a worker, next first
	captured uint64
	skipped  map[string]uint64
	evicted  uint64
	faults   uint64
	panics   uint64
	shadow   string
	warnings []string
	catalog  string
	epoch    string // of the copies, as last seen; "" = not yet
}

// New returns an Auditor; Run makes it work.
func New(opt Options) (*Auditor, error) {
	if len(opt.D1) == 0 {
		return nil, errors.New("audit: no neighbour schema")
	}
	if opt.EpochEvery <= 0 {
		opt.EpochEvery = 30 * time.Second
	}
	m, err := newMetrics(opt.Metrics)
	if err != nil {
		return nil, err
	}
	a := &Auditor{
		opt: opt, metrics: m, secret: rand.Text(), ready: make(chan struct{}, 1), informed: make(chan struct{}), stale: make(chan struct{}, 1),
		byKey: map[string]*job{}, skipped: map[string]uint64{},
	}
	a.rewriter.Store(opt.Rewriter)
	if opt.Renew == nil {
		close(a.informed)
	}
	return a, nil
}

// Submit takes one captured query: it is recognised as an audit's, becomes a new audit, or is counted as skipped.
// It parses SQL, and so may die of hostile text: call it only in a process that may. With Options.Renew it waits for Run
// to have tried that once.
func (a *Auditor) Submit(q capture.Query) {
	<-a.informed
	plan, err := a.analyze(q)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.captured++
	a.metrics.captured.Inc()
	if err != nil {
		reason := reasonOf(err)
		a.skip(reason)
		a.suspect(reason)
		return
	}
	key, route := a.identity(q, plan)
	if j := a.byKey[key]; j != nil {
		j.seen++
		j.lastSeen = q.Completed
		if a.outdated(j) {
			j.query, j.plan, j.state = q, plan, Queued
			a.restart(j)
			a.enqueue(j)
		}
		return
	}
	if len(a.byKey) >= a.opt.MaxAudits && !a.evict() {
		a.skip("too_many_audits")
		return
	}
	j := a.newJob(q, plan)
	j.key, j.route, j.id = key, route, key[:min(12, len(key))]
	a.byKey[key] = j
	a.order = append(a.order, j)
	if j.state != Decided {
		a.enqueue(j)
	}
}

// evict forgets the decided audit that clients asked for longest ago, and reports whether there was one. Violations
// and audits at work stay. A forgotten query that comes again is audited again.
func (a *Auditor) evict() bool { // with a.mu held
	oldest := -1
	for i, j := range a.order {
		if j.state == Decided && j.worst().Verdict != analysis.Violation &&
			(oldest < 0 || j.lastSeen.Before(a.order[oldest].lastSeen)) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	delete(a.byKey, a.order[oldest].key)
	a.order = slices.Delete(a.order, oldest, oldest+1)
	a.evicted++
	return true
}

// analyze asks rewrite, and turns a panic into an error: no statement may end the auditor that way.
func (a *Auditor) analyze(q capture.Query) (plan *rewrite.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic
			a.recovered("analyze", r)
		}
	}()
	return a.rewriter.Load().Analyze(q)
}

var errPanic = errors.New("panic")

func reasonOf(err error) string {
	var u *rewrite.UnsupportedError
	switch {
	case errors.As(err, &u):
		return string(u.Reason)
	case errors.Is(err, errPanic):
		return "internal_error"
	default:
		return "other"
	}
}

func (a *Auditor) skip(reason string) { // with a.mu held
	a.skipped[reason]++
	a.metrics.skipped.WithLabelValues(reason).Inc()
}

func (a *Auditor) enqueue(j *job) { // with a.mu held
	a.queue = append(a.queue, j)
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// next returns the next job whose time has come, or nil and how long to wait.
func (a *Auditor) next() (*job, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, wait := a.opt.Now(), time.Hour
	for i, j := range a.queue {
		if d := j.notBefore.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		a.queue = append(a.queue[:i], a.queue[i+1:]...)
		j.state = Running
		if len(a.queue) > 0 { // pass the wake-up on
			select {
			case a.ready <- struct{}{}:
			default:
			}
		}
		return j, 0
	}
	return nil, wait
}

// Run audits until ctx ends.
func (a *Auditor) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { a.checkShadow(ctx); return nil })
	group.Go(func() error { a.watchEpoch(ctx); return nil })
	group.Go(func() error { a.watchKept(ctx); return nil })
	if a.opt.Renew != nil {
		group.Go(func() error { a.renew(ctx); return nil })
	}
	if a.opt.Gate != nil {
		group.Go(func() error { a.opt.Gate.Run(ctx); return nil })
	}
	for range a.opt.Workers {
		group.Go(func() error { a.work(ctx); return nil })
	}
	return group.Wait()
}

func (a *Auditor) work(ctx context.Context) {
	for ctx.Err() == nil {
		j, wait := a.next()
		if j == nil {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-a.ready:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		a.turn(ctx, j)
	}
}

// checkShadow looks at the shadow database until it is right once, and tells what is wrong meanwhile.
func (a *Auditor) checkShadow(ctx context.Context) {
	last := ""
	for {
		warnings, err := a.opt.Player.Check(ctx, a.opt.D0, a.opt.D1, a.opt.Tables)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = a.say(err)
		}
		a.mu.Lock()
		a.shadow, a.warnings = text, warnings
		a.mu.Unlock()
		if err == nil {
			for _, w := range warnings {
				a.opt.Logger.Warn("shadow database", zap.String("warning", w))
			}
			return
		}
		if text != last {
			a.opt.Logger.Error("the shadow database cannot be replayed on; audits wait, traffic is not affected", zap.String("error", text))
			last = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.opt.RetryAfter):
		}
	}
}

// Status returns a copy of everything known now.
func (a *Auditor) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Status{
		At: a.opt.Now(), Captured: a.captured, Skipped: make(map[string]uint64, len(a.skipped)),
		Evicted: a.evicted, Faults: a.faults, Panics: a.panics, Shadow: a.shadow, Catalog: a.catalog, Warnings: a.warnings,
		Resting: a.kept.count(),
		Audits:  make([]Entry, len(a.order)),
	}
	if a.opt.Gate != nil {
		state := a.opt.Gate.State()
		s.Pace = &state
	}
	for reason, n := range a.skipped {
		s.Skipped[reason] = n
	}
	for i, j := range a.order {
		s.Audits[i] = j.entry(&a.opt)
	}
	return s
}

func (a *Auditor) recovered(where string, r any) {
	a.opt.Logger.Error("panic recovered", zap.String("where", where), zap.String("panic", a.say(withheld.Recovered(r))), zap.Stack("stack"))
	a.mu.Lock()
	a.panics++
	a.mu.Unlock()
}
