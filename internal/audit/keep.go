package audit

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// keepEvery is the interval at which observations are written to the ledger, and failed writes are retried.
const keepEvery = time.Second

// ledgerError is an error of the ledger: the audit waits.
type ledgerError struct{ error }

func (e *ledgerError) Unwrap() error { return e.error }

// keep opens the ledger, restores the audits, and then writes observations and what could not be written before. It
// returns an error if another process takes over, otherwise when ctx is done.
func (a *Auditor) keep(ctx context.Context) error {
	defer a.keeper.Release() // at the end nothing waits any more
	if !a.openLedger(ctx) {
		return nil
	}
	tick, asked := time.NewTicker(keepEvery), time.Time{}
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := a.contain("write to the ledger", func() error { return a.flush(ctx) })
			if err == nil {
				err = a.contain("read decisions of operators", func() error { return errors.Join(a.recallAcceptances(ctx), a.reaudit(ctx)) })
			}
			if err == nil && time.Since(asked) >= othersEvery {
				asked, err = time.Now(), a.contain("read the other processes", func() error { return a.readOthers(ctx) })
			}
			switch {
			case errors.Is(err, ledger.ErrReplaced):
				return err
			case err != nil && ctx.Err() == nil:
				a.keeper.SpoolObservations()
			}
		}
	}
}

// closeLedger writes what is waiting and releases the ledger.
func (a *Auditor) closeLedger() {
	defer a.keeper.CloseSpool()
	ctx, cancel := context.WithTimeout(context.Background(), a.opt.CloseTimeout)
	defer cancel()
	if r := a.keeper.Recorder.Load(); r != nil {
		_ = a.handOver(ctx) // what it cannot write is spooled below
		defer r.Close()
	}
	a.spoolInbox(0)
	engine := a.keeper.Engine.Load()
	if engine == nil {
		a.keeper.SpoolObservations()
		return
	}
	if a.flush(ctx) != nil {
		a.keeper.SpoolObservations()
	}
	engine.Close()
}

// openLedger opens the ledger and restores the audits; it repeats that until it succeeds. It returns false if ctx is
// done.
func (a *Auditor) openLedger(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.catalogs.Informed():
	}
	for last := ""; ; {
		engine, err := a.opt.Ledger(ctx)
		if err == nil {
			a.keeper.Engine.Store(engine)
			a.keeper.StopRecordOnly()
			if err = a.contain("restore audits", func() error { return a.takeOver(ctx, engine) }); err == nil {
				a.keeper.SetTrouble("")
				a.keeper.Release()
				a.locked(func() { a.review(nil) })
				return true
			}
			a.keeper.Engine.Store(nil)
			engine.Close()
		}
		if errors.Is(err, ledger.ErrInUse) && a.opt.Recorder != nil {
			if err = a.recordOnly(ctx); err == nil && ctx.Err() == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return false
		}
		text := a.say(err)
		if a.keeper.SetTrouble(text); text != last {
			a.opt.Logger.Error("the ledger cannot be used: audits wait, traffic is not affected", zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
			last = text
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(a.opt.RetryAfter):
		}
	}
}

// takeOver reads from the ledger what earlier processes have left.
func (a *Auditor) takeOver(ctx context.Context, engine *ledger.Engine) error {
	if err := engine.SetProcess(ctx, a.opt.Process); err != nil {
		return err
	}
	if _, err := a.recallLabel(ctx); err != nil {
		return err
	}
	if err := a.keeper.Record(ctx); err != nil { // audits may wait in the spool
		return err
	}
	if err := a.restore(ctx, engine); err != nil {
		return err
	}
	return errors.Join(a.startBudget(ctx, engine), a.adopt(ctx, engine), a.recallAcceptances(ctx))
}

// put notes the present state of a job, which save writes.
func (d *desk) put(j *job, p *saved.Progress) {
	if d.opt.Ledger == nil || p == nil && j.stored {
		return
	}
	audit, err := stored(j, p)
	if err != nil {
		return // a part without a binary form: no value of a job has one
	}
	j.Kept = false
	d.do(write{audit})
}

// recordBeginning records in the ledger that a job's evidence begins, and keeps the evidence before there. It returns
// how often any audit's has, and how often that ended in a violation.
func (a *Auditor) recordBeginning(ctx context.Context, j *job) (fleet ledger.Fleet, err error) {
	processes := j.processes + 1
	if a.keeper.On {
		if err := a.keeper.Write(ctx, j.Key); err != nil { // what the ledger keeps of the evidence before
			return fleet, &ledgerError{err}
		}
		var row ledger.Audit
		var err error
		a.locked(func() { row, err = stored(j, nil) })
		if err == nil {
			row.State, row.Progress = string(view.Running), nil
			processes, fleet, err = a.keeper.Engine.Load().Audits.Begin(ctx, row)
		}
		if err != nil {
			return fleet, &ledgerError{err}
		}
	} else if a.opt.Family && j.plan.Claim != nil {
		a.locked(func() {
			a.begun++
			fleet = ledger.Fleet{Begun: a.begun, Reported: a.reported}
		})
	}
	a.locked(func() { j.processes = processes })
	return fleet, nil
}

// save writes the state that put noted for a job. A failure is retried later.
func (a *Auditor) save(ctx context.Context, j *job) {
	if a.keeper.On {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if a.keeper.Write(ctx, j.Key) == nil {
			a.mu.Lock()
			j.Kept = !a.keeper.Waits(j.Key)
			a.mu.Unlock()
		}
	}
}

// flush writes what is waiting.
func (a *Auditor) flush(ctx context.Context) error {
	if err := a.keeper.Record(ctx); err != nil {
		return err
	}
	if err := a.saveSpent(ctx); err != nil {
		return err
	}
	return a.keeper.WriteAll(ctx)
}
