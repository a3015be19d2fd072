package audit

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/replay"
)

// beginMeasurement lets the trials of a violation that was just decided go on, so that its bound grows towards the true
// epsilon. It reports false if there is nothing to measure. The caller holds Auditor.mu and has the job's turn.
func (a *Auditor) beginMeasurement(j *job) bool {
	if a.opt.MeasureTrials == 0 || !j.evidence.Found() || !j.evidence.Measure(a.opt.MeasureTrials) {
		return false
	}
	j.Measuring = true
	j.reports = reportsOf(j)
	return true
}

// measure runs a turn of a measurement. Its end and its faults leave the violation as it is.
func (a *Auditor) measure(ctx context.Context, j *job) {
	began, progress := a.opt.Now(), a.progress(j)
	err := a.measureTrials(ctx, j)
	if stop := (*endOfMeasurement)(nil); !errors.As(err, &stop) { // otherwise the copies may differ from those before
		progress = a.progress(j)
	}
	a.concludeMeasurement(ctx, j, a.opt.Now().Sub(began), progress, err)
	a.save(ctx, j)
}

// measureTrials runs the trials of a turn of a measurement.
func (a *Auditor) measureTrials(ctx context.Context, j *job) error {
	if err := a.prepareMeasurement(ctx, j); err != nil {
		return err
	}
	return a.measureRounds(ctx, j)
}

// concludeMeasurement ends a turn of a measurement; see conclude.
func (a *Auditor) concludeMeasurement(ctx context.Context, j *job, took time.Duration, progress *saved.Progress, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roster.Return(&j.Audit, min(took, 2*longestTurn), a.opt.Now())
	switch stop := (*endOfMeasurement)(nil); {
	case ctx.Err() != nil:
	case errors.As(err, &stop):
		a.endMeasurement(j, stop.Error())
	case errors.As(err, new(*unreadCatalogs)):
		j.held, j.NotBefore = true, a.opt.Now().Add(a.opt.RetryAfter)
	case err != nil:
		a.faults++
		a.metrics.faults.Inc()
		j.NotBefore = a.opt.Now().Add(a.opt.RetryAfter)
	case j.evidence.Decided():
		a.endMeasurement(j, "")
	default:
		a.roster.Resize(&j.Audit, j.size())
	}
	a.put(j, progress)
	a.shed()
	a.wake()
}

// endOfMeasurement is an error that a later turn of the measurement would meet too.
type endOfMeasurement struct{ error }

// prepareMeasurement creates the texts of a restored measurement, and ends one whose copies were replaced.
func (a *Auditor) prepareMeasurement(ctx context.Context, j *job) error {
	_, same, err := a.sameAsNow(ctx, j)
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

// measureRounds runs the rounds of a turn of a measurement. They are published only if the copies are the same at its
// end.
func (a *Auditor) measureRounds(ctx context.Context, j *job) error {
	run, err := a.run(j)
	if err != nil {
		return err
	}
	defer run.Close()
	began, ran := a.opt.Now(), 0
	err = trial.Gather(ctx, run, a.opt.BatchTrials, j.evidence, func(batch replay.Batch) bool {
		a.metrics.batch(batch, j.evidence.Settled())
		ran += len(batch.Rounds)
		return !a.turnOver(false, ran, a.opt.Now().Sub(began), j.leastTime(), func() bool { return a.pressing(j) })
	})
	if err != nil {
		return err
	}
	switch _, same, err := a.sameAsNow(ctx, j); {
	case err != nil:
		return err
	case !same:
		return &endOfMeasurement{errors.New("the copies or the engine were replaced")}
	}
	a.publish(j)
	return nil
}

// endMeasurement ends a measurement, whose evidence is not needed any more. why is the reason if it ended early. The
// caller holds Auditor.mu.
func (a *Auditor) endMeasurement(j *job, why string) {
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
	a.opt.Logger.Info("violation measured: the lower bound on epsilon is final", fields...)
	a.release(j)
	a.retire()
}

// giveUpMeasurements ends measurements, the largest first, while the audits exceed their memory budget: measuring a
// violation is worth less than finding another. The caller holds Auditor.mu.
func (a *Auditor) giveUpMeasurements() {
	for a.opt.Memory > 0 && a.roster.Bytes() > a.opt.Memory {
		var largest *job
		for _, j := range a.order {
			if j.Measuring && !j.Busy() && (largest == nil || j.Bytes > largest.Bytes) {
				largest = j
			}
		}
		if largest == nil {
			return
		}
		a.endMeasurement(largest, "the audits exceed their memory budget")
	}
}

// reportsOf returns the present reports of all neighbours. The caller has the job's turn.
func reportsOf(j *job) []analysis.Report {
	reports := make([]analysis.Report, len(j.worlds))
	for i := range j.worlds {
		reports[i] = j.report(i)
		cutPartitions(&reports[i])
	}
	return reports
}
