package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// watchEvery is the shortest time between two watch turns of one audit.
const watchEvery = time.Minute

// watch is the change detector of a decided audit. Its fields are guarded by Auditor.mu; the detector itself belongs to
// the turn.
type watch struct {
	state    []byte // sealed; nil = no trials yet
	rounds   int
	evidence float64
	last     time.Time
	trouble  string // why the last turn failed
}

// watchable reports whether a decided audit has turns in the watch share: its claim was audited and kept. The caller
// holds Auditor.mu.
func (a *Auditor) watchable(j *job) bool {
	return a.opt.WatchShare > 0 && j.plan.Claim != nil && len(j.worlds) > 0 && !j.Open && j.worst().Verdict == analysis.NoEvidence
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
	w, why, err := a.watchTurn(ctx, j)
	var plan *rewrite.Plan
	var edition uint64
	if err == nil && why != noRenewal {
		plan, edition, err = a.planAgain(j)
	}
	if w != nil && ctx.Err() == nil {
		a.saveWatch(ctx, j, w, why)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opt.Now()
	took := min(now.Sub(began), 2*longestTurn)
	defer a.wake()
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

// watchTurn runs the trials of a watch turn. The detector is nil if none ran.
func (a *Auditor) watchTurn(ctx context.Context, j *job) (w *evidence.Watch, why renewal, err error) {
	epoch, same, err := a.sameAsNow(ctx, j)
	switch {
	case err != nil:
		return nil, noRenewal, err
	case epoch != j.epoch:
		return nil, copiesReplaced, nil
	case !same:
		return nil, engineReplaced, nil
	}
	a.mu.Lock()
	due := a.repeatDue(j)
	a.mu.Unlock()
	if due {
		return nil, repeatDue, nil
	}
	if same, err = a.judge(ctx, j); err != nil {
		return nil, noRenewal, err
	} else if !same {
		return nil, engineReplaced, nil
	}
	if err := a.createTexts(j); err != nil {
		return nil, noRenewal, err
	}
	if w, err = a.detector(j); err != nil {
		return nil, noRenewal, err
	}
	if err := a.watchRounds(ctx, j, w); err != nil {
		return nil, noRenewal, err
	}
	if !w.Alarm() {
		return w, noRenewal, nil
	}
	switch epoch, same, err = a.sameAsNow(ctx, j); { // trials on two versions of the copies or the engine show nothing
	case err != nil:
		return nil, noRenewal, err
	case epoch != j.epoch:
		return nil, copiesReplaced, nil
	case !same:
		return nil, engineReplaced, nil
	}
	return w, changeFound, nil
}

// detector returns the change detector of a job as it was after the last watch turn.
func (a *Auditor) detector(j *job) (*evidence.Watch, error) {
	claim, opt := a.terms(j.plan, 1)
	opt.Salt = a.salt(j.plan.Key)
	w := evidence.NewWatch(claim, opt, len(j.worlds))
	a.mu.Lock()
	state := j.watch.state
	a.mu.Unlock()
	if state == nil {
		return w, nil
	}
	body, err := ledger.Unseal(state)
	if err == nil {
		err = w.UnmarshalBinary(body)
	}
	if err != nil {
		a.opt.Logger.Warn("the stored change detector of an audit cannot be used: it starts again", zap.String("audit", j.id), zap.String("reason", a.say(err)))
		w = evidence.NewWatch(claim, opt, len(j.worlds))
	}
	return w, nil
}

// watchRounds adds the rounds of one watch turn, which is as long as a first turn. Trials run the whole query.
func (a *Auditor) watchRounds(ctx context.Context, j *job, w *evidence.Watch) error {
	s := replay.Statement{
		Worlds: []string{j.worlds[0].sql.D0}, Params: j.query.Params, Settings: j.plan.Settings, SearchPath: j.plan.SearchPath,
		Simple: j.simple(), Named: j.query.Named,
	}
	for i := range j.worlds {
		s.Worlds = append(s.Worlds, j.worlds[i].sql.D1)
	}
	run, err := a.opt.Player.Start(s, a.opt.Seed())
	if err != nil {
		return err
	}
	defer run.Close()
	began, ran := a.opt.Now(), 0
	for batch, err := range run.Stream(ctx, min(a.opt.BatchTrials, firstBatch)) {
		if err != nil {
			return err
		}
		for _, round := range batch.Rounds {
			if err := w.Add(round); err != nil {
				return err
			}
		}
		ran += len(batch.Rounds)
		a.metrics.batch(batch, nil)
		a.mu.Lock()
		a.lastTrial, a.shadowUp = a.opt.Now(), true
		a.mu.Unlock()
		if w.Alarm() || a.turnOver(true, ran, a.opt.Now().Sub(began), 0, nil) {
			break
		}
	}
	return nil
}

// saveWatch keeps the state of a change detector, also in the ledger, and notes an alarm there.
func (a *Auditor) saveWatch(ctx context.Context, j *job, w *evidence.Watch, why renewal) {
	body, err := w.MarshalBinary()
	if err != nil {
		a.opt.Logger.Error("the change detector of an audit cannot be stored", zap.String("audit", j.id), zap.String("error", a.say(err)))
		return
	}
	sealed := ledger.Seal(body)
	a.mu.Lock()
	j.watch = watch{state: sealed, rounds: w.Rounds(), evidence: w.Evidence(), last: a.opt.Now()}
	a.mu.Unlock()
	if why == changeFound {
		a.metrics.changes.Inc()
		a.opt.Logger.Warn("a query that was audited without a violation seems to leak more than it claims now: its audit begins again", zap.String("audit", j.id),
			zap.String("db.query.summary", j.plan.Summary), zap.Int("trials_since_verdict", w.Rounds()))
	}
	if !a.keeper.On {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	engine := a.keeper.Engine.Load()
	err = engine.SaveWatch(ctx, j.Key, sealed)
	if err == nil && why == changeFound {
		err = engine.Note(ctx, j.Key, "changed", fmt.Sprintf("the change detector raised an alarm %d pairs of trials after the verdict: the audit begins again", w.Rounds()))
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
	if key, _ := a.identity(j.query, plan.Key); key != j.Key {
		return nil, 0, errors.New("its claim, its settings or the configuration of its tables changed: it is another audit when it is run again")
	}
	return plan, edition, nil
}

// renewAudit makes a watched audit begin again. The caller holds Auditor.mu.
func (a *Auditor) renewAudit(j *job, why renewal, plan *rewrite.Plan, edition uint64) {
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
		j.changed = a.opt.Now()
		j.previous = j.worst().Verdict
	}
	a.again(j, j.query, plan, edition)
	j.Background = why == repeatDue // what shows a change has its turns at once
}

// watchFailed notes that a watch turn failed, and logs it unless the turn before failed likewise. The caller holds
// Auditor.mu.
func (a *Auditor) watchFailed(j *job, err error) {
	text := a.say(err)
	if j.watch.trouble != text {
		a.opt.Logger.Warn("a decided audit cannot be watched: it will be retried", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
	}
	j.watch.trouble = text
	a.faults++
	a.metrics.faults.Inc()
	j.NotBefore = a.opt.Now().Add(a.opt.RetryAfter)
}

// watchState returns what the status shows of a decided audit's change detector; nil if it is not watched. The caller
// holds Auditor.mu.
func (j *job) watchState(opt *Options) *view.WatchState {
	if !j.Watched {
		return nil
	}
	return &view.WatchState{
		Trials: j.watch.rounds, Evidence: analysis.Float(j.watch.evidence), Alarm: analysis.Float(math.Log(evidence.WatchRunLength)),
		RunLength: (evidence.WatchRunLength - 1) * evidence.BlockRounds(opt.Analysis.MaxTrials), Last: j.watch.last, Trouble: j.watch.trouble,
	}
}
