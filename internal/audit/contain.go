package audit

import (
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
)

// recovered counts and logs a panic. It takes no lock.
func (a *Auditor) recovered(where string, r any) { a.guard.recovered(where, r) }

// contain calls f. If f panics, it returns recognize.ErrPanic.
func (a *Auditor) contain(where string, f func() error) error { return a.guard.contain(where, f) }

// locked calls f with Auditor.mu held, and releases it also if f panics.
func (a *Auditor) locked(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// inTurn calls f in a job's turn. If f panics, the audit is set aside; f then returns false.
func (a *Auditor) inTurn(j *job, f func()) (whole bool) {
	defer func() {
		if r := recover(); r != nil {
			a.recovered("audit "+j.id, r)
			_ = a.contain("set aside audit "+j.id, func() error { a.locked(func() { a.breakOff(j) }); return nil })
		}
	}()
	f()
	return true
}

// breakOff ends the turn of a job that panicked, unless it has ended. The ledger keeps the evidence.
func (d *desk) breakOff(j *job) {
	defer d.do(wake{})
	j.given = nil
	now := d.now
	switch {
	case !j.Busy():
	case j.Phase() == schedule.Watching:
		d.watchFailed(j, turn.ErrInternal)
		d.roster.Rest(&j.Audit, turn.Short, now)
	case j.Measuring:
		d.roster.Return(&j.Audit, 0, now)
		d.endMeasurement(j, turn.ErrInternal.Error())
	default:
		d.markInconclusive(j, turn.ErrInternal)
	}
}
