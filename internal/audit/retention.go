package audit

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// retainEvery is the interval at which old records are removed from the ledger.
const retainEvery = time.Hour

// retention removes old records from the ledger.
type retention struct {
	opt    *Options
	use    useDesk
	keeper *keep.Keeper
}

// retain removes old records from the ledger until ctx is done.
func (r *retention) retain(ctx context.Context) {
	if !r.keeper.On || r.opt.Retention <= 0 || r.keeper.Wait(ctx) != nil {
		return
	}
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		r.prune(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prune removes what is too old now, in small batches. Queries that have an audit in this process stay.
func (r *retention) prune(ctx context.Context) {
	engine := r.keeper.Engine.Load()
	if engine == nil { // the process ends
		return
	}
	var sum view.Removed
	for more := true; more && ctx.Err() == nil; {
		var keys []string
		r.use(func(d *desk.Desk) { keys = d.Overview.Keys() })
		p, err := engine.Prune(ctx, r.opt.Now(), r.opt.Retention, keys)
		sum.Queries += p.Queries
		sum.Rows += p.Rows
		more = p.More
		if err != nil {
			if ctx.Err() == nil {
				r.opt.Logger.Warn("old records cannot be removed from the ledger", zap.String("error", r.opt.say(err)), zap.Duration("retry_in", retainEvery))
			}
			break
		}
	}
	if sum == (view.Removed{}) {
		return
	}
	r.keeper.Removed(sum)
	r.opt.Logger.Info("records older than ledger.retention were removed from the ledger",
		zap.Int64("queries", sum.Queries), zap.Int64("other_rows", sum.Rows), zap.Duration("retention", r.opt.Retention))
}
