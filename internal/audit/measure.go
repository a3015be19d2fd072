package audit

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
)

// beginMeasurement lets the trials of a violation that was just decided go on, so that its bound grows towards the
// true epsilon. It reports false if there is nothing to measure.
func (d *desk) beginMeasurement(j *job) bool {
	if d.opt.MeasureTrials == 0 || !j.evidence.Found() || !j.evidence.Measure(d.opt.MeasureTrials) {
		return false
	}
	j.Measuring = true
	j.reports = reportsOf(j)
	return true
}

// concludeMeasurement ends a turn of a measurement; see conclude. Its end and its faults leave the violation as it
// is.
func (d *desk) concludeMeasurement(stopping bool, j *job, progress *saved.Progress, o turn.Outcome) {
	d.roster.Return(&j.Audit, min(o.Took, 2*turn.Longest), d.now)
	switch err, stop := o.Trouble, (*endOfMeasurement)(nil); {
	case stopping:
	case o.Stop != nil:
		d.endMeasurement(j, d.opt.say(o.Stop))
	case o.Broken != nil:
		d.endMeasurement(j, d.opt.say(o.Broken))
	case errors.As(err, &stop):
		d.endMeasurement(j, d.opt.say(stop))
	case errors.As(err, new(*environment.UnreadCatalogs)):
		j.held, j.NotBefore = true, d.now.Add(d.opt.RetryAfter)
	case err != nil:
		d.faults++
		d.do(counted{faultsCounter, ""})
		j.NotBefore = d.now.Add(d.opt.RetryAfter)
	case j.evidence == nil || j.evidence.Decided():
		d.endMeasurement(j, "")
	default:
		d.roster.Resize(&j.Audit, j.size())
	}
	d.put(j, progress)
	d.shed()
	d.do(wake{})
}

// endOfMeasurement is an error that a later turn of the measurement would meet too.
type endOfMeasurement struct{ error }

// prepareMeasurement creates the texts of a restored measurement, and ends one whose copies were replaced.
func (a *Auditor) prepareMeasurement(ctx context.Context, j *job) error {
	now, err := a.env.Read(ctx)
	same := false
	if err == nil {
		a.locked(func() { same = a.present(j, now) })
	}
	switch {
	case err != nil:
		return err
	case !same:
		return &endOfMeasurement{errors.New("the copies or the engine were replaced")}
	}
	switch same, err := a.judge(ctx, j); {
	case errors.As(err, new(*unjudgeable)):
		return &endOfMeasurement{err}
	case err != nil:
		return err
	case !same:
		return &endOfMeasurement{errors.New("the catalogs changed: the query is rewritten to other texts")}
	}
	if err := a.createTexts(j); err != nil {
		return &endOfMeasurement{err}
	}
	return nil
}

// endMeasurement ends a measurement, whose evidence is not needed any more. why is the reason if it ended early.
func (d *desk) endMeasurement(j *job, why string) {
	j.Measuring = false
	r := j.worst()
	fields := []zap.Field{
		zap.String("audit", j.id), zap.String("db.query.summary", j.plan.Summary),
		zap.Float64("epsilon_claimed", float64(r.Claimed.Epsilon)), zap.Float64("epsilon_lower", float64(r.EpsilonLower)), zap.Int("trials", r.Trials.D0),
	}
	if m := r.Measurement; m != nil {
		fields = append(fields, zap.String("measurement", string(m.State)))
	}
	if why != "" {
		fields = append(fields, zap.String("ended_early", why))
	}
	d.log(zap.InfoLevel, "violation measured: the lower bound on epsilon is final", fields...)
	d.release(j)
	d.retire()
}

// giveUpMeasurements ends measurements, the largest first, while the audits exceed their memory budget: measuring a
// violation is worth less than finding another.
func (d *desk) giveUpMeasurements() {
	for d.opt.Memory > 0 && d.roster.Bytes() > d.opt.Memory {
		var largest *job
		for _, j := range d.order {
			if j.Measuring && !j.Busy() && (largest == nil || j.Bytes > largest.Bytes) {
				largest = j
			}
		}
		if largest == nil {
			return
		}
		d.endMeasurement(largest, "the audits exceed their memory budget")
	}
}

// reportsOf returns the present reports of all neighbours. The caller has the job's turn.
func reportsOf(j *job) []analysis.Report {
	reports := turn.Reports(j.evidence, j.source(), false)
	for i := range reports {
		cutPartitions(&reports[i])
	}
	return reports
}
