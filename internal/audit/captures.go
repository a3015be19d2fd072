package audit

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// submitAll submits each query of the content of a spooled file or of a Capture for which try returns true; the others
// are counted as left out.
func (n *intake) submitAll(content []byte, try func(part int) bool) {
	keep.EachQuery(content, func(part int, one []byte) {
		q, err := capture.DecodeBinary(one)
		switch {
		case !try(part):
			n.leaveOut()
		case err != nil: // another version wrote it
			n.keeper.Skip(keep.NotRecorded, 1, n.opt.Now())
		default:
			n.submit(n.arrival(q))
		}
		n.spoolInbox(2, false)
	})
}

// captures reads from the ledger what other processes of the engine captured. Only intake uses it.
type captures struct {
	more  bool
	asked time.Time
}

// submit submits the queries of the first Capture, and reports whether there may be another one. The Capture is removed
// with the record of its observations, in one transaction.
func (c *captures) submit(ctx context.Context, n *intake) bool {
	if !n.keeper.On || !c.more && time.Since(c.asked) < keepEvery || !n.keeper.Ready() {
		return false
	}
	c.asked = time.Now()
	engine := n.keeper.Engine.Load()
	next, found, err := engine.NextCapture(ctx)
	if err != nil && ctx.Err() == nil {
		n.keeper.Wrote(err)
	}
	c.more = found && err == nil && n.keeper.Record(ctx) == nil
	if !c.more {
		return false
	}
	n.keeper.Hold()
	if next.Queries == nil && next.Statements > 0 {
		n.opt.Logger.Error("captured queries of another process are damaged, or a newer version wrote them: they are not audited", zap.Int("statements", next.Statements))
		n.keeper.Skip(keep.NotRecorded, uint64(next.Statements), n.opt.Now()) //nolint:gosec // positive
	}
	n.submitAll(next.Queries, func(part int) bool {
		if next.Again && !slices.Contains(next.LeftOut, int32(part)) { //nolint:gosec // bounded by the inbox
			_ = engine.Part(ctx, next.ID, part) // a failure of the ledger shows below
			return true
		}
		return !next.Again
	})
	if next.Again {
		_ = engine.Part(context.WithoutCancel(ctx), next.ID, -1)
	}
	n.keeper.Submitted("", next.ID)
	c.more = n.keeper.Record(ctx) == nil
	return c.more
}
