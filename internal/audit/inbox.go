package audit

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// Offer takes one captured query like Submit, but does not wait for its recognition, which Run performs. If queries
// arrive faster than they are recognized, each owner's different queries take turns, and those beyond the bounds are
// counted as skipped.
func (a *Auditor) Offer(q capture.Query) {
	owner := schedule.Owner{User: q.User, Database: q.Database, Route: a.opt.route(q)}
	dropped := a.inbox.Put(owner, inbox.Arrival{Query: q, Look: inbox.LookAt(a.seed, q)})
	if len(dropped) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range dropped {
		a.captured++
		a.metrics.captured.Inc()
		a.turnAway(skippedBacklog, x.Query)
		a.keeper.Handled()
	}
}

// Undecoded counts a query that another process captured and this one cannot read.
func (a *Auditor) Undecoded() {
	a.keeper.Skip(keep.NotRecorded, 1, a.opt.Now())
	a.keeper.Handled()
}

// Settled returns how much of what this auditor was given has a lasting record. Without a ledger that is all that was
// recognized or counted.
func (a *Auditor) Settled() capture.Settled { return a.keeper.Settled() }

// intake submits the offered queries until ctx is done, after those that were spooled while the ledger was away, and
// those that other processes of the engine captured.
func (a *Auditor) intake(ctx context.Context) {
	tick := time.NewTicker(intakeEvery)
	defer tick.Stop()
	var others captures
	for a.awaitLedger(ctx, tick) {
		for ctx.Err() == nil && a.unspool(ctx) {
		}
		more := others.submit(ctx, a)
		for n := 0; n < inbox.MaxQueries && ctx.Err() == nil; n++ { // what is left at the end is spooled
			x, ok := a.inbox.Next()
			if !ok {
				break
			}
			a.submit(x)
			a.keeper.Handled()
		}
		if more || a.inbox.Beyond(0) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-a.inbox.Ready:
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
func (a *Auditor) awaitLedger(ctx context.Context, tick *time.Ticker) bool {
	for spooled := time.Now(); ctx.Err() == nil; {
		select {
		case <-a.keeper.Restored:
			select {
			case <-ctx.Done():
				return false
			case <-a.catalogs.Informed():
				return true
			}
		default:
		}
		if !a.keeper.Shares.Load() {
			part := 2
			if time.Since(spooled) >= spoolEvery {
				part, spooled = 0, time.Now()
			}
			a.spoolInbox(part)
		}
		select {
		case <-ctx.Done():
		case <-a.keeper.Restored:
		case <-a.inbox.Ready:
		case <-tick.C:
		}
	}
	return false
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
		a.keepSample(x)
	}
}

// keepSample keeps a sample for the ledger, with the text of the statement only if that may be shown.
func (a *Auditor) keepSample(x capture.Sample) {
	if !a.opt.ShowSQL {
		x.Text = ""
	}
	a.keeper.Sample(x)
}
