package desk

import (
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Results of a control and a confirmation, fit for a metric label.
const (
	confirmed    = "confirmed"
	notConfirmed = "not_confirmed"
	blocked      = "blocked"   // answers differ between D0 and its twin
	abandoned    = "abandoned" // the audit was evicted, or its evidence dropped, before the end
)

// confirmationBegan reports that trials show a violation, which fresh trials must confirm.
func (v *violations) confirmationBegan(j *job) {
	if j.control {
		return
	}
	v.log(zap.InfoLevel, "trials show a violation; it is reported if fresh trials, each in its own session, confirm it, and a twin of D0, if there is one, answers like D0", zap.String("audit", j.id))
	v.reportSuspected(j, false)
}

// reportSuspected reports the beginning of a suspicion, or its end without a violation.
func (v *violations) reportSuspected(j *job, over bool) {
	if !v.opt.Findings || !v.opt.Suspected || len(j.worlds) == 0 || j.control {
		return
	}
	f := v.finding(j, 0, j.worst())
	if f.Kind = finding.Unconfirmed; over {
		f.Status = finding.Resolved
	}
	v.alert(f)
}

// confirmationEnded counts and logs the result of the confirmation of a decided job, if there was one.
func (v *violations) confirmationEnded(j *job, verdict analysis.Verdict) {
	switch {
	case !j.confirming:
	case verdict == analysis.Violation:
		v.do(Counted{ConfirmationsCounter, confirmed})
	case j.worst().Control.Blocks():
		v.blocked(j)
	default:
		v.notConfirmed(j, j.worst().Reason)
	}
}

// blocked counts, logs and reports that the control of a violation has blocked it.
func (v *violations) blocked(j *job) {
	if j.control {
		return
	}
	i := evidence.Worst(j.reports)
	r := j.reports[i]
	v.do(Counted{ConfirmationsCounter, blocked})
	v.log(zap.WarnLevel, "trials showed a violation, and answers differ between D0 and its twin, too; it is not reported", zap.String("audit", j.id), zap.String("reason", r.Reason))
	v.reportSuspected(j, true)
	if v.opt.Findings && i < len(j.worlds) {
		f := v.finding(j, i, r)
		f.Kind = finding.CopiesDiffer
		v.alert(f)
	}
}

// notConfirmed counts, logs and reports the end of a confirmation without a violation.
func (v *violations) notConfirmed(j *job, reason string) {
	if j.control {
		return
	}
	v.do(Counted{ConfirmationsCounter, notConfirmed})
	v.log(zap.WarnLevel, "trials showed a violation that fresh trials did not confirm; it is not reported", zap.String("audit", j.id), zap.String("reason", reason))
	v.reportSuspected(j, true)
}

// abandon ends a job's confirmation, if any, without a result.
func (v *violations) abandon(j *job) {
	if !j.confirming || j.state() == view.Decided {
		return
	}
	j.confirming, j.suspected = false, 0
	if j.control {
		return
	}
	v.do(Counted{ConfirmationsCounter, abandoned})
	v.log(zap.WarnLevel, "the evidence was dropped while a violation was being confirmed; it is not reported", zap.String("audit", j.id))
	v.reportSuspected(j, true)
}

// Confirmations returns every result of a confirmation.
func Confirmations() []string { return []string{confirmed, notConfirmed, blocked, abandoned} }
