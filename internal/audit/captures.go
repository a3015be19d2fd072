package audit

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

const (
	// othersEvery is the interval at which the process that audits the engine reads what the others are and the label
	// of a deploy that one of them received.
	othersEvery = 5 * time.Second
	// recorderGone is the age of its last write at which a process counts as ended.
	recorderGone = 5 * time.Minute
)

// submitAll submits each query of the content of a spooled file or of a Capture for which try returns true; the others
// are counted as left out.
func (a *Auditor) submitAll(content []byte, try func(part int) bool) {
	keep.EachQuery(content, func(part int, one []byte) {
		q, err := capture.DecodeBinary(one)
		switch {
		case !try(part):
			a.leaveOut()
		case err != nil: // another version wrote it
			a.keeper.Skip(keep.NotRecorded, 1, a.opt.Now())
		default:
			a.submit(inbox.Arrival{Query: q, Look: inbox.LookAt(a.seed, q)})
		}
		a.spoolInbox(2)
	})
}

// captures reads from the ledger what other processes of the engine captured. Only intake uses it.
type captures struct {
	more  bool
	asked time.Time
}

// submit submits the queries of the first Capture, and reports whether there may be another one. The Capture is removed
// with the record of its observations, in one transaction.
func (c *captures) submit(ctx context.Context, a *Auditor) bool {
	if !a.keeper.On || !c.more && time.Since(c.asked) < keepEvery || !a.keeper.Ready() {
		return false
	}
	c.asked = time.Now()
	engine := a.keeper.Engine.Load()
	next, found, err := engine.NextCapture(ctx)
	if err != nil && ctx.Err() == nil {
		a.keeper.Wrote(err)
	}
	c.more = found && err == nil && a.keeper.Record(ctx) == nil
	if !c.more {
		return false
	}
	a.keeper.Hold()
	if next.Queries == nil && next.Statements > 0 {
		a.opt.Logger.Error("captured queries of another process are damaged, or a newer version wrote them: they are not audited", zap.Int("statements", next.Statements))
		a.keeper.Skip(keep.NotRecorded, uint64(next.Statements), a.opt.Now()) //nolint:gosec // positive
	}
	a.submitAll(next.Queries, func(part int) bool {
		if next.Again && !slices.Contains(next.LeftOut, int32(part)) { //nolint:gosec // bounded by the inbox
			_ = engine.Part(ctx, next.ID, part) // a failure of the ledger shows below
			return true
		}
		return !next.Again
	})
	if next.Again {
		_ = engine.Part(context.WithoutCancel(ctx), next.ID, -1)
	}
	a.keeper.Submitted("", next.ID)
	c.more = a.keeper.Record(ctx) == nil
	return c.more
}

// readOthers reads from the ledger which processes record for this one, and a label that one of them received.
func (a *Auditor) readOthers(ctx context.Context) error {
	all, err := a.keeper.Engine.Load().Recorders(ctx, recorderGone)
	if err != nil {
		return err
	}
	before := a.keeper.SetOthers(all)
	for _, p := range all {
		if keep.Differs(p, a.opt.Process) && !slices.ContainsFunc(before, func(q ledger.Process) bool { return q.Host == p.Host && q.Configuration == p.Configuration }) {
			a.opt.Logger.Warn("a process that captures queries of this engine has another configuration of claims, tables, copies or audits: the one of this process applies; use one configuration for all",
				zap.String("engine_recorder", p.Host))
		}
	}
	changed, err := a.recallLabel(ctx)
	if changed {
		a.readEnginesSoon()
	}
	return err
}
