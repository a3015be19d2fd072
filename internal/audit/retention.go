package audit

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// retainEvery is the interval at which old records are removed from the ledger.
const retainEvery = time.Hour

// retain removes old records from the ledger until ctx is done.
func (a *Auditor) retain(ctx context.Context) {
	if !a.keeper.On || a.opt.Retention <= 0 || a.keeper.Wait(ctx) != nil {
		return
	}
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		a.prune(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prune removes what is too old now, in small batches. Queries that have an audit in this process stay.
func (a *Auditor) prune(ctx context.Context) {
	engine := a.keeper.Engine.Load()
	if engine == nil { // the process ends
		return
	}
	var sum view.Removed
	for more := true; more && ctx.Err() == nil; {
		a.mu.Lock()
		keep := slices.Collect(maps.Keys(a.jobs))
		a.mu.Unlock()
		p, err := engine.Prune(ctx, a.opt.Now(), a.opt.Retention, keep)
		sum.Queries += p.Queries
		sum.Rows += p.Rows
		more = p.More
		if err != nil {
			if ctx.Err() == nil {
				a.opt.Logger.Warn("old records cannot be removed from the ledger", zap.String("error", a.say(err)), zap.Duration("retry_in", retainEvery))
			}
			break
		}
	}
	if sum == (view.Removed{}) {
		return
	}
	a.keeper.Removed(sum)
	a.opt.Logger.Info("records older than ledger.retention were removed from the ledger",
		zap.Int64("queries", sum.Queries), zap.Int64("other_rows", sum.Rows), zap.Duration("retention", a.opt.Retention))
}
