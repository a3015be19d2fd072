package audit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// effects performs what decisions of the desk make others do. None waits for a database.
type effects struct {
	opt     *Options
	keeper  *keep.Keeper
	stages  *fleet.Stages
	metrics *metrics
	ready   chan struct{} // wakes fleet.Local; capacity 1
	read    func()        // makes the engines be read now
}

func (x *effects) perform(e desk.Effect) {
	switch e := e.(type) {
	case desk.Log:
		if entry := x.opt.Logger.Check(e.Level, e.Message); entry != nil {
			entry.Write(e.Fields...)
		}
	case desk.Found:
		if x.opt.OnFinding != nil {
			x.opt.OnFinding(e.Finding)
		}
	case desk.Counted:
		x.metrics.counter(e).Inc()
	case desk.Refused:
		x.refused(e)
	case desk.Remembered:
		x.stages.Recognizer.Outcome(e.Look, e.Away)
	case desk.ReadEngines:
		time.AfterFunc(e.After, x.read)
	case desk.EngineChanged:
		x.stages.Recognizer.Forget()
	case desk.Wake:
		select {
		case x.ready <- struct{}{}:
		default:
		}
	default:
		x.keep(e)
	}
}

// keep performs the effects that the keeper writes to the ledger.
func (x *effects) keep(e desk.Effect) {
	switch e := e.(type) {
	case desk.Write:
		x.keeper.Note(e.Audit)
	case desk.Placed:
		x.keeper.Place(e.Query)
	case desk.Displaced:
		x.keeper.Displace(e.Key)
	case desk.LedgerFailed:
		x.keeper.Wrote(e.Err)
	case desk.Seen:
		x.keeper.See(e.Key, e.Query, e.Captured, e.Placed, e.Before)
	case desk.Skipped:
		x.metrics.skipped.WithLabelValues(e.Reason).Inc()
		x.keeper.Skip(e.Reason, 1, e.At)
	case desk.Sampled:
		if x.keeper.WantsSample(e.Reason, e.Query) {
			s := capture.SampleOf(e.Reason, e.Query, false)
			s.Detail, s.Advice = e.Detail, e.Advice
			keepSample(x.keeper, x.opt, s)
		}
	}
}

// refused adds the claim of a refused DP query to what analysts received, and requests a reading of the catalogs if the
// refusal may be out of date: the table may have been created since.
func (x *effects) refused(e desk.Refused) {
	if !reasons.NotDP(reasons.Reason(e.Reason)) {
		x.keeper.Refuse(e.Captured, e.Claim)
	}
	switch reasons.Reason(e.Reason) {
	case reasons.UnknownTable, reasons.UnknownFunction, reasons.NoCopy:
		x.stages.Catalogs.Ask()
	}
}

// keepSample keeps a sample for the ledger, with the text of the statement only if that may be shown.
func keepSample(k *keep.Keeper, o *Options, x capture.Sample) {
	if !o.ShowSQL {
		x.Text = ""
	}
	k.Sample(x)
}

// counter returns the counter of an effect.
func (m *metrics) counter(e desk.Counted) prometheus.Counter {
	switch e.Counter {
	case desk.VerdictsCounter:
		return m.verdicts.WithLabelValues(e.Label)
	case desk.ConfirmationsCounter:
		return m.confirmations.WithLabelValues(e.Label)
	case desk.EvictedCounter:
		return m.evicted.WithLabelValues(e.Label)
	case desk.RecognizedCounter:
		return m.recognized
	case desk.AuditedCounter:
		return m.audited
	case desk.LostCounter:
		return m.lost
	case desk.ResolvedCounter:
		return m.resolved
	case desk.ChangesCounter:
		return m.changes
	}
	return m.faults
}
