package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// watchEvery is the shortest time between two watch turns of one audit.
const watchEvery = time.Minute

// watch is the change detector of a decided audit.
type watch struct {
	state    []byte // sealed; nil = no trials yet
	rounds   int
	evidence float64
	last     time.Time
	trouble  string // why the last turn failed
}

// watchable reports whether a decided audit has turns in the watch share: its claim was audited and kept.
func (d *desk) watchable(j *job) bool {
	return d.opt.WatchShare > 0 && j.plan.Claim != nil && len(j.worlds) > 0 && !j.Open && j.worst().Verdict == analysis.NoEvidence
}

// reasons why a watched audit begins again.
type renewal int

const (
	noRenewal renewal = iota
	copiesReplaced
	engineReplaced
	repeatDue
	changeFound
)

// watch runs a turn of a decided audit: trials for its change detector, or the decision to begin again from zero.
func (a *Auditor) watch(ctx context.Context, j *job) {
	began := a.opt.Now()
	o, why, err := a.watchTurn(ctx, j)
	var plan *rewrite.Plan
	var edition uint64
	if err == nil && why != noRenewal {
		plan, edition, err = a.planAgain(j)
	}
	if o != nil && ctx.Err() == nil {
		a.saveWatch(ctx, j, o)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opt.Now()
	took := min(now.Sub(began), 2*turn.Longest)
	defer a.do(wake{})
	if ctx.Err() == nil && err == nil && why != noRenewal {
		a.roster.Rest(&j.Audit, took, now)
		a.renewAudit(j, why, plan, edition)
		return
	}
	if err != nil && ctx.Err() == nil {
		a.watchFailed(j, err)
	}
	a.roster.Resize(&j.Audit, j.size())
	a.roster.Rest(&j.Audit, took, now)
	a.shed()
}

// watchTurn runs the trials of a watch turn. The result is nil if none ran.
func (a *Auditor) watchTurn(ctx context.Context, j *job) (w *turn.Watched, why renewal, err error) {
	now, err := a.env.Read(ctx)
	if err != nil {
		return nil, noRenewal, err
	}
	due := false
	a.locked(func() { why, due = a.renewalBy(j, now), a.repeatDue(j) })
	switch {
	case why != noRenewal:
		return nil, why, nil
	case due:
		return nil, repeatDue, nil
	}
	if same, err := a.judge(ctx, j); err != nil {
		return nil, noRenewal, err
	} else if !same {
		return nil, engineReplaced, nil
	}
	if err := a.createTexts(j); err != nil {
		return nil, noRenewal, err
	}
	var t turn.Turn
	a.locked(func() { t = a.turnOf(j, turn.Watch) })
	var reset error
	if j.watch.state != nil {
		t.State, reset = ledger.Unseal(j.watch.state)
	}
	o := a.runner.Run(ctx, t, turn.Hooks{})
	if o.Watch != nil {
		a.locked(func() { a.lastTrial, a.shadowUp = a.now, true })
	}
	if reset == nil && o.Watch != nil {
		reset = o.Watch.Reset
	}
	if reset != nil {
		a.opt.Logger.Warn("the stored change detector of an audit cannot be used: it starts again", zap.String("audit", j.id), zap.String("reason", a.say(reset)))
	}
	switch {
	case o.Broken != nil:
		return nil, noRenewal, o.Broken
	case o.Restart != nil:
		a.locked(func() { why = a.renewalBy(j, o.Restart.Environment) })
		return nil, why, nil
	case o.Watch != nil && o.Watch.Alarm:
		return o.Watch, changeFound, nil
	}
	return o.Watch, noRenewal, o.Trouble
}

// renewalBy returns why a watched audit begins again in an environment.
func (d *desk) renewalBy(j *job, now *environment.Environment) renewal {
	switch {
	case j.epoch != "" && now.Copies != j.epoch:
		return copiesReplaced
	case !d.present(j, now):
		return engineReplaced
	}
	return noRenewal
}

// saveWatch keeps the state of a change detector, also in the ledger, and notes an alarm there.
func (a *Auditor) saveWatch(ctx context.Context, j *job, w *turn.Watched) {
	sealed := ledger.Seal(w.State)
	a.locked(func() { j.watch = watch{state: sealed, rounds: w.Rounds, evidence: w.Evidence, last: a.opt.Now()} })
	if w.Alarm {
		a.metrics.changes.Inc()
		a.opt.Logger.Warn("a query that was audited without a violation seems to leak more than it claims now: its audit begins again", zap.String("audit", j.id),
			zap.String("db.query.summary", j.plan.Summary), zap.Int("trials_since_verdict", w.Rounds))
	}
	if !a.keeper.On {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	engine := a.keeper.Engine.Load()
	err := engine.Audits.SaveWatch(ctx, j.Key, sealed)
	if err == nil && w.Alarm {
		err = engine.Audits.Note(ctx, j.Key, "changed", fmt.Sprintf("the change detector raised an alarm %d pairs of trials after the verdict: the audit begins again", w.Rounds))
	}
	a.keeper.Wrote(err)
}

// planAgain analyses the query of an audit again, and returns the edition of the catalogs: functions and tables may
// have changed.
func (a *Auditor) planAgain(j *job) (*rewrite.Plan, uint64, error) {
	plan, edition, err := a.recognizer.Analyze(j.query)
	if recognize.ReasonOf(err) == recognize.SkippedUnevaluated {
		return nil, 0, err
	}
	if err != nil {
		text := "its statement cannot be rewritten any more: " + recognize.ReasonOf(err)
		if object := recognize.Unlisted(err); object != "" {
			text += ": " + object
		}
		return nil, 0, errors.New(text)
	}
	if key, _ := identity(&a.opt, j.query, plan.Key); key != j.Key {
		return nil, 0, errors.New("its claim, its settings or the configuration of its tables changed: it is another audit when it is run again")
	}
	return plan, edition, nil
}

// renewAudit makes a watched audit begin again.
func (d *desk) renewAudit(j *job, why renewal, plan *rewrite.Plan, edition uint64) {
	switch why {
	case copiesReplaced:
		j.restarts++
	case engineReplaced:
		j.life.Began++
	case repeatDue:
		j.repeats++
		j.previous = j.worst().Verdict
	case changeFound:
		j.changes++
		j.changed = d.now
		j.previous = j.worst().Verdict
	}
	d.again(j, j.query, plan, edition)
	j.Background = why == repeatDue // what shows a change has its turns at once
}

// watchFailed notes that a watch turn failed, and logs it unless the turn before failed likewise.
func (d *desk) watchFailed(j *job, err error) {
	text := d.opt.say(err)
	if j.watch.trouble != text {
		d.log(zap.WarnLevel, "a decided audit cannot be watched: it will be retried", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", d.opt.RetryAfter))
	}
	j.watch.trouble = text
	d.faults++
	d.do(counted{faultsCounter, ""})
	j.NotBefore = d.now.Add(d.opt.RetryAfter)
}

// watchState returns what the status shows of a decided audit's change detector; nil if it is not watched.
func (j *job) watchState(opt *Options) *view.WatchState {
	if !j.Watched {
		return nil
	}
	return &view.WatchState{
		Trials: j.watch.rounds, Evidence: analysis.Float(j.watch.evidence), Alarm: analysis.Float(math.Log(evidence.WatchRunLength)),
		RunLength: (evidence.WatchRunLength - 1) * evidence.BlockRounds(opt.Analysis.MaxTrials), Last: j.watch.last, Trouble: j.watch.trouble,
	}
}
