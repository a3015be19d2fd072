package fleet

import (
	"context"
	"time"
)

// Local runs turns in this process.
type Local struct{ *turns }

// Run runs one turn at a time until ctx is done.
func (l *Local) Run(ctx context.Context) {
	if l.opt.Keeper.Wait(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		g, ok, wait := l.next()
		if !ok {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-l.opt.Ready:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		l.turn(ctx, g)
	}
}
