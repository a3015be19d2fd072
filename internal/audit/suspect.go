package audit

import (
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Results of a confirmation, fit for a metric label.
const (
	confirmed    = "confirmed"
	notConfirmed = "not_confirmed"
	abandoned    = "abandoned" // the audit was evicted, or its evidence dropped, before the end
)

// confirmationBegan reports that trials show a violation, which fresh trials must confirm. The caller holds Auditor.mu and
// has the job's turn.
func (a *Auditor) confirmationBegan(j *job) {
	a.opt.Logger.Info("trials show a violation; it is reported if fresh trials, each in its own session, confirm it", zap.String("audit", j.id))
	a.reportSuspected(j, false)
}

// reportSuspected reports the beginning of a suspicion, or its end without a violation. The caller has the job's turn
// or holds Auditor.mu.
func (a *Auditor) reportSuspected(j *job, over bool) {
	if a.opt.OnFinding == nil || !a.opt.Suspected || len(j.worlds) == 0 {
		return
	}
	f := a.finding(j, 0, j.worst())
	if f.Kind = finding.Unconfirmed; over {
		f.Status = finding.Resolved
	}
	a.opt.OnFinding(f)
}

// ended counts and logs the result of the confirmation of a decided job, if there was one. The caller holds Auditor.mu
// and has the job's turn.
func (a *Auditor) ended(j *job, verdict analysis.Verdict) {
	switch {
	case !j.confirming:
	case verdict == analysis.Violation:
		a.metrics.confirmations.WithLabelValues(confirmed).Inc()
	default:
		a.metrics.confirmations.WithLabelValues(notConfirmed).Inc()
		a.opt.Logger.Warn("trials showed a violation that fresh trials did not confirm; it is not reported", zap.String("audit", j.id), zap.String("reason", j.worst().Reason))
		a.reportSuspected(j, true)
	}
}

// abandon ends a job's confirmation, if any, without a result. The caller holds Auditor.mu.
func (a *Auditor) abandon(j *job) {
	if !j.confirming || j.state() == view.Decided {
		return
	}
	j.confirming, j.suspected = false, 0
	a.metrics.confirmations.WithLabelValues(abandoned).Inc()
	a.opt.Logger.Warn("the evidence was dropped while a violation was being confirmed; it is not reported", zap.String("audit", j.id))
	a.reportSuspected(j, true)
}
