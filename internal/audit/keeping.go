package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// keepEvery is the interval at which observations are written to the ledger, and failed writes are retried.
const keepEvery = time.Second

const (
	// othersEvery is the interval at which the process that audits the engine reads what the others are and the label
	// of a deploy that one of them received.
	othersEvery = 5 * time.Second
	// recorderGone is the age of its last write at which a process counts as ended.
	recorderGone = 5 * time.Minute
)

// keeping keeps in the ledger what must outlive the process, and reads there what others have written.
type keeping struct {
	opt          *Options
	use          useDesk
	guard        *guard.Guard
	stages       *fleet.Stages
	keeper       *keep.Keeper
	fleet        *fleet.Fleet
	intake       *intake
	surroundings *surroundings
	pace         *pace
	restorer     *restorer
	operators    *operators
}

// run opens the ledger, restores the audits, and then writes observations and what could not be written before. It
// returns an error if another process takes over, otherwise when ctx is done.
func (k *keeping) run(ctx context.Context) error {
	defer k.keeper.Release() // at the end nothing waits any more
	if !k.open(ctx) {
		return nil
	}
	tick, asked := time.NewTicker(keepEvery), time.Time{}
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := k.guard.Contain("write to the ledger", func() error { return k.flush(ctx) })
			if err == nil {
				err = k.guard.Contain("read decisions of operators", func() error { return errors.Join(k.operators.recallAcceptances(ctx), k.operators.reaudit(ctx)) })
			}
			if err == nil && time.Since(asked) >= othersEvery {
				asked, err = time.Now(), k.guard.Contain("read the other processes", func() error { return k.readOthers(ctx) })
			}
			switch {
			case errors.Is(err, ledger.ErrReplaced):
				return err
			case err != nil && ctx.Err() == nil:
				k.keeper.SpoolObservations()
			}
		}
	}
}

// close writes what is waiting and releases the ledger.
func (k *keeping) close() {
	defer k.keeper.CloseSpool()
	ctx, cancel := context.WithTimeout(context.Background(), k.opt.CloseTimeout)
	defer cancel()
	if r := k.keeper.Recorder.Load(); r != nil {
		_ = k.handOver(ctx) // what it cannot write is spooled below
		defer r.Close()
	}
	k.intake.spoolInbox(0, true)
	engine := k.keeper.Engine.Load()
	if engine == nil {
		k.keeper.SpoolObservations()
		return
	}
	if k.flush(ctx) != nil {
		k.keeper.SpoolObservations()
	}
	engine.Close()
}

// open opens the ledger and restores the audits; it repeats that until it succeeds. It returns false if ctx is
// done.
func (k *keeping) open(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-k.stages.Catalogs.Informed():
	}
	for last := ""; ; {
		engine, err := k.opt.Ledger(ctx)
		if err == nil {
			k.keeper.Engine.Store(engine)
			k.keeper.StopRecordOnly()
			if err = k.guard.Contain("restore audits", func() error { return k.takeOver(ctx, engine) }); err == nil {
				k.keeper.SetTrouble("")
				k.keeper.Release()
				k.use(func(d *desk.Desk) { d.Engines.Review() })
				return true
			}
			k.keeper.Engine.Store(nil)
			engine.Close()
		}
		if errors.Is(err, ledger.ErrInUse) && k.opt.Recorder != nil {
			if err = k.recordOnly(ctx); err == nil && ctx.Err() == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return false
		}
		text := k.opt.say(err)
		if k.keeper.SetTrouble(text); text != last {
			k.opt.Logger.Error("the ledger cannot be used: audits wait, traffic is not affected", zap.String("error", text), zap.Duration("retry_in", k.opt.RetryAfter))
			last = text
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(k.opt.RetryAfter):
		}
	}
}

// takeOver reads from the ledger what earlier processes have left.
func (k *keeping) takeOver(ctx context.Context, engine *ledger.Engine) error {
	if err := engine.SetProcess(ctx, k.opt.Process); err != nil {
		return err
	}
	if _, err := k.surroundings.recallLabel(ctx); err != nil {
		return err
	}
	if err := k.keeper.Record(ctx); err != nil { // audits may wait in the spool
		return err
	}
	if err := k.restorer.restore(ctx, engine); err != nil {
		return err
	}
	return errors.Join(k.pace.start(ctx, engine), k.fleet.Workers.Adopt(ctx, engine), k.operators.recallAcceptances(ctx))
}

// flush writes what is waiting.
func (k *keeping) flush(ctx context.Context) error {
	if err := k.keeper.Record(ctx); err != nil {
		return err
	}
	if err := k.pace.save(ctx); err != nil {
		return err
	}
	return k.keeper.WriteAll(ctx)
}

// readOthers reads from the ledger which processes record for this one, and a label that one of them received.
func (k *keeping) readOthers(ctx context.Context) error {
	all, err := k.keeper.Engine.Load().Recorders(ctx, recorderGone)
	if err != nil {
		return err
	}
	before := k.keeper.SetOthers(all)
	for _, p := range all {
		if keep.Differs(p, k.opt.Process) && !slices.ContainsFunc(before, func(q ledger.Process) bool { return q.Host == p.Host && q.Configuration == p.Configuration }) {
			k.opt.Logger.Warn("a process that captures queries of this engine has another configuration of claims, tables, copies or audits: the one of this process applies; use one configuration for all",
				zap.String("engine_recorder", p.Host))
		}
	}
	changed, err := k.surroundings.recallLabel(ctx)
	if changed {
		k.surroundings.readSoon()
	}
	return err
}
