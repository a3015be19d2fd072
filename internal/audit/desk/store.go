package desk

import (
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// store gives the ledger the state of audits.
type store struct{ *core }

// progress returns the evidence of a job, nil if there is none or no ledger.
func (s *store) progress(j *job) *saved.Progress {
	if !s.opt.Kept || j.evidence == nil {
		return nil
	}
	p := &saved.Progress{Version: saved.ProgressVersion, Trials: j.evidence.Executions()}
	var err error
	if p.Evidence, err = j.evidence.MarshalBinary(); err != nil {
		s.log(zap.ErrorLevel, "the evidence of an audit cannot be stored", zap.String("audit", j.id), zap.String("error", s.opt.Say(err)))
		return nil
	}
	return p
}

// note adds the facts of the job to its progress.
func (j *job) note(p *saved.Progress) {
	for i, w := range j.worlds {
		p.Neighbours = append(p.Neighbours, w.Schema)
		p.Reported = append(p.Reported, j.reported[i])
	}
	p.Restarts, p.Confirming, p.Suspected, p.Doubted = j.restarts, j.confirming, j.suspected, j.doubted
	p.Measuring, p.Seed = j.Measuring, j.seed
	p.Profiles = saved.ProfilesOf(j.reports)
	p.Decided, p.Turns, p.Used = p.Measuring || j.state() == view.Decided, j.Turns(), j.Used()
	p.Life = j.life.Life
	p.DecidedAt, p.Repeats, p.Previous = j.decided, j.repeats, j.previous
	p.Changes, p.Changed, p.Background = j.changes, j.changed, j.Background
	p.Hoisting = j.hoisting
	if p.Evidence == nil {
		p.Trouble = j.trouble
	}
}

// storedQuery returns the form of a job's query in the ledger.
func (j *job) storedQuery() ledger.Query {
	q := recognize.QueryOf(j.plan, j.answers)
	q.Key, q.FirstSeen, q.LastSeen, q.Statement = j.Key, j.firstSeen, j.LastSeen, capture.AppendBinary(nil, j.query)
	return q
}

// stored returns the form of a job in the ledger. p is its evidence; nil if it has none that the ledger lacks.
func stored(j *job, p *saved.Progress) (ledger.Audit, error) {
	state := j.state()
	out := ledger.Audit{Query: j.storedQuery(), State: string(state), Trials: j.Trials, Processes: j.processes, DataEpoch: j.copies, Reason: j.trouble}
	j.storeLife(&out)
	if len(j.reports) > 0 {
		r := j.worst()
		if state == view.Decided || r.Verdict == analysis.Violation {
			out.Verdict, out.Reason, out.ReasonCode = string(r.Verdict), r.Reason, r.ReasonCode
		}
		out.Lower = saved.LowerOf(&r)
	}
	if p == nil && state != view.Decided {
		return out, nil // or its evidence could not be stored
	}
	if p == nil {
		p = &saved.Progress{Version: saved.ProgressVersion}
	}
	j.note(p)
	var err error
	out.EvidenceTrials = p.Trials
	out.Progress, err = p.Encode()
	return out, err
}

// LedgerError is an error of the ledger: the audit waits.
type LedgerError struct{ Err error }

func (e *LedgerError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *LedgerError) Unwrap() error { return e.Err }

// put notes the present state of a job, which save writes.
func (s *store) put(j *job, p *saved.Progress) {
	if !s.opt.Kept || p == nil && j.stored {
		return
	}
	audit, err := stored(j, p)
	if err != nil {
		return // a part without a binary form: no value of a job has one
	}
	j.Kept = false
	s.do(Write{audit})
}
