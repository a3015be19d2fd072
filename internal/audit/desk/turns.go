package desk

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/replay"
)

// Turns decides which audit has the next turn, and takes what comes of it.
type Turns struct {
	*core
	violations *violations
	places     *places
	store      *store
	watches    *Watches
	beginnings *Beginnings
	controls   *Controls
}

// Given is a turn that an audit has been given.
type Given struct {
	Key, ID string
	Kind    step.Kind
	Control bool // see Controls
}

// Next gives the next audit that is due a turn, or returns false and how long to wait.
func (t *Turns) Next() (g Given, ok bool, wait time.Duration) {
	seat, wait := t.roster.Next(t.now)
	if seat == nil {
		return g, false, wait
	}
	t.do(Wake{}) // another worker, for further jobs
	j := t.job(seat.Key)
	g = Given{Key: j.Key, ID: j.id, Kind: step.KindOf(j.Measuring, j.Turns()), Control: j.control}
	if j.Phase() == schedule.Watching {
		g.Kind = step.Watching
	}
	return g, true, 0
}

// Pressing reports whether turns must end soon because a new query waits for its first one.
func (t *Turns) Pressing() bool { return t.roster.Pressing(t.now) }

// Due reports whether an audit waits for a turn that it can have now.
func (t *Turns) Due() bool { return t.roster.Due(t.now) }

// Waiting returns how many audits wait for a turn that they can have now, and whether an undecided one has a turn.
func (t *Turns) Waiting() (n int, running bool) { return t.roster.Waiting(t.now), t.running() }

// Advance takes the results of a turn so far.
func (t *Turns) Advance(key string, now step.Progress) { t.advance(t.job(key), now, nil) }

// TakeOutcome takes the results of a turn, and its evidence back. After a Restart the caller begins the evidence again
// before the turn ends.
func (t *Turns) TakeOutcome(key string, o Outcome) {
	j := t.job(key)
	if o.Evidence != nil {
		j.evidence = o.Evidence
	}
	t.advance(j, o.Progress, o.Findings)
	if o.Restart != nil {
		t.beginnings.replaced(j, o.Restart)
	}
}

// End ends the turn of an audit, whose outcome was taken. stopping reports that the process ends.
func (t *Turns) End(key string, stopping bool, o Outcome) {
	j := t.job(key)
	progress := t.store.progress(j)
	if j.stored && o.Trouble == nil && o.Stop == nil && o.Broken == nil && (j.evidence == nil || !j.evidence.Decided()) {
		progress = nil // a worker has stored it
	}
	if j.Measuring {
		t.concludeMeasurement(stopping, j, progress, o)
		return
	}
	t.conclude(stopping, j, progress, o)
}

// BreakOff ends the turn of an audit that panicked, unless it has ended. The ledger keeps the evidence.
func (t *Turns) BreakOff(key string) {
	j := t.job(key)
	if j == nil {
		return
	}
	defer t.do(Wake{})
	j.given = nil
	now := t.now
	switch {
	case !j.Busy():
	case j.Phase() == schedule.Watching:
		t.watches.watchFailed(j, ErrInternal)
		t.roster.Rest(&j.Audit, step.Short, now)
	case j.Measuring:
		t.roster.Return(&j.Audit, 0, now)
		t.places.endMeasurement(j, ErrInternal.Error())
	default:
		t.markInconclusive(j, ErrInternal)
	}
}

// GiveBack ends a turn that had no trials: the audit waits again.
func (t *Turns) GiveBack(key string) {
	t.roster.Return(&t.job(key).Audit, 0, t.now)
	t.do(Wake{})
}

// Kept notes whether the ledger has the latest evidence of an audit.
func (t *Turns) Kept(key string, kept bool) {
	if j := t.job(key); j != nil {
		j.Kept = kept
	}
}

// conclude ends a turn of an audit without a verdict. progress is what the ledger does not have yet.
func (t *Turns) conclude(stopping bool, j *job, progress *saved.Progress, o Outcome) {
	if stopping && o.Broken == nil {
		if progress != nil {
			t.store.put(j, progress)
		}
		return
	}
	took := min(o.Took, 2*step.Longest) // the time in which replays were held is ignored
	var away *LedgerError
	var ends *replay.EndsError
	switch err := o.Trouble; {
	case o.Broken != nil:
		t.markInconclusive(j, o.Broken)
		t.places.shed()
		return
	case errors.As(err, &away):
		t.postpone(j, away, took)
	case errors.As(err, new(*environment.UnreadCatalogs)):
		if progress != nil {
			t.store.put(j, progress)
		}
		t.hold(j, err, took)
	case errors.As(err, new(*VoidTrials)), errors.As(err, new(*replay.ReadsError)):
		t.log(zap.WarnLevel, "an audit is inconclusive", zap.String("audit", j.id), zap.String("reason", t.opt.Say(err)))
		t.markInconclusive(j, err)
		t.places.shed()
		return
	case errors.As(err, &ends):
		t.endAudit(j, &ends.Ends)
		return
	case errors.As(err, new(*Unjudgeable)):
		t.markInconclusive(j, err)
		t.places.shed()
		return
	case err != nil:
		t.faults++
		t.shadowUp = false
		t.do(Counted{FaultsCounter, ""})
		if progress != nil { // otherwise it has none yet, or the ledger has more
			t.store.put(j, progress)
		}
		t.postpone(j, err, took)
	case o.Fresh && j.evidence != nil && j.evidence.Decided():
		t.decide(j, took, progress)
		return
	default:
		j.trouble, j.losses = "", 0
		j.Background = j.Background && (j.control || !j.confirming) // a violation is confirmed without delay
		t.store.put(j, progress)
		t.roster.Resize(&j.Audit, j.size())
		t.roster.Return(&j.Audit, took, t.now)
	}
	t.places.shed()
	t.do(Wake{})
}

// decide ends an audit with a verdict.
func (t *Turns) decide(j *job, took time.Duration, progress *saved.Progress) {
	j.trouble, j.decided = "", t.now
	verdict := j.worst().Verdict
	if j.control {
		t.roster.Decide(&j.Audit, false, took)
		t.controls.decide(j, verdict, progress)
		return
	}
	t.do(Counted{VerdictsCounter, string(verdict)})
	t.violations.confirmationEnded(j, verdict)
	if verdict == analysis.Violation {
		t.fleet.Reported++
	}
	t.violations.settleViolation(j)
	t.roster.Decide(&j.Audit, verdict == analysis.Violation || j.Open, took)
	if t.beginMeasurement(j) {
		progress = t.store.progress(j)
	}
	t.store.put(j, progress)
	j.Watched = t.watches.watchable(j)
	if !j.Measuring {
		t.places.release(j)
	}
	t.places.shed()
	t.places.retire()
}

// postpone makes a job wait for a database that is unavailable or has a fault.
func (t *Turns) postpone(j *job, err error, took time.Duration) {
	text, away := t.opt.Say(err), (*LedgerError)(nil)
	j.ledgerAway = errors.As(err, &away)
	retry := t.retryIn(j, err)
	switch {
	case j.ledgerAway:
		t.do(LedgerFailed{away.Err}) // one line of the log for all audits
	case j.trouble != text:
		t.log(zap.WarnLevel, "replay failed: the audit will be retried; traffic is not affected", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", retry))
	}
	j.trouble = text
	now := t.now
	j.NotBefore = now.Add(retry)
	t.roster.Resize(&j.Audit, j.size())
	t.roster.Return(&j.Audit, took, now)
}

// markInconclusive marks an audit that cannot be judged inconclusive. The ledger keeps the evidence.
func (t *Turns) markInconclusive(j *job, err error) {
	t.violations.abandon(j)
	j.trouble, j.worlds, j.reported = t.opt.Say(err), nil, nil
	j.reports = []analysis.Report{t.emptyReport(j.plan, j.trouble)}
	t.roster.Decide(&j.Audit, j.Open, 0)
	if j.decided = t.now; j.control {
		t.controls.decide(j, analysis.Inconclusive, nil)
		return
	}
	t.store.put(j, nil)
	t.places.release(j)
	t.do(Counted{VerdictsCounter, string(analysis.Inconclusive)})
}

// advance takes the results of a turn so far: it publishes the reports, and reports every violation once.
func (t *Turns) advance(j *job, now step.Progress, found []step.Finding) {
	if now.Hoisting != nil {
		j.hoisting = now.Hoisting
	}
	for _, f := range found {
		switch f.Kind {
		case step.Suspected:
			j.confirming, j.suspected = true, f.Wealth // it keeps its priority among the waiting audits
		case step.Unconfirmed:
			j.confirming, j.suspected = false, 0
		default:
		}
	}
	if now.Reports != nil {
		j.reports = now.Reports
		j.figures()
		t.doubt(j)
		t.lastTrial, t.shadowUp = t.now, true
	}
	for _, f := range found {
		t.say(j, f)
	}
}

// say reports a finding.
func (t *Turns) say(j *job, f step.Finding) {
	switch f.Kind {
	case step.Suspected:
		t.violations.confirmationBegan(j)
	case step.Unconfirmed:
		reason := "fresh trials do not show it; the audit goes on"
		if j.hoisting != nil && j.hoisting.Reason != "" {
			reason = j.hoisting.Reason
		}
		t.violations.notConfirmed(j, reason)
	case step.Violation:
		if i := f.Neighbour; !j.reported[i] && t.opt.Findings && !j.control {
			j.reported[i] = true
			t.violations.alertViolation(j, t.finding(j, i, j.reports[i]))
		}
	default:
	}
}

// doubt marks an audit whose evidence would be a violation if it were the only one.
func (t *Turns) doubt(j *job) {
	if !t.opt.Family || j.control || j.doubted || j.plan.Claim == nil || !(j.Wealth >= j.Threshold-j.margin) || j.margin <= 0 {
		return
	}
	j.doubted = true
	t.log(zap.InfoLevel, "a violation is suspected: the evidence would suffice for a single audit, but not yet among all audits", zap.String("audit", j.id),
		zap.String("db.query.summary", j.plan.Summary), zap.Int("trials", j.Trials))
}

// hold makes a job wait until the catalogs are read.
func (t *Turns) hold(j *job, err error, took time.Duration) {
	j.trouble, j.held, j.ledgerAway = t.opt.Say(err), true, false
	now := t.now
	j.NotBefore = now.Add(t.opt.RetryAfter)
	t.roster.Resize(&j.Audit, j.size())
	t.roster.Return(&j.Audit, took, now)
}
