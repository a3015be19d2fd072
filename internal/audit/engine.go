package audit

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite"
)

// engines is what is known of the engine on which trials run, and of the one that clients use, besides the environment.
type engines struct {
	unsaved  bool            // the label was posted and is not in the ledger yet
	trouble  string          // why production could not be read the last time; "" = it was read
	reported map[string]bool // functions that were reported to differ, and are not reported to be equal again
	changes  []engineChanged // that this process has noticed, the latest last

	pair     [2]*engine.Snapshot  // of compared
	compared map[string][]string  // functions that differ, by engine.Calls
	seen     map[string]time.Time // since when they are seen to differ, by engine.Calls
}

// life is what a job keeps about the engine. All fields are guarded by Auditor.mu.
type life struct {
	saved.Life
	standing *view.Standing // the violation that is not resolved; nil = none. Audit.Open is set with it
	released bool           // the plan was reduced: a new beginning parses the query again

	calls    *engine.Calls // of the plan; nil = not computed yet
	snapshot *engine.Snapshot
	label    string
	epoch    string // for snapshot and label
}

// productionNow reads the functions of the clients' engine. An error is logged when it changes; the last reading then
// stays.
func (a *Auditor) productionNow(ctx context.Context) {
	if a.opt.Production == nil {
		return
	}
	err := a.env.ReadProduction(ctx)
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = a.say(err)
	}
	a.mu.Lock()
	before := a.engines.trouble
	a.engines.trouble = text
	a.mu.Unlock()
	if text != "" && text != before {
		a.opt.Logger.Warn("production's functions cannot be read: whether the shadow database runs the same ones is not known", zap.String("error", text))
	}
}

// Deploy records that another version of the engine was deployed, under a label: audits begin again on it. It does not
// wait.
func (a *Auditor) Deploy(label string) {
	a.locked(func() {
		a.env.SetLabel(label)
		a.engines.unsaved = true
		a.engines.noteChange(a.opt.Now(), nil, label, true)
	})
	a.readEnginesSoon()
}

// storeLabel writes a posted label to the ledger, unless it was written; a failure is retried with the next check of
// the engine.
func (a *Auditor) storeLabel(ctx context.Context) {
	a.mu.Lock()
	label, unsaved := a.env.Now().Label, a.engines.unsaved
	a.mu.Unlock()
	store := a.keeper.Writer()
	if store == nil || !unsaved {
		return
	}
	err := store.SetLabel(ctx, label)
	a.mu.Lock()
	a.engines.unsaved = err != nil || a.env.Now().Label != label
	a.mu.Unlock()
}

// recallLabel reads the label of the last deploy from the ledger, unless another one was posted since. It reports
// whether it is another one than before.
func (a *Auditor) recallLabel(ctx context.Context) (changed bool, err error) {
	label, err := a.keeper.Engine.Load().Label(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && !a.engines.unsaved {
		changed = a.env.SetLabel(label)
	}
	return changed, err
}

// engineEpoch returns the present engine epoch of a job; "" = not known yet.
func (d *desk) engineEpoch(j *job) string { return d.epochOf(&j.life, j.plan) }

// epochOf returns the present engine epoch of the query with a plan; "" = not known yet. It keeps the epoch in l.
func (d *desk) epochOf(l *life, plan *rewrite.Plan) string {
	now := d.environment
	if l.epoch == "" || l.snapshot != now.Shadow || l.label != now.Label {
		l.epoch, l.snapshot, l.label = now.Epoch(d.callsOf(l, plan)), now.Shadow, now.Label
	}
	return l.epoch
}

// callsOf returns what the query with a plan calls on the copies. It keeps that in l.
func (d *desk) callsOf(l *life, p *rewrite.Plan) engine.Calls {
	if l.calls == nil {
		c := engine.Calls{Functions: p.Functions, Implied: p.Implied, Path: slices.Concat(p.SearchPath, []string{d.opt.D0}, d.opt.D1)}
		for _, t := range p.Tables {
			c.Relations = append(c.Relations, t, ident.Table{Schema: d.opt.D0, Name: t.Name})
		}
		c.Relations = append(c.Relations, p.Public...)
		l.calls = &c
	}
	return *l.calls
}

// sameEngine reports whether a job's evidence is of the present engine. Evidence of an unknown engine counts as such.
func (d *desk) sameEngine(j *job) bool {
	now := d.engineEpoch(j)
	if j.life.Engine == "" {
		j.life.Engine = now
	}
	return now == "" || j.life.Engine == now
}

// replan parses the query of a job that begins again and whose plan was released. The caller has the job's turn.
func (a *Auditor) replan(j *job) error {
	if !j.life.released {
		return nil
	}
	plan, edition, err := a.planAgain(j)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	j.setPlan(plan, edition)
	return nil
}

// setPlan gives a job a complete plan, and the edition of the catalogs with which it was made.
func (j *job) setPlan(plan *rewrite.Plan, edition uint64) {
	j.plan, j.edition, j.life.released, j.life.calls, j.life.epoch = plan, edition, false, nil, ""
}

// adoptEngine gives a job, whose evidence is dropped, the present engine.
func (d *desk) adoptEngine(j *job) {
	if d.sameEngine(j) {
		return
	}
	j.life.Began++
	j.life.Engine = d.engineEpoch(j)
	d.log(zap.InfoLevel, "the engine changed during an audit: it begins again", zap.String("audit", j.id), zap.String("engine_epoch", j.life.Engine))
}
