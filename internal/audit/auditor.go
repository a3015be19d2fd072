package audit

import (
	"context"
	"crypto/rand"
	"hash/maphash"

	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// Auditor audits captured queries. It is safe for concurrent use.
type Auditor struct {
	opt          Options
	guard        guard.Guard
	stages       fleet.Stages
	fleet        *fleet.Fleet
	keeper       *keep.Keeper
	intake       *intake
	keeping      *keeping
	retention    *retention
	metering     *metering
	surroundings *surroundings
	statuses     *statuses
}

// New returns an Auditor. Run starts it.
func New(opt Options) (*Auditor, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	if opt.Ledger == nil {
		opt.Spool = nil
	}
	a := &Auditor{opt: opt}
	o := &a.opt
	a.guard = guard.Guard{Log: opt.Logger, Say: o.say}
	a.keeper = keep.New(opt.Ledger != nil, opt.Process, opt.Spool, o.say, opt.Logger)
	a.keeper.OnSettled = opt.OnSettled
	shared := &sharedDesk{desk: desk.New(deskOptions(o, &a.guard), rand.Text()), now: opt.Now}
	use := shared.use
	pace := &pace{opt: o, use: use, keeper: a.keeper}
	a.metering = &metering{opt: o, keeper: a.keeper, overspent: map[overspent]bool{}}
	metrics, err := newMetrics(opt.Metrics, &gauges{opt: o, use: use, guard: &a.guard, keeper: a.keeper, pace: pace, budgets: a.metering})
	if err != nil {
		return nil, err
	}
	a.surroundings = &surroundings{opt: o, use: use, stages: &a.stages, keeper: a.keeper, deployed: make(chan struct{}, 1)}
	a.stages = newStages(o, &a.guard, metrics.replayMetrics, a.surroundings.environmentChanged)
	a.stages.Catalogs.Failed, a.stages.Catalogs.Adopted = a.surroundings.reportCatalog, func(changed bool) {
		use(func(d *desk.Desk) { d.Engines.CatalogsAdopted(changed) })
	}
	ready := make(chan struct{}, 1)
	shared.env = a.stages.Environment.Now
	shared.perform = (&effects{opt: o, keeper: a.keeper, stages: &a.stages, metrics: metrics, ready: ready, read: a.surroundings.readSoon}).perform
	a.fleet = a.newFleet(use, pace, ready)
	a.intake = &intake{
		opt: o, use: use, guard: &a.guard, stages: &a.stages, keeper: a.keeper, metrics: metrics,
		seed: maphash.MakeSeed(), inbox: inbox.New(inbox.MaxQueries, inbox.MaxBytes), sequences: newSequences(opt.SequenceWindow),
	}
	a.retention = &retention{opt: o, use: use, keeper: a.keeper}
	a.keeping = &keeping{
		opt: o, use: use, guard: &a.guard, stages: &a.stages, keeper: a.keeper, fleet: a.fleet, intake: a.intake, surroundings: a.surroundings, pace: pace,
		restorer:  &restorer{opt: o, use: use, guard: &a.guard, stages: &a.stages, keeper: a.keeper},
		operators: &operators{opt: o, use: use, stages: &a.stages, keeper: a.keeper},
	}
	a.statuses = &statuses{
		opt: o, use: use, guard: &a.guard, keeper: a.keeper, fleet: a.fleet, surroundings: a.surroundings, pace: pace, budgets: a.metering, resting: a.stages.Slots.Resting, unexamined: a.intake.unexamined,
	}
	return a, nil
}

// deskOptions returns the options of the desk.
func deskOptions(o *Options, g *guard.Guard) *desk.Options {
	return &desk.Options{
		D0: o.D0, D1: o.D1, Twin: o.Twin, ControlShare: o.ControlShare, Analysis: o.Analysis, Family: o.Family, Discoveries: o.Discoveries, MeasureTrials: o.MeasureTrials, Hoist: o.Hoist,
		MaxAudits: o.MaxAudits, PerShape: o.PerShape, Memory: o.Memory, RetryAfter: o.RetryAfter, Repeat: o.Repeat, WatchShare: o.WatchShare, WatchEvery: o.WatchEvery,
		Observe: o.Observe, Kept: o.Ledger != nil, Findings: o.OnFinding != nil, Suspected: o.Suspected, ShowSQL: o.ShowSQL, ShowValues: o.ShowValues,
		Engine: o.Engine != nil, Production: o.Production != nil, Say: o.say, Contain: g.Contain, Seed: o.Seed,
	}
}

// newFleet returns who runs the turns. ready is signalled when one may be due.
func (a *Auditor) newFleet(use useDesk, pace *pace, ready <-chan struct{}) *fleet.Fleet {
	o := &a.opt
	return fleet.New(fleet.Options{
		Stages: a.stages, Use: use, Keeper: a.keeper, Guard: &a.guard, Wait: pace.wait, Ready: ready,
		Renews: o.Renew != nil, Key: func(q capture.Query, planKey string) string { key, _ := identity(o, q, planKey); return key },
		Announce: o.Announce, Seed: o.Seed, Budget: o.Budget, Gate: o.Gate, RetryAfter: o.RetryAfter, RescueAfter: o.RescueAfter, Now: o.Now, Say: o.say, Logger: o.Logger,
	})
}

// Run audits until ctx is done. It returns an error if another process takes over the engine's audits in the ledger.
func (a *Auditor) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if a.keeper.On {
		group.Go(func() error { return a.keeping.run(ctx) })
		if !a.opt.Observe {
			group.Go(a.guard.LoopErr(ctx, "share turns", a.fleet.Workers.Run))
		}
		group.Go(a.guard.Loop(ctx, "remove old records", a.retention.retain))
		group.Go(a.guard.Loop(ctx, "compare privacy budgets", a.metering.run))
	}
	group.Go(a.guard.Loop(ctx, "take queries", a.intake.run))
	if !a.opt.Observe {
		group.Go(a.guard.Loop(ctx, "check the shadow database", func(ctx context.Context) { checkShadow(ctx, &a.opt, a.surroundings.shadowChecked) }))
		group.Go(a.guard.Loop(ctx, "read the copies and the engines", a.surroundings.run))
		for range a.opt.Workers {
			group.Go(a.guard.Loop(ctx, "run turns", a.fleet.Local.Run))
		}
	}
	group.Go(a.guard.Loop(ctx, "summarize", func(ctx context.Context) { a.statuses.summarize(ctx, summaryEvery) }))
	runStages(ctx, &a.stages, group, &a.opt, &a.guard)
	err := group.Wait()
	a.keeping.close()
	return err
}

// Offer takes one captured query like Submit, but does not wait for its recognition, which Run performs. If queries
// arrive faster than they are recognized, each owner's different queries take turns, and those beyond the bounds are
// counted as skipped.
func (a *Auditor) Offer(q capture.Query) { a.intake.offer(q) }

// Submit takes one captured query: it recognizes it as that of an audit, admits a new audit, or counts it as skipped.
// It parses SQL that it has not seen recently, and hostile text can crash the parser: call it only in a process that
// may crash. With Options.Renew and Options.Ledger it waits until Run has called them once.
func (a *Auditor) Submit(q capture.Query) { a.intake.submit(a.intake.arrival(q)) }

// Undecoded counts a query that another process captured and this one cannot read.
func (a *Auditor) Undecoded() {
	a.keeper.Skip(keep.NotRecorded, 1, a.opt.Now())
	a.keeper.Handled()
}

// Uncaptured adds statements that did not reach the auditor, by reason, to what the ledger counts as skipped. Status
// leaves them out: the relay has them.
func (a *Auditor) Uncaptured(statements map[string]uint64) {
	now := a.opt.Now()
	for reason, n := range statements {
		if n > 0 {
			a.keeper.Skip(reason, n, now)
			a.keeper.Counted(n)
		}
	}
}

// Samples adds samples of statements that did not reach the auditor to those of the ledger.
func (a *Auditor) Samples(all []capture.Sample) {
	for _, x := range all {
		keepSample(a.keeper, &a.opt, x)
	}
}

// Settled returns how much of what this auditor was given has a lasting record. Without a ledger that is all that was
// recognized or counted.
func (a *Auditor) Settled() capture.Settled { return a.keeper.Settled() }

// Deploy records that another version of the engine was deployed, under a label: audits begin again on it. It does not
// wait.
func (a *Auditor) Deploy(label string) { a.surroundings.deploy(label) }

// Status returns the present state.
func (a *Auditor) Status() view.Status { return a.statuses.now() }
