package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/replay"
)

// turn runs a turn of a job in this process.
func (a *Auditor) turn(ctx context.Context, j *job) {
	a.inTurn(j, func() {
		if j.Phase() == schedule.Watching {
			a.watch(ctx, j)
			return
		}
		began := a.opt.Now()
		kind, before, ready, err := a.prepare(ctx, j)
		if err == nil && !ready {
			a.save(ctx, j)
			return
		}
		o := turn.Outcome{Trouble: err}
		if err == nil {
			o = a.run(ctx, j, kind)
		}
		o.Took = a.opt.Now().Sub(began)
		a.finish(ctx, j, before, o)
	})
}

// prepare makes a job ready for its turn. It returns the kind of the turn, what the ledger has of a measurement before
// it, and false if the audit has no more turns.
func (a *Auditor) prepare(ctx context.Context, j *job) (kind turn.Kind, before *saved.Progress, ready bool, err error) {
	a.locked(func() {
		if kind = turn.KindOf(j.Measuring, j.Turns()); kind == turn.Measure {
			before = a.progress(j)
		}
	})
	if kind == turn.Measure {
		err = a.prepareMeasurement(ctx, j)
		return kind, before, err == nil, err
	}
	ready, err = a.begin(ctx, j)
	return kind, nil, ready, err
}

// run runs the trials of a turn of a job that is ready for it.
func (a *Auditor) run(ctx context.Context, j *job, kind turn.Kind) turn.Outcome {
	var t turn.Turn
	a.locked(func() { t, j.stored = a.turnOf(j, kind), false })
	return a.runner.Run(ctx, t, turn.Hooks{
		Least:    turn.Short,
		Pressing: a.pressing,
		Advanced: func(now turn.Advance) { a.locked(func() { a.advance(j, now) }) },
	})
}

// pressing reports whether turns must end soon because a new query waits for its first one.
func (a *Auditor) pressing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.roster.Pressing(a.opt.Now())
}

// finish ends the turn of a job. before is what the ledger has of a measurement.
func (a *Auditor) finish(ctx context.Context, j *job, before *saved.Progress, o turn.Outcome) {
	a.locked(func() { a.takeOutcome(j, o) })
	if o.Restart != nil {
		o.Trouble = a.restart(ctx, j, o.Restart)
	}
	a.locked(func() { a.endTurn(ctx.Err() != nil, j, before, o) })
	a.save(ctx, j)
}

// takeOutcome takes the results of a turn, and its evidence back.
func (d *desk) takeOutcome(j *job, o turn.Outcome) {
	if o.Evidence != nil {
		j.evidence = o.Evidence
	}
	d.advance(j, o.Advance)
}

// endTurn ends the turn of a job, whose outcome was taken. before is what the ledger has of a measurement; stopping
// reports that the process ends.
func (d *desk) endTurn(stopping bool, j *job, before *saved.Progress, o turn.Outcome) {
	progress := d.progress(j)
	if j.stored && o.Trouble == nil && (j.evidence == nil || !j.evidence.Decided()) {
		progress = nil // a worker has stored it
	}
	if !j.Measuring {
		d.conclude(stopping, j, progress, o)
		return
	}
	if o.Stop != nil || o.Broken != nil {
		progress = before // the copies may differ from those before
	}
	d.concludeMeasurement(stopping, j, progress, o)
}

// conclude ends a turn of an audit without a verdict. progress is what the ledger does not have yet.
func (d *desk) conclude(stopping bool, j *job, progress *saved.Progress, o turn.Outcome) {
	if stopping && o.Broken == nil {
		if progress != nil {
			d.put(j, progress)
		}
		return
	}
	took := min(o.Took, 2*turn.Longest) // the time in which replays were held is ignored
	var away *ledgerError
	switch err := o.Trouble; {
	case o.Broken != nil:
		d.markInconclusive(j, o.Broken)
		d.shed()
		return
	case errors.As(err, &away):
		d.postpone(j, away, took)
	case errors.As(err, new(*environment.UnreadCatalogs)):
		if progress != nil {
			d.put(j, progress)
		}
		d.hold(j, err, took)
	case errors.As(err, new(*voidTrials)), errors.As(err, new(*replay.ReadsError)):
		d.log(zap.WarnLevel, "an audit is inconclusive", zap.String("audit", j.id), zap.String("reason", d.opt.say(err)))
		d.markInconclusive(j, err)
		d.shed()
		return
	case errors.As(err, new(*unjudgeable)):
		d.markInconclusive(j, err)
		d.shed()
		return
	case err != nil:
		d.faults++
		d.shadowUp = false
		d.do(counted{faultsCounter, ""})
		if progress != nil { // otherwise it has none yet, or the ledger has more
			d.put(j, progress)
		}
		d.postpone(j, err, took)
	case o.Fresh && j.evidence != nil && j.evidence.Decided():
		d.decide(j, took, progress)
		return
	default:
		j.trouble = ""
		j.Background = j.Background && !j.confirming // a violation is confirmed without delay
		d.put(j, progress)
		d.roster.Resize(&j.Audit, j.size())
		d.roster.Return(&j.Audit, took, d.now)
	}
	d.shed()
	d.do(wake{})
}

// decide ends an audit with a verdict.
func (d *desk) decide(j *job, took time.Duration, progress *saved.Progress) {
	j.trouble, j.decided = "", d.now
	verdict := j.worst().Verdict
	d.do(counted{verdictsCounter, string(verdict)})
	d.confirmationEnded(j, verdict)
	if verdict == analysis.Violation {
		d.reported++
	}
	d.settleViolation(j)
	d.roster.Decide(&j.Audit, verdict == analysis.Violation || j.Open, took)
	if d.beginMeasurement(j) {
		progress = d.progress(j)
	}
	d.put(j, progress)
	j.Watched = d.watchable(j)
	if !j.Measuring {
		d.release(j)
	}
	d.shed()
	d.retire()
}

// postpone makes a job wait for a database that is unavailable or has a fault.
func (d *desk) postpone(j *job, err error, took time.Duration) {
	text, away := d.opt.say(err), (*ledgerError)(nil)
	j.ledgerAway = errors.As(err, &away)
	switch {
	case j.ledgerAway:
		d.do(ledgerFailed{away.error}) // one line of the log for all audits
	case j.trouble != text:
		d.log(zap.WarnLevel, "replay failed: the audit will be retried; traffic is not affected", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", d.opt.RetryAfter))
	}
	j.trouble = text
	now := d.now
	j.NotBefore = now.Add(d.opt.RetryAfter)
	d.roster.Resize(&j.Audit, j.size())
	d.roster.Return(&j.Audit, took, now)
}

// markInconclusive marks an audit that cannot be judged inconclusive. The ledger keeps the evidence.
func (d *desk) markInconclusive(j *job, err error) {
	d.abandon(j)
	j.trouble, j.worlds, j.reported = d.opt.say(err), nil, nil
	j.reports = []analysis.Report{d.emptyReport(j.plan, j.trouble)}
	d.roster.Decide(&j.Audit, j.Open, 0)
	j.decided = d.now
	d.put(j, nil)
	d.release(j)
	d.do(counted{verdictsCounter, string(analysis.Inconclusive)})
}

// advance takes the results of a turn so far: it publishes the reports and reports every violation once.
func (d *desk) advance(j *job, now turn.Advance) {
	if now.Hoisting != nil {
		j.hoisting = now.Hoisting
	}
	if now.Reports == nil {
		return
	}
	began, gaveUp := now.Confirming && !j.confirming, j.confirming && !now.Confirming
	if now.Suspected > 0 {
		j.suspected = now.Suspected // it keeps its priority among the waiting audits
	}
	j.reports, j.confirming = now.Reports, now.Confirming
	j.figures()
	d.doubt(j)
	d.lastTrial, d.shadowUp = d.now, true
	if began {
		d.confirmationBegan(j)
	} else if gaveUp {
		j.suspected = 0
		d.notConfirmed(j, j.hoisting.Reason)
	}
	for i, r := range j.reports {
		if r.Verdict == analysis.Violation && !j.reported[i] && d.opt.OnFinding != nil {
			j.reported[i] = true
			d.alertViolation(j, d.finding(j, i, r))
		}
	}
}

// doubt marks an audit whose evidence would be a violation if it were the only one.
func (d *desk) doubt(j *job) {
	if !d.opt.Family || j.doubted || j.plan.Claim == nil || !(j.Wealth >= j.Threshold-j.margin) || j.margin <= 0 {
		return
	}
	j.doubted = true
	d.log(zap.InfoLevel, "a violation is suspected: the evidence would suffice for a single audit, but not yet among all audits", zap.String("audit", j.id),
		zap.String("db.query.summary", j.plan.Summary), zap.Int("trials", j.Trials))
}

// figures derives from the reports what is shown and what the scheduler needs.
func (j *job) figures() {
	worst := evidence.Worst(j.reports)
	j.Trials, j.Wealth, j.Threshold = 0, 0, j.reports[worst].Threshold()
	for i := range j.reports {
		j.Trials = max(j.Trials, j.reports[i].Trials.D0) // the neighbours may have had different numbers: see evidence.Spared
		partitions := cutPartitions(&j.reports[i])
		if i == worst {
			j.partitions = partitions
		}
		if w := float64(j.reports[i].WealthLog); !math.IsNaN(w) && (i == 0 || w > j.Wealth) {
			j.Wealth = w
		}
	}
	j.Wealth = max(j.Wealth, j.suspected)
}
