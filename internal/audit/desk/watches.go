package desk

import (
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Watches are the turns of decided audits without a violation, which look for changes.
type Watches struct {
	*core
	versions *versions
	places   *places
}

// Renewal returns why a watched audit begins again in an environment.
func (w *Watches) Renewal(key string, now *environment.Environment) Renewal {
	j := w.job(key)
	switch {
	case j.copies != "" && now.Copies != j.copies:
		return CopiesReplaced
	case !w.versions.present(j, now):
		return EngineReplaced
	}
	return NoRenewal
}

// Repeated reports whether a decided audit was decided so long ago that it is repeated.
func (w *Watches) Repeated(key string) bool { return w.repeatDue(w.job(key)) }

// Watched takes a change detector after trials, and the sealed form of its state.
func (w *Watches) Watched(key string, o *evidence.Watch, sealed []byte) {
	j := w.job(key)
	w.lastTrial, w.shadowUp = w.now, true
	j.losses = 0
	j.watch = watch{state: sealed, rounds: o.Rounds(), evidence: o.Evidence(), last: w.now}
	if o.Alarm() {
		w.do(Counted{ChangesCounter, ""})
		w.log(zap.WarnLevel, "a query that was audited without a violation seems to leak more than it claims now: its audit begins again", zap.String("audit", j.id),
			zap.String("db.query.summary", j.plan.Summary), zap.Int("trials_since_verdict", o.Rounds()))
	}
}

// Renew ends the turn of a watched audit, which begins again with a plan.
func (w *Watches) Renew(key string, took time.Duration, why Renewal, plan *rewrite.Plan, edition uint64) {
	j := w.job(key)
	w.roster.Rest(&j.Audit, min(took, 2*step.Longest), w.now)
	w.renewAudit(j, why, plan, edition)
	w.do(Wake{})
}

// End ends the turn of a watched audit. err is why it failed, or nil.
func (w *Watches) End(key string, took time.Duration, err error) {
	j := w.job(key)
	if err != nil {
		w.watchFailed(j, err)
	}
	w.roster.Resize(&j.Audit, j.size())
	w.roster.Rest(&j.Audit, min(took, 2*step.Longest), w.now)
	w.places.shed()
	w.do(Wake{})
}

// watch is the change detector of a decided audit.
type watch struct {
	state    []byte // sealed; nil = no trials yet
	rounds   int
	evidence float64
	last     time.Time
	trouble  string // why the last turn failed
}

// watchable reports whether a decided audit has turns in the watch share: its claim was audited and kept.
func (w *Watches) watchable(j *job) bool {
	return w.opt.WatchShare > 0 && !j.control && j.plan.Claim != nil && len(j.worlds) > 0 && !j.Open && j.worst().Verdict == analysis.NoEvidence
}

// Renewal is why a watched audit begins again.
type Renewal int

// The reasons.
const (
	NoRenewal Renewal = iota
	CopiesReplaced
	EngineReplaced
	RepeatDue
	ChangeFound
)

// renewAudit makes a watched audit begin again.
func (w *Watches) renewAudit(j *job, why Renewal, plan *rewrite.Plan, edition uint64) {
	switch why {
	case CopiesReplaced:
		j.restarts++
	case EngineReplaced:
		j.life.Began++
	case RepeatDue:
		j.repeats++
		j.previous = j.worst().Verdict
	case ChangeFound:
		j.changes++
		j.changed = w.now
		j.previous = j.worst().Verdict
	}
	w.places.again(j, j.query, plan, edition)
	j.Background = why == RepeatDue // what shows a change has its turns at once
}

// watchFailed notes that a watch turn failed, and logs it unless the turn before failed likewise.
func (w *Watches) watchFailed(j *job, err error) {
	text, retry := w.opt.Say(err), w.retryIn(j, err)
	if j.watch.trouble != text {
		w.log(zap.WarnLevel, "a decided audit cannot be watched: it will be retried", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", retry))
	}
	j.watch.trouble = text
	w.faults++
	w.do(Counted{FaultsCounter, ""})
	j.NotBefore = w.now.Add(retry)
}

// watchState returns what the status shows of a decided audit's change detector; nil if it is not watched.
func (j *job) watchState(opt *Options) *view.WatchState {
	if !j.Watched {
		return nil
	}
	_, terms := opt.terms(j.plan, 1)
	return &view.WatchState{
		Trials: j.watch.rounds, Evidence: analysis.Float(j.watch.evidence), Alarm: analysis.Float(math.Log(evidence.WatchRunLength)),
		RunLength: (evidence.WatchRunLength - 1) * evidence.BlockRounds(terms.MaxTrials), Last: j.watch.last, Trouble: j.watch.trouble,
	}
}

// repeatDue reports whether a decided audit was decided so long ago that it is repeated.
func (w *Watches) repeatDue(j *job) bool {
	return w.opt.Repeat > 0 && !j.decided.IsZero() && w.now.Sub(j.decided) >= w.opt.Repeat
}
