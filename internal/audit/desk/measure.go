package desk

import (
	"errors"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/replay"
)

// beginMeasurement lets the trials of a violation that was just decided go on, so that its bound grows towards the
// true epsilon. It reports false if there is nothing to measure.
func (t *Turns) beginMeasurement(j *job) bool {
	if t.opt.MeasureTrials == 0 || !j.evidence.Found() || !j.evidence.Measure(t.opt.MeasureTrials) {
		return false
	}
	j.Measuring = true
	j.reports = reportsOf(j)
	return true
}

// concludeMeasurement ends a turn of a measurement; see conclude. Its end and its faults leave the violation as it
// is.
func (t *Turns) concludeMeasurement(stopping bool, j *job, progress *saved.Progress, o Outcome) {
	t.roster.Return(&j.Audit, min(o.Took, 2*step.Longest), t.now)
	var ends *replay.EndsError
	switch err, stop := o.Trouble, (*EndOfMeasurement)(nil); {
	case stopping:
	case o.Stop != nil:
		t.places.endMeasurement(j, t.opt.Say(o.Stop))
	case o.Broken != nil:
		t.places.endMeasurement(j, t.opt.Say(o.Broken))
	case errors.As(err, &stop):
		t.places.endMeasurement(j, t.opt.Say(stop))
	case errors.As(err, &ends):
		t.noteEnds(j, &ends.Ends)
		t.places.endMeasurement(j, ends.Text())
	case errors.As(err, new(*environment.UnreadCatalogs)):
		j.held, j.NotBefore = true, t.now.Add(t.opt.RetryAfter)
	case err != nil:
		t.faults++
		t.do(Counted{FaultsCounter, ""})
		j.NotBefore = t.now.Add(t.retryIn(j, err))
	case j.evidence == nil || j.evidence.Decided():
		t.places.endMeasurement(j, "")
	default:
		t.roster.Resize(&j.Audit, j.size())
	}
	t.store.put(j, progress)
	t.places.shed()
	t.do(Wake{})
}

// EndOfMeasurement is an error that a later turn of the measurement would meet too.
type EndOfMeasurement struct{ Err error }

func (e *EndOfMeasurement) Error() string { return e.Err.Error() }

// endMeasurement ends a measurement, whose evidence is not needed any more. why is the reason if it ended early.
func (p *places) endMeasurement(j *job, why string) {
	j.Measuring, j.shown = false, nil
	r := j.worst()
	fields := []zap.Field{
		zap.String("audit", j.id), zap.String("db.query.summary", j.plan.Summary),
		zap.String("dp.finding.kind", string(finding.OfViolation(float64(r.EpsilonLower), r.FloatingPoint()))), zap.Float64("epsilon_claimed", float64(r.Claimed.Epsilon)), zap.Float64("epsilon_lower", float64(r.EpsilonLower)), zap.Int("trials", r.Trials.D0),
	}
	if m := r.Measurement; m != nil {
		fields = append(fields, zap.String("measurement", string(m.State)))
	}
	if why != "" {
		fields = append(fields, zap.String("ended_early", why))
	}
	p.log(zap.InfoLevel, "violation measured: the lower bound on epsilon is final", fields...)
	p.release(j)
	p.retire()
}

// giveUpMeasurements ends measurements, the largest first, while the audits exceed their memory budget: measuring a
// violation is worth less than finding another.
func (p *places) giveUpMeasurements() {
	for p.opt.Memory > 0 && p.roster.Bytes() > p.opt.Memory {
		var largest *job
		for _, j := range p.order {
			if j.Measuring && !j.Busy() && (largest == nil || j.Bytes > largest.Bytes) {
				largest = j
			}
		}
		if largest == nil {
			return
		}
		p.endMeasurement(largest, "the audits exceed their memory budget")
	}
}
