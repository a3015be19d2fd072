package audit

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// newEnvironment returns the Reader of an auditor or worker.
func newEnvironment(o *Options, changed func(before, after *environment.Environment)) *environment.Reader {
	copies := func(ctx context.Context) (string, error) {
		return o.Player.Epoch(ctx, append([]string{o.D0}, o.D1...))
	}
	return environment.New(environment.Sources{Copies: copies, Engine: o.Engine, Production: o.Production}, changed)
}

// environmentChanged takes another reading of the copies or the engine. The decided audits that a change of the engine
// concerns begin again; running ones notice it in their turns.
func (a *Auditor) environmentChanged(before, after *environment.Environment) {
	if before.Copies != after.Copies && before.Copies != "" {
		a.runner.Clear() // its tables are computed from the old copies
		a.opt.Logger.Info("the copies were replaced: undecided audits start again now, decided ones when their query is run again")
	}
	if before.Shadow == after.Shadow {
		return
	}
	a.catalogs.Need(after.ShadowRead)
	if before.Shadow == nil {
		return
	}
	a.runner.Clear() // its tables may be computed by the old functions
	changed := after.Shadow.Changed(before.Shadow)
	a.locked(func() {
		a.engines.noteChange(a.now, changed, after.Label, !sameBase(after.Shadow, before.Shadow))
		a.review(changed)
	})
}

// copies returns the epoch of the copies; "" = not read yet.
func (d *desk) copies() string { return d.environment.Copies }

// watchEpoch checks the copies periodically, so that a query that is run again is audited on new ones.
func (a *Auditor) watchEpoch(ctx context.Context) {
	tick := time.NewTicker(a.opt.EpochEvery)
	defer tick.Stop()
	for {
		_ = a.env.ReadCopies(ctx) // checkShadow and the audits report errors
		a.watchEngine(ctx)
		select {
		case <-ctx.Done():
			return
		case <-a.deployed:
		case <-tick.C:
		}
	}
}

// outdated reports whether a decided audit belongs to copies that no longer exist.
func (d *desk) outdated(j *job) bool {
	now := d.copies()
	return j.state() == view.Decided && j.Phase() != schedule.Watching && j.epoch != "" && now != "" && j.epoch != now
}

// due reports whether an audit without a violation was decided so long ago that it is repeated.
func (d *desk) due(j *job) bool {
	return j.Phase() == schedule.Decided && d.repeatDue(j)
}

// repeatDue reports whether a decided audit was decided so long ago that it is repeated.
func (d *desk) repeatDue(j *job) bool {
	return d.opt.Repeat > 0 && !j.decided.IsZero() && d.now.Sub(j.decided) >= d.opt.Repeat
}
