package audit

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// afterPanic is the pause before a part of the auditor that has panicked runs again.
const afterPanic = time.Second

// guard keeps panics from ending the process.
type guard struct {
	log    *zap.Logger
	say    func(error) string
	panics atomic.Uint64
}

// recovered counts and logs a panic. It takes no lock.
func (g *guard) recovered(where string, r any) {
	g.panics.Add(1)
	g.log.Error("panic recovered", zap.String("where", where), zap.String("panic", g.say(withheld.Recovered(r))), zap.Stack("stack"))
}

// contain calls f. If f panics, it returns recognize.ErrPanic.
func (g *guard) contain(where string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			g.recovered(where, r)
			err = recognize.ErrPanic
		}
	}()
	return f()
}

// loop returns a function for a goroutine: it calls f, which runs until ctx is done, and calls it again after a panic.
func (g *guard) loop(ctx context.Context, what string, f func(context.Context)) func() error {
	return g.loopErr(ctx, what, func(ctx context.Context) error { f(ctx); return nil })
}

// loopErr is loop for a function that may end with an error.
func (g *guard) loopErr(ctx context.Context, what string, f func(context.Context) error) func() error {
	return func() error {
		for {
			err := g.contain(what, func() error { return f(ctx) })
			if !errors.Is(err, recognize.ErrPanic) {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(afterPanic):
			}
		}
	}
}
