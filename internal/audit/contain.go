package audit

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// afterPanic is the pause before a part of the auditor that has panicked runs again.
const afterPanic = time.Second

// errInternal is what the status shows of an audit whose turn panicked.
var errInternal = errors.New("internal error: see the log")

// recovered counts and logs a panic. It takes no lock.
func (a *Auditor) recovered(where string, r any) {
	a.panics.Add(1)
	a.opt.Logger.Error("panic recovered", zap.String("where", where), zap.String("panic", a.say(withheld.Recovered(r))), zap.Stack("stack"))
}

// contain calls f. If f panics, it returns recognize.ErrPanic.
func (a *Auditor) contain(where string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			a.recovered(where, r)
			err = recognize.ErrPanic
		}
	}()
	return f()
}

// locked calls f with Auditor.mu held, and releases it also if f panics.
func (a *Auditor) locked(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// loop returns a function for a goroutine: it calls f, which runs until ctx is done, and calls it again after a panic.
func (a *Auditor) loop(ctx context.Context, what string, f func(context.Context)) func() error {
	return a.loopErr(ctx, what, func(ctx context.Context) error { f(ctx); return nil })
}

// loopErr is loop for a function that may end with an error.
func (a *Auditor) loopErr(ctx context.Context, what string, f func(context.Context) error) func() error {
	return func() error {
		for {
			err := a.contain(what, func() error { return f(ctx) })
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

// inTurn calls f in a job's turn. If f panics, the audit is set aside; f then returns false.
func (a *Auditor) inTurn(j *job, f func()) (whole bool) {
	defer func() {
		if r := recover(); r != nil {
			a.recovered("audit "+j.id, r)
			_ = a.contain("set aside audit "+j.id, func() error { a.breakOff(j); return nil })
		}
	}()
	f()
	return true
}

// breakOff ends the turn of a job that panicked, unless it has ended. The ledger keeps the evidence.
func (a *Auditor) breakOff(j *job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.wake()
	j.given = nil
	now := a.opt.Now()
	switch {
	case !j.Busy():
	case j.Phase() == schedule.Watching:
		a.watchFailed(j, errInternal)
		a.roster.Rest(&j.Audit, turnTime, now)
	case j.Measuring:
		a.roster.Return(&j.Audit, 0, now)
		a.endMeasurement(j, errInternal.Error())
	default:
		a.markInconclusive(j, errInternal)
	}
}
