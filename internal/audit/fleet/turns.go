package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// turns run in this process, and end here wherever they ran.
type turns struct{ beginnings }

// next gives the next turn that is due, or returns false and how long to wait.
func (t *turns) next() (g desk.Given, ok bool, wait time.Duration) {
	if wait := t.opt.Wait(); wait > 0 {
		return g, false, wait
	}
	t.opt.Use(func(d *desk.Desk) { g, ok, wait = d.Turns.Next() })
	return g, ok, wait
}

// turn runs a turn in this process.
func (t *turns) turn(ctx context.Context, g desk.Given) {
	t.within(g, func() {
		if g.Kind == step.Watching {
			t.watch(ctx, g)
			return
		}
		began := t.opt.Now()
		ready, err := t.prepare(ctx, g)
		if err == nil && !ready {
			t.save(ctx, g.Key)
			return
		}
		o := desk.Outcome{Trouble: err}
		if err == nil {
			o = t.run(ctx, g)
		}
		o.Took = t.opt.Now().Sub(began)
		t.finish(ctx, g.Key, o)
	})
}

// within calls f in an audit's turn. If f panics, the audit is set aside; f then returns false.
func (t *turns) within(g desk.Given, f func()) (whole bool) {
	defer func() {
		if r := recover(); r != nil {
			t.opt.Guard.Recovered("audit "+g.ID, r)
			_ = t.opt.Guard.Contain("set aside audit "+g.ID, func() error {
				t.opt.Use(func(d *desk.Desk) { d.Turns.BreakOff(g.Key) })
				return nil
			})
		}
	}()
	f()
	return true
}

// prepare makes an audit ready for its turn. It returns false if the audit has no more turns.
func (t *turns) prepare(ctx context.Context, g desk.Given) (ready bool, err error) {
	if g.Kind == step.Measuring {
		err = t.prepareMeasurement(ctx, g.Key)
		return err == nil, err
	}
	return t.begin(ctx, g)
}

// run runs the trials of a turn of an audit that is ready for it.
func (t *turns) run(ctx context.Context, g desk.Given) desk.Outcome {
	var a step.Audit
	t.opt.Use(func(d *desk.Desk) { a = d.Beginnings.Turn(g.Key) })
	a, found, err := t.opt.Slots.Step(ctx, a, g.Kind, step.Hooks{
		Least:    step.Short,
		Pressing: t.pressing,
		Advanced: func(now step.Progress) { t.opt.Use(func(d *desk.Desk) { d.Turns.Advance(g.Key, now) }) },
	})
	return desk.OutcomeOf(&a, found, err)
}

// pressing reports whether turns must end soon because a new query waits for its first one.
func (t *turns) pressing() (yes bool) {
	t.opt.Use(func(d *desk.Desk) { yes = d.Turns.Pressing() })
	return yes
}

// finish ends the turn of an audit.
func (t *turns) finish(ctx context.Context, key string, o desk.Outcome) {
	t.opt.Use(func(d *desk.Desk) { d.Turns.TakeOutcome(key, o) })
	if o.Restart != nil {
		o.Trouble = t.beginAgain(ctx, key)
	}
	t.opt.Use(func(d *desk.Desk) { d.Turns.End(key, ctx.Err() != nil, o) })
	t.save(ctx, key)
}

// save writes the state that the desk noted for an audit. A failure is retried later.
func (t *turns) save(ctx context.Context, key string) {
	if t.opt.Keeper.On {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if t.opt.Keeper.Write(ctx, key) == nil {
			t.opt.Use(func(d *desk.Desk) { d.Turns.Kept(key, !t.opt.Keeper.Waits(key)) })
		}
	}
}

// watch runs a turn of a decided audit: trials for its change detector, or the decision to begin again from zero.
func (t *turns) watch(ctx context.Context, g desk.Given) {
	began := t.opt.Now()
	o, why, err := t.watchTurn(ctx, g)
	var plan *rewrite.Plan
	var edition uint64
	if err == nil && why != desk.NoRenewal {
		plan, edition, err = t.planAgain(g.Key, t.statement(g.Key).Query)
	}
	if o != nil && ctx.Err() == nil {
		err = errors.Join(err, t.saveWatch(ctx, g.Key, o))
	}
	if ctx.Err() != nil {
		why, err = desk.NoRenewal, nil
	}
	took := t.opt.Now().Sub(began)
	var ends *replay.EndsError
	t.opt.Use(func(d *desk.Desk) {
		if errors.As(err, &ends) {
			d.Turns.WatchEnded(g.Key, took, ends)
			return
		}
		if err == nil && why != desk.NoRenewal {
			d.Watches.Renew(g.Key, took, why, plan, edition)
			return
		}
		d.Watches.End(g.Key, took, err)
	})
}

// watchTurn runs the trials of a turn in the watch share. The result is nil if none ran.
func (t *turns) watchTurn(ctx context.Context, g desk.Given) (w *evidence.Watch, why desk.Renewal, err error) {
	now, err := t.opt.Environment.Read(ctx)
	if err != nil {
		return nil, desk.NoRenewal, err
	}
	repeated := false
	t.opt.Use(func(d *desk.Desk) { why, repeated = d.Watches.Renewal(g.Key, now), d.Watches.Repeated(g.Key) })
	switch {
	case why != desk.NoRenewal:
		return nil, why, nil
	case repeated:
		return nil, desk.RepeatDue, nil
	}
	if same, err := t.judge(ctx, g.Key); err != nil {
		return nil, desk.NoRenewal, err
	} else if !same {
		return nil, desk.EngineReplaced, nil
	}
	if err := t.createTexts(g.Key); err != nil {
		return nil, desk.NoRenewal, err
	}
	var a step.Audit
	var reset error
	t.opt.Use(func(d *desk.Desk) { a, reset = d.Beginnings.Watch(g.Key) })
	if reset != nil {
		t.opt.Logger.Warn("the stored change detector of an audit cannot be used: it starts again", zap.String("audit", g.ID), zap.String("reason", t.opt.Say(reset)))
	}
	a.Seed = t.opt.Seed()
	a, found, err := t.opt.Slots.Step(ctx, a, g.Kind, step.Hooks{})
	var replaced *step.ReplacedError
	switch {
	case errors.As(err, &replaced):
		t.opt.Use(func(d *desk.Desk) { why = d.Watches.Renewal(g.Key, replaced.Environment) })
		return nil, why, nil
	case err != nil:
		return nil, desk.NoRenewal, err
	case len(found) > 0: // a change
		return a.Watch, desk.ChangeFound, nil
	}
	return a.Watch, desk.NoRenewal, nil
}

// saveWatch keeps the state of a change detector, also in the ledger, and notes an alarm there.
func (t *turns) saveWatch(ctx context.Context, key string, w *evidence.Watch) error {
	state, err := w.MarshalBinary()
	if err != nil {
		return err
	}
	sealed := ledger.Seal(state)
	t.opt.Use(func(d *desk.Desk) { d.Watches.Watched(key, w, sealed) })
	if !t.opt.Keeper.On {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	engine := t.opt.Keeper.Engine.Load()
	err = engine.Audits.SaveWatch(ctx, key, sealed)
	if err == nil && w.Alarm() {
		err = engine.Audits.Note(ctx, key, "changed", fmt.Sprintf("the change detector raised an alarm %d pairs of trials after the verdict: the audit begins again", w.Rounds()))
	}
	t.opt.Keeper.Wrote(err)
	return nil
}

// SetAside reports progress that cannot be used, and moves it out of the way.
func SetAside(ctx context.Context, k *keep.Keeper, log *zap.Logger, say func(error) string, key string, why error) {
	log.Error("the stored evidence of an audit cannot be used: it is set aside in the ledger, and the audit starts again",
		zap.String("audit", desk.ShortID(key)), zap.String("reason", say(why)))
	if err := k.Engine.Load().Audits.SetAside(ctx, key, say(why)); err != nil {
		k.Wrote(err)
	}
}
