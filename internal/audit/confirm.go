package audit

import (
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
)

// Results of a confirmation, fit for a metric label.
const (
	confirmed    = "confirmed"
	notConfirmed = "not_confirmed"
	abandoned    = "abandoned" // the audit was evicted, or its evidence dropped, before the end
)

func confirmationOutcomes() []string { return []string{confirmed, notConfirmed, abandoned} }

// confirm begins the confirmation of a violation that a job's trials show, before it is reported: on new trials of the
// whole query, each in a session of its own, so that no assumption of hoisting matters. The caller has the job's turn.
func (a *Auditor) confirm(j *job) error {
	suspected := j.evidence.Wealth()
	if err := confirm(j.evidence, j.hoist, j.hoisted); err != nil {
		return err
	}
	a.opt.Logger.Info("trials show a violation; fresh trials, each in a session of its own, have to confirm it before it is reported", zap.String("audit", j.id))
	j.suspected = suspected // it keeps its priority among the waiting audits
	a.publish(j)
	return nil
}

// ended counts and logs the result of the confirmation of a decided job, if there was one. The caller holds Auditor.mu and
// has the job's turn.
func (a *Auditor) ended(j *job, verdict analysis.Verdict) {
	switch {
	case !j.confirming:
	case verdict == analysis.Violation:
		a.metrics.confirmations.WithLabelValues(confirmed).Inc()
	default:
		a.metrics.confirmations.WithLabelValues(notConfirmed).Inc()
		a.opt.Logger.Warn("trials showed a violation, and fresh trials do not confirm it; it is not reported", zap.String("audit", j.id), zap.String("reason", j.worst().Reason))
	}
}

// abandon ends a job's confirmation, if any, without a result. The caller holds Auditor.mu.
func (a *Auditor) abandon(j *job) {
	if !j.confirming || j.state() == Decided {
		return
	}
	j.confirming, j.suspected = false, 0
	a.metrics.confirmations.WithLabelValues(abandoned).Inc()
	a.opt.Logger.Warn("a violation was being confirmed when the audit lost its evidence; it is not reported", zap.String("audit", j.id))
}
