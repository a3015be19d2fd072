package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// How long turns are. A turn ends with a batch, and has one at least.
const (
	firstRounds = 50          // of a first turn, which is short: a badly broken query needs no more
	firstBatch  = 5           // rounds asked for at a time in a first turn, at first
	turnTime    = time.Second // a first turn at most; another turn at least, as it may begin with opening sessions
	longestTurn = 20 * time.Second
)

// turnOver reports whether a turn of so many rounds and so long ends. pressing says that a new query waits for its first turn.
func (a *Auditor) turnOver(first bool, rounds int, took time.Duration, pressing func() bool) bool {
	if first {
		return rounds >= firstRounds || took >= turnTime
	}
	return took >= longestTurn || took >= turnTime && (rounds >= a.opt.TurnTrials || pressing())
}

// turn runs a job until it is decided, its share of trials is used, it cannot be replayed, or ctx ends.
func (a *Auditor) turn(ctx context.Context, j *job) {
	began := a.opt.Now()
	defer func() {
		if r := recover(); r != nil {
			a.recovered("audit "+j.id, r)
			a.mu.Lock()
			a.markInconclusive(j, errors.New("internal error: see the log"))
			a.mu.Unlock()
		}
	}()
	if !a.prepare(j) {
		return
	}
	err := a.replay(ctx, j)
	fresh := false
	if err == nil {
		fresh, err = a.current(ctx, j) // the copies may have changed during the turn
	}
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	took := min(a.opt.Now().Sub(began), 2*longestTurn) // not the time in which replays were held
	switch {
	case j.evidence == nil: // it could not begin anew
		a.markInconclusive(j, err)
		a.shed()
		return
	case err != nil:
		a.postpone(j, err, took)
	case fresh && j.evidence.Decided():
		a.decide(j, took)
		return
	default:
		j.trouble = ""
		a.roster.Resize(&j.Audit, j.size())
		a.roster.Return(&j.Audit, took, a.opt.Now())
	}
	a.shed()
	a.wake()
}

// decide ends an audit. The caller holds Auditor.mu and has the job's turn.
func (a *Auditor) decide(j *job, took time.Duration) {
	j.trouble = ""
	verdict := j.worst().Verdict
	a.metrics.verdicts.WithLabelValues(string(verdict)).Inc()
	a.ended(j, verdict)
	a.roster.Decide(&j.Audit, verdict == analysis.Violation, took)
	a.release(j)
	a.shed()
	a.retire()
}

// postpone lets a job wait for a shadow database that is away or not right. The caller holds Auditor.mu and has the job's turn.
func (a *Auditor) postpone(j *job, err error, took time.Duration) {
	a.faults++
	a.shadowUp = false
	a.metrics.faults.Inc()
	text := a.say(err)
	if j.trouble != text {
		a.opt.Logger.Warn("audit waits; traffic is not affected", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
	}
	j.trouble = text
	now := a.opt.Now()
	j.NotBefore = now.Add(a.opt.RetryAfter)
	a.roster.Resize(&j.Audit, j.size())
	a.roster.Return(&j.Audit, took, now)
}

// replay runs one turn; evidence that hoisting has spoilt is dropped.
func (a *Auditor) replay(ctx context.Context, j *job) error {
	if _, err := a.current(ctx, j); err != nil {
		return err
	}
	err := a.rounds(ctx, j)
	if differ := j.hoist.Disagreed(); differ != nil {
		a.opt.Logger.Warn("audit begins again without hoisting", zap.String("audit", j.id), zap.Error(differ))
		a.mu.Lock()
		defer a.mu.Unlock()
		err = a.beginAgain(j)
	}
	return err
}

// beginAgain drops a job's evidence; what was reported is not reported again. The caller holds Auditor.mu and has the job's turn.
func (a *Auditor) beginAgain(j *job) error {
	reported := make([]bool, len(j.worlds))
	for i := range j.worlds {
		reported[i] = j.worlds[i].reported
	}
	err := a.resetEvidence(j)
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
	if j.evidence.Found() {
		// Nothing is reported that two generations of copies may have shown, nor that the first trials alone have.
		if fresh, err := a.current(ctx, j); err != nil || !fresh {
			return err
		}
		if err := run.Verify(ctx); err != nil {
			return err
		}
		if !j.evidence.Confirming() {
			return a.confirm(j)
		}
		a.publish(j)
	}
	keep = !j.evidence.Decided()
	return nil
}

// stream takes the rounds of one turn, and publishes what they show until a violation is to be reported.
func (a *Auditor) stream(ctx context.Context, j *job, run *replay.Run) error {
	began, ran, first, batchRounds := a.opt.Now(), 0, j.first(), a.opt.BatchTrials
	if first {
		batchRounds = min(batchRounds, firstBatch)
	}
	return gather(ctx, run, batchRounds, j.evidence, func(batch replay.Batch) bool {
		a.metrics.batch(batch, j.evidence.Settled())
		if j.evidence.Found() {
			return false
		}
		a.publish(j)
		ran += len(batch.Rounds)
		return !a.turnOver(first, ran, a.opt.Now().Sub(began), a.pressing)
	})
}

// first reports whether the turn that the caller has is the job's first.
func (j *job) first() bool { return j.Turns() <= 1 }

// pressing reports whether a new query waits for its first turn.
func (a *Auditor) pressing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.roster.Pressing(a.opt.Now())
}

// publish makes the latest reports visible and reports every violation once.
func (a *Auditor) publish(j *job) {
	reports := make([]analysis.Report, len(j.worlds))
	partitions := make([]int, len(j.worlds))
	for i := range j.worlds {
		reports[i] = j.report(i)
		partitions[i] = cutPartitions(&reports[i])
	}
	a.mu.Lock()
	j.reports, j.confirming = reports, j.evidence.Confirming()
	worst := evidence.Worst(reports)
	j.partitions = partitions[worst]
	j.Trials, j.Wealth = reports[worst].Trials.D0, 0
	for i := range reports {
		if w := float64(reports[i].WealthLog); !math.IsNaN(w) && (i == 0 || w > j.Wealth) {
			j.Wealth = w
		}
	}
	j.Wealth = max(j.Wealth, j.suspected)
	a.lastTrial, a.shadowUp = a.opt.Now(), true
	a.mu.Unlock()
	for i, r := range reports {
		if w := &j.worlds[i]; r.Verdict == analysis.Violation && !w.reported {
			w.reported = true
			a.opt.OnFinding(a.finding(j, w, r))
		}
	}
}
