package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/replay"
)

// Lengths of turns. A turn ends after a batch and has at least one.
const (
	firstRounds = 50          // of a first turn, which is short: it is enough for a badly broken query
	firstBatch  = 5           // batch size at the start of a first turn
	turnTime    = time.Second // maximum of a first turn, minimum of another one, which may begin with opening sessions
	longestTurn = 20 * time.Second
	// workerTime is the minimum of a turn in a worker that is not a first one, unless a new query waits: handing it
	// over takes some 50 ms.
	workerTime = 2 * time.Second
)

// turnOver reports whether a turn that takes at least the given time, unless a new query waits for its first turn, ends
// after this many rounds and this time. pressing reports that one waits.
func (a *Auditor) turnOver(first bool, rounds int, took, least time.Duration, pressing func() bool) bool {
	if a.opt.Budget.Spent() {
		return true
	}
	if first {
		return rounds >= firstRounds || took >= turnTime
	}
	return took >= longestTurn || took >= least && rounds >= a.opt.TurnTrials || took >= turnTime && pressing()
}

// leastTime returns the minimum of a turn of the job that is not its first.
func (j *job) leastTime() time.Duration {
	if j.writes != nil {
		return workerTime
	}
	return turnTime
}

// turn runs a job until it is decided, its share of trials is used, it cannot be replayed, or ctx is done.
func (a *Auditor) turn(ctx context.Context, j *job) {
	a.inTurn(j, func() {
		switch {
		case j.Phase() == schedule.Watching:
			a.watch(ctx, j)
		case j.Measuring:
			a.measure(ctx, j)
		default:
			a.audit(ctx, j)
		}
	})
}

// audit runs a turn of an audit without a verdict.
func (a *Auditor) audit(ctx context.Context, j *job) {
	began := a.opt.Now()
	j.stored = false
	ready, err := a.prepare(ctx, j)
	if !ready && err == nil {
		a.save(ctx, j)
		return
	}
	fresh := false
	if err == nil {
		fresh, err = a.trials(ctx, j)
	}
	a.conclude(ctx, j, a.opt.Now().Sub(began), a.progress(j), fresh, err)
	a.save(ctx, j)
}

// trials runs the trials of a turn. fresh reports that the evidence belongs to the present copies.
func (a *Auditor) trials(ctx context.Context, j *job) (fresh bool, err error) {
	if err := a.replay(ctx, j); err != nil {
		return false, err
	}
	a.compareLatencies(ctx, j)
	return a.current(ctx, j) // the copies may have changed during the turn
}

// conclude ends a turn of the given length. progress is what the ledger does not have yet. fresh reports that the
// evidence belongs to the present copies.
func (a *Auditor) conclude(ctx context.Context, j *job, took time.Duration, progress *saved.Progress, fresh bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		if progress != nil {
			a.put(j, progress)
		}
		return
	}
	took = min(took, 2*longestTurn) // the time in which replays were held is ignored
	var away *ledgerError
	switch {
	case errors.As(err, &away):
		a.postpone(j, away, took)
	case errors.As(err, new(*unreadCatalogs)):
		if progress != nil {
			a.put(j, progress)
		}
		a.hold(j, err, took)
	case errors.As(err, new(*unjudgeable)):
		a.markInconclusive(j, err)
		a.shed()
		return
	case err != nil:
		a.faults++
		a.shadowUp = false
		a.metrics.faults.Inc()
		if progress != nil { // otherwise it has none yet, or the ledger has more
			a.put(j, progress)
		}
		a.postpone(j, err, took)
	case fresh && j.evidence.Decided():
		a.decide(j, took, progress)
		return
	default:
		j.trouble = ""
		j.Background = j.Background && !j.confirming // a violation is confirmed without delay
		a.put(j, progress)
		a.roster.Resize(&j.Audit, j.size())
		a.roster.Return(&j.Audit, took, a.opt.Now())
	}
	a.shed()
	a.wake()
}

// decide ends an audit with a verdict. The caller holds Auditor.mu and has the job's turn.
func (a *Auditor) decide(j *job, took time.Duration, progress *saved.Progress) {
	j.trouble, j.decided = "", a.opt.Now()
	verdict := j.worst().Verdict
	a.metrics.verdicts.WithLabelValues(string(verdict)).Inc()
	a.ended(j, verdict)
	if verdict == analysis.Violation {
		a.reported.Add(1)
	}
	a.settleViolation(j)
	a.roster.Decide(&j.Audit, verdict == analysis.Violation || j.Open, took)
	if a.beginMeasurement(j) {
		progress = a.progress(j)
	}
	a.put(j, progress)
	j.Watched = a.watchable(j)
	if !j.Measuring {
		a.release(j)
	}
	a.shed()
	a.retire()
}

// postpone makes a job wait for a database that is unavailable or has a fault. The caller holds Auditor.mu and has the
// job's turn.
func (a *Auditor) postpone(j *job, err error, took time.Duration) {
	text, away := a.say(err), (*ledgerError)(nil)
	j.ledgerAway = errors.As(err, &away)
	switch {
	case j.ledgerAway:
		a.keeper.Wrote(away.error) // one line of the log for all audits
	case j.trouble != text:
		a.opt.Logger.Warn("replay failed: the audit will be retried; traffic is not affected", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
	}
	j.trouble = text
	now := a.opt.Now()
	j.NotBefore = now.Add(a.opt.RetryAfter)
	a.roster.Resize(&j.Audit, j.size())
	a.roster.Return(&j.Audit, took, now)
}

// replay runs one turn; it drops evidence that is invalid because of hoisting.
func (a *Auditor) replay(ctx context.Context, j *job) error {
	if _, err := a.currentLately(ctx, j); err != nil {
		return err
	}
	err := a.rounds(ctx, j)
	if differ := j.hoist.Disagreed(); differ != nil {
		a.opt.Logger.Warn("evidence is reset: the audit starts again without hoisting", zap.String("audit", j.id), zap.Error(differ))
		err = a.beginAgain(ctx, j)
	}
	return err
}

// beginAgain drops a job's evidence; violations already reported are not reported again. The caller has the job's turn.
func (a *Auditor) beginAgain(ctx context.Context, j *job) error {
	share, err := a.allot(ctx, j)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil { // the next turn begins it
		a.abandon(j)
		j.worlds, j.evidence = nil, nil
		return err
	}
	reported := make([]bool, len(j.worlds))
	for i := range j.worlds {
		reported[i] = j.worlds[i].reported
	}
	err = a.resetEvidence(j, share)
	for i := range j.worlds {
		j.worlds[i].reported = reported[i]
	}
	return err
}

// rounds runs the rounds of one turn.
func (a *Auditor) rounds(ctx context.Context, j *job) error {
	run, err := a.run(j)
	if err != nil {
		return err
	}
	keep := false
	defer func() { a.idle.put(j, run, keep) }()
	if err := a.stream(ctx, j, run); err != nil {
		return err
	}
	if j.evidence.Questionable() {
		// Do not report what two versions of the copies, or only hoisted or only the first trials, may have shown.
		if fresh, err := a.current(ctx, j); err != nil || !fresh {
			return err
		}
		if err := run.Verify(ctx); err != nil {
			return err
		}
	}
	if j.evidence.Found() {
		if !j.evidence.Confirming() {
			return a.confirm(j)
		}
		a.publish(j)
	}
	keep = !j.evidence.Decided()
	return nil
}

// stream processes the rounds of one turn, and publishes the results until a violation must be reported.
func (a *Auditor) stream(ctx context.Context, j *job, run trial.Trials) error {
	began, ran, first, batchRounds := a.opt.Now(), 0, j.first(), a.opt.BatchTrials
	if first {
		batchRounds = min(batchRounds, firstBatch)
	}
	return trial.Gather(ctx, run, batchRounds, j.evidence, func(batch replay.Batch) bool {
		a.metrics.batch(batch, j.evidence.Settled())
		if j.evidence.Found() {
			return false
		}
		a.publish(j)
		ran += len(batch.Rounds)
		return !a.turnOver(first, ran, a.opt.Now().Sub(began), j.leastTime(), func() bool { return a.pressing(j) })
	})
}

// first reports whether the current turn is the job's first.
func (j *job) first() bool { return j.Turns() <= 1 }

// publish publishes the latest reports and reports every violation once.
func (a *Auditor) publish(j *job) {
	reports := make([]analysis.Report, len(j.worlds))
	for i := range j.worlds {
		reports[i] = j.report(i)
		j.evidence.Audit(i).AddProfile(&reports[i])
	}
	a.locked(func() {
		j.reports, j.confirming = reports, j.evidence.Confirming()
		j.figures()
		a.doubt(j)
		a.lastTrial, a.shadowUp = a.opt.Now(), true
	})
	for i, r := range reports {
		if w := &j.worlds[i]; r.Verdict == analysis.Violation && !w.reported && a.opt.OnFinding != nil {
			w.reported = true
			a.alertViolation(j.Key, a.finding(j, w, r))
		}
	}
}

// doubt marks an audit whose evidence would be a violation if it were the only one. The caller holds Auditor.mu and has
// the job's turn.
func (a *Auditor) doubt(j *job) {
	level := -math.Log((1 - a.opt.Analysis.Confidence) / float64(len(a.opt.D1)))
	if !a.opt.Family || j.doubted || j.plan.Claim == nil || !(j.Wealth >= level) || j.Threshold <= level {
		return
	}
	j.doubted = true
	a.opt.Logger.Info("a violation is suspected: the evidence would suffice for a single audit, but not yet among all audits", zap.String("audit", j.id),
		zap.String("db.query.summary", j.plan.Summary), zap.Int("trials", j.Trials))
}

// figures derives from the reports what is shown and what the scheduler needs. The caller holds Auditor.mu, or no one
// else has the job.
func (j *job) figures() {
	worst := evidence.Worst(j.reports)
	j.Trials, j.Wealth = 0, 0
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
