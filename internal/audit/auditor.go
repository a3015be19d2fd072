package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recent"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// noClaimTrials bounds the trials of a query without a claim: its estimate is shown, but there can be no violation.
const noClaimTrials = 500

// Auditor audits captured queries. It is safe for concurrent use.
type Auditor struct {
	opt     Options
	metrics *metrics
	secret  string // key for the ids of groups
	seed    maphash.Seed
	inbox   *inbox.Inbox
	ready   chan struct{} // wakes workers; capacity 1
	begun   atomic.Int64  // audits with a claim that have begun, if there is no ledger
	// reported counts those of them that have ended in a violation.
	reported atomic.Int64
	panics   atomic.Uint64

	recognizer *recognize.Recognizer
	idle       idleRuns
	keeper     *keep.Keeper
	remote     remote
	informed   chan struct{} // closed after the first call of Renew, or if Renew is nil
	inform     sync.Once     // closes informed
	deployed   chan struct{} // a label was posted; capacity 1
	stale      chan struct{} // requests a renewal before RenewEvery; capacity 1

	sequences sequences

	mu        sync.Mutex // guards the fields below and every job's fields except those of its turn
	roster    *schedule.Roster
	jobs      map[string]*job               // by key
	wished    map[string]int                // by key: how often the evidence had begun when an operator's wish for a new audit was fulfilled
	order     []*job                        // in order of admission
	asked     recent.Map[string, demand]    // queries without an audit, by key
	readers   recent.Map[reader, time.Time] // of unclaimed reads, by when they were reported
	records   records
	accepted  map[string]*ledger.Acceptance // of violations, by key; see acceptance
	away      map[string]*life              // of accepted violations whose audits are not in memory, by key; see recallAway
	coverage  coverage
	captured  uint64
	skipped   map[string]uint64
	unlisted  map[string]bool // tables and functions that were logged, see logUnlisted
	evictions map[string]uint64
	turned    turnedAway
	faults    uint64
	shadow    string
	warnings  []string
	catalogs  catalogs
	engines   engines
	epoch     string    // of the copies, at the last check; "" = not checked yet
	read      time.Time // when the last reading of the copies and the engine began
	lastTrial time.Time // zero = none yet
	short     shortage
	budgets   []view.PrivacyBudgetState
	overspent map[overspent]bool // reported, and not yet noted in the ledger; of meter alone
	shadowUp  bool
}

// New returns an Auditor. Run starts it.
func New(opt Options) (*Auditor, error) {
	if len(opt.D1) == 0 {
		return nil, errors.New("audit: no neighbour schema")
	}
	if opt.EpochEvery <= 0 {
		opt.EpochEvery = 30 * time.Second
	}
	if opt.WatchEvery <= 0 {
		opt.WatchEvery = watchEvery
	}
	if opt.PerShape <= 0 {
		opt.PerShape = defaultPerShape
	}
	if opt.CloseTimeout <= 0 {
		opt.CloseTimeout = 2 * time.Second
	}
	if opt.RescueAfter <= 0 {
		opt.RescueAfter = defaultRescueAfter
	}
	if opt.Announce == nil {
		opt.Announce = func(string) func() { return func() {} }
	}
	a := &Auditor{
		opt: opt, secret: rand.Text(), ready: make(chan struct{}, 1), informed: make(chan struct{}), stale: make(chan struct{}, 1),
		deployed: make(chan struct{}, 1),
		roster: schedule.New(schedule.Limits{
			Audits: opt.MaxAudits, PerShape: opt.PerShape, Bytes: opt.Memory, Watch: schedule.Watch{Share: opt.WatchShare, Every: opt.WatchEvery},
		}),
		jobs: map[string]*job{}, wished: map[string]int{}, away: map[string]*life{}, overspent: map[overspent]bool{}, skipped: map[string]uint64{}, unlisted: map[string]bool{}, evictions: map[string]uint64{},
		asked:   recent.Map[string, demand]{N: 4 * recognize.RememberedTexts},
		seed:    maphash.MakeSeed(),
		readers: recent.Map[reader, time.Time]{N: reportedUnclaimed},
		inbox:   inbox.New(inbox.MaxQueries, inbox.MaxBytes),
		records: records{most: recordsPerAudit * opt.MaxAudits},
	}
	a.sequences = newSequences(opt.SequenceWindow)
	var err error
	if a.metrics, err = newMetrics(opt.Metrics, a); err != nil {
		return nil, err
	}
	a.recognizer = recognize.New(opt.Rewriter, opt.Unclaimed, opt.Announce, func(r any) { a.recovered("analyze", r) }, opt.Evaluate)
	if opt.Renew == nil {
		a.inform.Do(func() { close(a.informed) })
	}
	a.idle.recovered = func(r any) { a.recovered("close an idle replay", r) }
	if opt.Ledger == nil {
		opt.Spool = nil
	}
	a.keeper = keep.New(opt.Ledger != nil, opt.Process, opt.Spool, a.say, opt.Logger)
	a.keeper.OnSettled = opt.OnSettled
	a.remote.out, a.remote.refused = map[int64]*job{}, map[string]refusal{}
	return a, nil
}

// Run audits until ctx is done. It returns an error if another process takes over the engine's audits in the ledger.
func (a *Auditor) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if a.keeper.On {
		group.Go(func() error { return a.keep(ctx) })
		if !a.opt.Observe {
			group.Go(a.loopErr(ctx, "share turns", a.shareTurns))
		}
		group.Go(a.loop(ctx, "remove old records", a.retain))
		group.Go(a.loop(ctx, "compare privacy budgets", a.meter))
	}
	group.Go(a.loop(ctx, "take queries", a.intake))
	if !a.opt.Observe {
		group.Go(a.loop(ctx, "check the shadow database", a.checkShadow))
		group.Go(a.loop(ctx, "read the epoch of the copies", a.watchEpoch))
		for range a.opt.Workers {
			group.Go(a.loop(ctx, "run turns", a.work))
		}
	}
	group.Go(a.loop(ctx, "summarize", func(ctx context.Context) { a.summarize(ctx, summaryEvery) }))
	a.runShared(ctx, group)
	err := group.Wait()
	a.closeLedger()
	return err
}

// runShared runs in a group what an auditor and a worker have in common.
func (a *Auditor) runShared(ctx context.Context, group *errgroup.Group) {
	group.Go(a.loop(ctx, "close idle replays", a.closeIdleRuns))
	if a.opt.Renew != nil {
		group.Go(a.loop(ctx, "read the catalogs", a.renew))
	}
	if a.opt.Gate != nil {
		group.Go(a.loop(ctx, "pace replays", a.opt.Gate.Run))
	}
}

// next returns the next job that is due, or nil and how long to wait.
func (a *Auditor) next() (*job, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wait := a.withinBudget(a.opt.Now()); wait > 0 {
		return nil, wait
	}
	seat, wait := a.roster.Next(a.opt.Now())
	if seat == nil {
		return nil, wait
	}
	a.wake() // another worker, for further jobs
	return a.jobs[seat.Key], 0
}

// wake wakes a worker to look for a turn.
func (a *Auditor) wake() {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

func (a *Auditor) work(ctx context.Context) {
	if a.keeper.Wait(ctx) != nil {
		return
	}
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

// checkShadow checks the shadow database until a check succeeds, and logs the faults.
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
		a.shadow, a.warnings, a.shadowUp = text, warnings, err == nil
		a.mu.Unlock()
		if err == nil {
			for _, w := range warnings {
				a.opt.Logger.Warn("shadow database", zap.String("warning", w))
			}
			return
		}
		if text != last {
			a.opt.Logger.Error("the shadow database is not ready for replays: audits wait, traffic is not affected", zap.String("error", text))
			last = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.opt.RetryAfter):
		}
	}
}
