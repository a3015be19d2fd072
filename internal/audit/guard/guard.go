// Package guard recovers panics.
package guard

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

// Guard keeps panics from ending the process. It is safe for concurrent use.
type Guard struct {
	Log    *zap.Logger
	Say    func(error) string // returns the message of an error
	panics atomic.Uint64
}

// Panics returns how many panics were recovered.
func (g *Guard) Panics() uint64 { return g.panics.Load() }

// Recovered counts and logs a panic. It takes no lock.
func (g *Guard) Recovered(where string, r any) {
	g.panics.Add(1)
	g.Log.Error("panic recovered", zap.String("where", where), zap.String("panic", g.Say(withheld.Recovered(r))), zap.Stack("stack"))
}

// Contain calls f. If f panics, it returns recognize.ErrPanic.
func (g *Guard) Contain(where string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			g.Recovered(where, r)
			err = recognize.ErrPanic
		}
	}()
	return f()
}

// Loop returns a function for a goroutine: it calls f, which runs until ctx is done, and calls it again after a panic.
func (g *Guard) Loop(ctx context.Context, what string, f func(context.Context)) func() error {
	return g.LoopErr(ctx, what, func(ctx context.Context) error { f(ctx); return nil })
}

// LoopErr is Loop for a function that may end with an error.
func (g *Guard) LoopErr(ctx context.Context, what string, f func(context.Context) error) func() error {
	return func() error {
		for {
			err := g.Contain(what, func() error { return f(ctx) })
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
