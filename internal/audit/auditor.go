package audit

import (
	"context"
	"crypto/rand"
	"hash/maphash"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// noClaimTrials bounds the trials of a query without a claim: its estimate is shown, but there can be no violation.
const noClaimTrials = 500

// Auditor audits captured queries. It is safe for concurrent use.
type Auditor struct {
	opt     Options
	metrics *metrics
	seed    maphash.Seed
	inbox   *inbox.Inbox
	ready   chan struct{} // wakes workers; capacity 1
	guard   guard

	stages
	keeper   *keep.Keeper
	remote   remote
	deployed chan struct{} // a label was posted; capacity 1

	sequences sequences

	mu lock // guards the desk and the fields below
	desk
	shadow    string
	warnings  []string
	catalog   string // why a catalog could not be read the last time; "" = all were read
	short     shortage
	budgets   []view.PrivacyBudgetState
	overspent map[overspent]bool // reported, and not yet noted in the ledger; of meter alone
}

// New returns an Auditor. Run starts it.
func New(opt Options) (*Auditor, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	a := &Auditor{
		opt: opt, ready: make(chan struct{}, 1), deployed: make(chan struct{}, 1), overspent: map[overspent]bool{},
		seed: maphash.MakeSeed(), inbox: inbox.New(inbox.MaxQueries, inbox.MaxBytes),
	}
	a.mu.a, a.desk = a, newDesk(&a.opt, rand.Text())
	a.guard = guard{log: opt.Logger, say: a.say}
	a.sequences = newSequences(opt.SequenceWindow)
	var err error
	if a.metrics, err = newMetrics(opt.Metrics, a); err != nil {
		return nil, err
	}
	a.stages = newStages(&a.opt, &a.guard, a.metrics.replayMetrics, a.environmentChanged)
	a.catalogs.Failed, a.catalogs.Adopted = a.reportCatalog, func(changed bool) {
		a.locked(func() { a.adoptCatalogs(changed) })
	}
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
			group.Go(a.guard.loopErr(ctx, "share turns", a.shareTurns))
		}
		group.Go(a.guard.loop(ctx, "remove old records", a.retain))
		group.Go(a.guard.loop(ctx, "compare privacy budgets", a.meter))
	}
	group.Go(a.guard.loop(ctx, "take queries", a.intake))
	if !a.opt.Observe {
		group.Go(a.guard.loop(ctx, "check the shadow database", func(ctx context.Context) { checkShadow(ctx, &a.opt, a.shadowChecked) }))
		group.Go(a.guard.loop(ctx, "read the epoch of the copies", a.watchEpoch))
		for range a.opt.Workers {
			group.Go(a.guard.loop(ctx, "run turns", a.work))
		}
	}
	group.Go(a.guard.loop(ctx, "summarize", func(ctx context.Context) { a.summarize(ctx, summaryEvery) }))
	a.stages.run(ctx, group, &a.opt, &a.guard)
	err := group.Wait()
	a.closeLedger()
	return err
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
	a.do(wake{}) // another worker, for further jobs
	return a.jobs[seat.Key], 0
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

// shadowChecked takes the result of a check of the shadow database.
func (a *Auditor) shadowChecked(warnings []string, fault string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shadow, a.warnings, a.shadowUp = fault, warnings, fault == ""
}

// checkShadow checks the shadow database until a check succeeds, logs the faults and passes every result on.
func checkShadow(ctx context.Context, o *Options, checked func(warnings []string, fault string)) {
	last := ""
	for {
		warnings, err := o.Player.Check(ctx, o.D0, o.D1, o.Tables)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = o.say(err)
		}
		checked(warnings, text)
		if err == nil {
			for _, w := range warnings {
				o.Logger.Warn("shadow database", zap.String("warning", w))
			}
			return
		}
		if text != last {
			o.Logger.Error("the shadow database is not ready for replays: audits wait, traffic is not affected", zap.String("error", text))
			last = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(o.RetryAfter):
		}
	}
}
