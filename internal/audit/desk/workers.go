package desk

import (
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
)

// Workers are the turns that other processes have.
type Workers struct {
	*core
	versions   *versions
	violations *violations
	store      *store
	turns      *Turns
	beginnings *Beginnings
}

// Put notes the evidence of an audit in its turn for the ledger, and reports whether the ledger lacks it.
func (w *Workers) Put(key string) (lacks bool) {
	j := w.job(key)
	if !j.stored {
		w.store.put(j, w.store.progress(j))
	}
	return !j.stored
}

// Stored notes that the ledger has the latest evidence of an audit in its turn.
func (w *Workers) Stored(key string) { w.job(key).stored = true }

// Had returns how many turns an audit has had, this one included, and the time in them.
func (w *Workers) Had(key string) (turns int, used time.Duration) {
	j := w.job(key)
	return j.Turns(), j.Used()
}

// Sent notes that the turn of an audit was given to the workers. The ledger has its evidence; this process keeps none.
func (w *Workers) Sent(key, worker string) {
	j := w.job(key)
	j.given = &given{worker: worker}
	if j.evidence != nil {
		j.given.before = j.evidence.Executions()
	}
	j.evidence = nil
	w.roster.Resize(&j.Audit, j.size())
}

// Taken notes which worker has the turn of an audit; "" = none yet.
func (w *Workers) Taken(key, worker string) { w.job(key).given.worker = worker }

// Adopt gives an audit the turn that a worker was given by an earlier process, and reports whether it can have it.
func (w *Workers) Adopt(key string) bool {
	j := w.job(key)
	if j == nil || j.given != nil || j.Busy() || j.state() == view.Decided {
		return false
	}
	w.roster.Take(&j.Audit)
	return true
}

// Landed is what a turn of a worker has left in the ledger.
type Landed struct {
	Trials    int  // executions in the turn
	Evidence  bool // there is evidence
	Measuring bool
}

// Land takes the evidence of an audit back from the ledger. The error says why it cannot be used.
func (w *Workers) Land(key string, row *ledger.Audit, found bool) (l Landed, fault error) {
	j := w.job(key)
	before := j.given.before
	fault = w.unload(j, row, found)
	if j.evidence == nil {
		return Landed{Measuring: j.Measuring}, fault
	}
	return Landed{Trials: j.evidence.Executions() - before, Evidence: true, Measuring: j.Measuring}, fault
}

// unload gives a job the evidence that the ledger has. Without any, the audit begins again in its next turn. The error
// says why the stored evidence cannot be used.
func (w *Workers) unload(j *job, row *ledger.Audit, found bool) error {
	j.given = nil
	if !found || row.Progress == nil {
		j.worlds, j.evidence, j.processes = nil, nil, max(j.processes, row.Processes)
		return nil
	}
	p, e, err := saved.Unpack(row, w.opt.D1)
	if err != nil {
		j.worlds, j.evidence = nil, nil
		return err
	}
	worlds, reported, reports, confirming := j.worlds, j.reported, j.reports, j.confirming
	w.beginnings.goOn(j, row, p, e)
	j.confirming = confirming // until Delivered
	for i := range min(len(worlds), len(j.worlds)) {
		j.worlds[i] = worlds[i] // with the texts
		j.reported[i] = j.reported[i] || reported[i] && j.Measuring
	}
	if len(reports) == len(j.reports) {
		j.reports = reports // until they are published
	}
	j.stored, j.Kept = true, true
	w.roster.Resize(&j.Audit, j.size())
	return nil
}

// Delivered returns what a worker has delivered as the outcome of a turn here. Unless the worker ended early or met a
// fault, and the turn is no measurement, now is the environment after the turn, or trouble why it could not be read:
// the engine may have changed during the turn.
func (w *Workers) Delivered(key string, d ledger.Outcome, now *environment.Environment, trouble error) Outcome {
	j := w.job(key)
	o := Outcome{Took: d.Took, Evidence: j.evidence}
	j.evidence = nil
	switch {
	case d.Early:
	case d.Broken != "":
		o.Broken = errors.New(d.Broken)
	case d.Void != "":
		o.Trouble = &VoidTrials{errors.New(d.Void)}
	case d.Ends != nil:
		o.Trouble = &replay.EndsError{Ends: *d.Ends}
	case d.Stop != "":
		o.Stop = errors.New(d.Stop)
	case d.Trouble != "" && d.Lost:
		o.Trouble = &lostInWorker{errors.New(d.Trouble)}
	case d.Trouble != "":
		o.Trouble = errors.New(d.Trouble)
	case j.Measuring:
		o.Fresh = true
	case trouble != nil:
		o.Trouble = trouble
	case !w.versions.present(j, now):
		return Outcome{Took: d.Took, Restart: now}
	default:
		o.Fresh = d.Fresh
	}
	if o.Fresh {
		o.Reports = step.Reports(o.Evidence, j.source(), true)
	}
	if o.Fresh && !j.Measuring {
		o.Findings = step.Shown(j.confirming, j.suspected, o.Evidence)
	}
	return o
}
