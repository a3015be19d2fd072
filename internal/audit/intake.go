package audit

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// intake takes captured queries from the inbox, the spool and the ledger to the desk.
type intake struct {
	opt       *Options
	use       useDesk
	guard     *guard.Guard
	stages    *fleet.Stages
	keeper    *keep.Keeper
	metrics   *metrics
	seed      maphash.Seed
	inbox     *inbox.Inbox
	sequences sequences
	later     later
}

// offer takes one captured query for run. Those beyond the bounds of the inbox are counted as skipped.
func (n *intake) offer(q capture.Query) {
	owner := schedule.Owner{User: q.User, Database: q.Database, Route: n.opt.route(q)}
	n.turnAway(n.inbox.Put(owner, n.arrival(q)))
}

func (n *intake) arrival(q capture.Query) inbox.Arrival {
	return inbox.Arrival{Query: q, Look: inbox.LookAt(n.seed, q)}
}

// turnAway counts queries for which there was no room as skipped.
func (n *intake) turnAway(dropped []inbox.Arrival) {
	if len(dropped) == 0 {
		return
	}
	n.use(func(d *desk.Desk) {
		for _, x := range dropped {
			d.Admission.Captured()
			n.metrics.captured.Inc()
			d.Admission.TurnAway(desk.SkippedBacklog, x.Query)
			n.keeper.Handled()
		}
	})
}

// submit takes one captured query: see Auditor.Submit. held: it waits until the catalogs are read again, after which
// release takes it.
func (n *intake) submit(x inbox.Arrival) (held bool) { return n.take(x, false) }

// take is submit of a query of which the relay is told when it has a record, if counts is set.
func (n *intake) take(x inbox.Arrival, counts bool) (held bool) {
	<-n.stages.Catalogs.Informed()
	<-n.keeper.Restored
	if len(x.Query.Then) == 0 {
		n.metrics.captured.Inc()
	}
	n.contain(&x, func() {
		x.Query = n.opt.Defaults.Resolve(context.Background(), n.stages.Recognizer.Inline(x.Query))
		r := n.stages.Recognizer.Recognize(x.Query, x.Look)
		if held = n.later.hold(x, &r, n.stages.Catalogs, counts); !held {
			n.takeIn(&x, r)
		}
	})
	return held
}

// contain counts a query as skipped if f panics.
func (n *intake) contain(x *inbox.Arrival, f func()) {
	if n.guard.Contain("submit a query", func() error { f(); return nil }) != nil {
		n.use(func(d *desk.Desk) { d.Admission.Skip(recognize.SkippedPanic, x.Query) })
	}
}

// release takes the queries that waited for a reading of the catalogs which has ended.
func (n *intake) release() {
	for _, x := range n.later.released(n.stages.Catalogs) {
		n.contain(&x.Arrival, func() {
			r := n.stages.Recognizer.Recognize(x.Query, x.Look)
			n.later.settle(&r)
			n.takeIn(&x.Arrival, r)
		})
		if x.counts {
			n.keeper.Handled()
		}
	}
}

// takeIn places a recognized query, or the queries that its code runs.
func (n *intake) takeIn(x *inbox.Arrival, r recognize.Recognized) {
	r = committed(x.Query, r)
	x.Query.Definition = capture.Read // it is not stored
	var parts []capture.Query
	if r.Reason == string(reasons.IndirectUse) {
		parts = n.stages.Recognizer.Parts(x.Query)
	}
	if len(parts) == 0 {
		n.placeIn(x, r)
	}
	for _, q := range parts {
		part := n.arrival(q)
		n.placeIn(&part, n.stages.Recognizer.Recognize(part.Query, part.Look))
	}
}

// placeIn places a query of which r was recognized.
func (n *intake) placeIn(x *inbox.Arrival, r recognize.Recognized) {
	if !n.place(&x.Query, &r, len(x.Query.Then) == 0) {
		parsed := n.stages.Recognizer.Parse(x.Query)
		n.place(&x.Query, &parsed, false)
	}
	n.follow(x.Query, r)
}

// place finds the audit of a recognized statement or creates one, and counts the statement if counts is set. It returns
// false, without another effect, if it needs the plan and r has none.
func (n *intake) place(q *capture.Query, r *recognize.Recognized, counts bool) (done bool) {
	key, route := identity(n.opt, *q, r.Key)
	n.use(func(d *desk.Desk) {
		if counts {
			d.Admission.Captured()
		}
		done = d.Admission.Arrive(*q, *r, key, route)
	})
	return done
}

// follow adds an audited query to the group of its session, and submits a recurring group that has ended as a query of
// its own. Queries without a claim belong to no group.
func (n *intake) follow(q capture.Query, r recognize.Recognized) {
	if n.sequences.tracker == nil || r.Reason != "" || r.Unclaimed != "" || r.Query.Claim == nil || len(q.Then) > 0 || q.Doubt.HasUnknownCode() {
		return
	}
	for _, group := range n.sequences.add(q, r.Key) {
		if q, ok := together(group); ok {
			n.submit(n.arrival(q))
		}
	}
}

// run submits the offered queries until ctx is done, after those that were spooled while the ledger was away, and those
// that other processes of the engine captured.
func (n *intake) run(ctx context.Context) {
	tick := time.NewTicker(intakeEvery)
	defer tick.Stop()
	var others captures
	defer n.returnHeld()
	for n.awaitLedger(ctx, tick) {
		for ctx.Err() == nil && n.unspool(ctx) {
		}
		more := others.submit(ctx, n)
		for i := 0; i < inbox.MaxQueries && ctx.Err() == nil; i++ { // what is left at the end is spooled
			x, ok := n.inbox.Next()
			if !ok {
				break
			}
			if !n.take(x, true) {
				n.keeper.Handled()
			}
		}
		n.release()
		if more || n.inbox.Beyond(0) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-n.inbox.Ready:
		case <-tick.C:
		}
	}
}

// intakeEvery is the interval at which the spool is read, and the inbox looked at while the ledger is away.
const intakeEvery = 100 * time.Millisecond

// spoolEvery is the interval at which the inbox is spooled while the ledger is away, unless it fills earlier.
const spoolEvery = time.Second

// awaitLedger waits until queries can be submitted, and spools what arrives meanwhile, unless recordOnly writes it to
// the ledger. It returns false if ctx is done.
func (n *intake) awaitLedger(ctx context.Context, tick *time.Ticker) bool {
	for spooled := time.Now(); ctx.Err() == nil; {
		select {
		case <-n.keeper.Restored:
			select {
			case <-ctx.Done():
				return false
			case <-n.stages.Catalogs.Informed():
				return true
			}
		default:
		}
		if !n.keeper.Shares.Load() {
			part := 2
			if time.Since(spooled) >= spoolEvery {
				part, spooled = 0, time.Now()
			}
			n.spoolInbox(part, false)
		}
		select {
		case <-ctx.Done():
		case <-n.keeper.Restored:
		case <-n.inbox.Ready:
		case <-tick.C:
		}
	}
	return false
}

// leaveOut counts a spooled query during which auditors ended.
func (n *intake) leaveOut() {
	n.opt.Logger.Error("a spooled query is not submitted: the auditor ended twice while it parsed the statement")
	n.use(func(d *desk.Desk) {
		d.Admission.Captured()
		n.metrics.captured.Inc()
		d.Admission.Skip(recognize.SkippedPanic, capture.Query{})
	})
}
