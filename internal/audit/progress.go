package audit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// progress returns the evidence of a job, nil if there is none or no ledger.
func (d *desk) progress(j *job) *saved.Progress {
	if d.opt.Ledger == nil || j.evidence == nil {
		return nil
	}
	p := &saved.Progress{Version: saved.ProgressVersion, Trials: j.evidence.Executions()}
	var err error
	if p.Evidence, err = j.evidence.MarshalBinary(); err != nil {
		d.log(zap.ErrorLevel, "the evidence of an audit cannot be stored", zap.String("audit", j.id), zap.String("error", d.opt.say(err)))
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
	p.Profiles = profilesOf(j.reports)
	p.Decided, p.Turns, p.Used = p.Measuring || j.state() == view.Decided, j.Turns(), j.Used()
	p.Life = j.life.Life
	p.DecidedAt, p.Repeats, p.Previous = j.decided, j.repeats, j.previous
	p.Changes, p.Changed, p.Background = j.changes, j.changed, j.Background
	p.Hoisting = j.hoisting
	if p.Evidence == nil {
		p.Trouble = j.trouble
	}
}

// profilesOf returns the profiles of the findings of reports; nil where there is none.
func profilesOf(reports []analysis.Report) (all [][]analysis.ProfilePoint) {
	for i := range reports {
		var profile []analysis.ProfilePoint
		if f := reports[i].Finding; f != nil {
			profile = f.HowBad.Profile
		}
		all = append(all, profile)
	}
	return all
}

// lowerOf returns the lower bound of a report; nil if there is none.
func lowerOf(r *analysis.Report) *float64 {
	lower := float64(r.EpsilonLower)
	if math.IsNaN(lower) {
		return nil
	}
	return &lower
}

// storedQuery returns the form of a job's query in the ledger.
func (j *job) storedQuery() ledger.Query {
	q := recognize.QueryOf(j.plan, j.answers)
	q.Key, q.FirstSeen, q.LastSeen, q.Statement = j.Key, j.firstSeen, j.LastSeen, capture.AppendBinary(nil, j.query)
	return q
}

// stored returns the form of a job in the ledger. The caller holds Auditor.mu and has the job's turn.
func stored(j *job, p *saved.Progress) (ledger.Audit, error) {
	state := j.state()
	out := ledger.Audit{Query: j.storedQuery(), State: string(state), Trials: j.Trials, Processes: j.processes, DataEpoch: j.epoch, Reason: j.trouble}
	j.storeLife(&out)
	if len(j.reports) > 0 {
		r := j.worst()
		if state == view.Decided || r.Verdict == analysis.Violation {
			out.Verdict, out.Reason = string(r.Verdict), r.Reason
		}
		out.Lower = lowerOf(&r)
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

// resume gives a job without evidence the progress that the ledger has. With an error the job is unchanged.
func (d *desk) resume(j *job, row *ledger.Audit) error {
	p, e, err := unpack(row, d.opt.D1)
	if err != nil {
		return err
	}
	j.goOn(d, row, p, e)
	j.Kept = true
	d.roster.Resume(&j.Audit, p.Turns, p.Used)
	if p.Decided {
		d.roster.Decide(&j.Audit, row.Verdict == string(analysis.Violation) || j.Open, 0)
		j.Measuring = p.Measuring && e != nil && j.Phase() == schedule.Violation
		j.Watched = d.watchable(j)
	}
	if p.Decided && !j.Measuring {
		d.release(j)
	} else {
		d.roster.Resize(&j.Audit, j.size())
	}
	return nil
}

// unpack decodes the progress in the ledger. The evidence is nil if the audit was decided without any.
func unpack(row *ledger.Audit, neighbours []string) (*saved.Progress, *evidence.Evidence, error) {
	p, err := saved.Decode(row)
	switch {
	case err != nil:
		return nil, nil, err
	case len(p.Evidence) == 0 && !p.Decided:
		return nil, nil, fmt.Errorf("the stored progress has no evidence")
	case len(p.Evidence) == 0:
		return p, nil, nil
	case !slices.Equal(p.Neighbours, neighbours):
		return nil, nil, errNeighbours
	}
	e := new(evidence.Evidence)
	if err := e.UnmarshalBinary(p.Evidence); err != nil {
		return nil, nil, err
	}
	if e.Neighbours() != len(p.Neighbours) {
		return nil, nil, saved.ErrDamaged
	}
	return p, e, nil
}

// goOn sets the fields of a job that goes on.
func (j *job) goOn(d *desk, row *ledger.Audit, p *saved.Progress, e *evidence.Evidence) {
	j.life.Life = p.Life
	j.restarts, j.processes, j.epoch, j.evidence, j.seed = p.Restarts, row.Processes, row.DataEpoch, e, p.Seed
	j.decided, j.repeats, j.previous = p.DecidedAt, p.Repeats, p.Previous
	j.changes, j.changed, j.Background, j.watch.state = p.Changes, p.Changed, p.Background, row.Watch
	j.confirming, j.suspected, j.doubted = p.Confirming, p.Suspected, p.Doubted
	if p.Hoisting != nil {
		j.hoisting = p.Hoisting
	}
	if j.seed == 0 {
		j.seed = d.opt.Seed() >> 11
	}
	if e == nil {
		j.trouble = p.Trouble
		j.reports = []analysis.Report{d.emptyReport(j.plan, p.Trouble)}
		return
	}
	worlds := make([]turn.World, len(p.Neighbours))
	for i, schema := range p.Neighbours {
		worlds[i].Schema = schema
	}
	j.worlds, j.reported = worlds, slices.Clone(p.Reported)
	j.reports = turn.Reports(e, j.source(), false)
	j.thresholds(d.single(e))
	for i := range j.reports {
		p.RestoreProfile(e, i, &j.reports[i])
	}
	j.figures()
}

// recall looks for the evidence of an audit of an earlier process, or of one that had lost its place, and reports
// whether the audit is decided. With an error, of the ledger or the shadow database, the next turn does it. The caller
// has the job's turn.
func (a *Auditor) recall(ctx context.Context, j *job) (decided bool, err error) {
	if !a.keeper.On || j.recalled {
		return false, nil
	}
	err = a.keeper.Write(ctx, j.Key) // what it had when it lost its place, if the ledger was away
	if err != nil {
		return false, &ledgerError{err}
	}
	row, found, err := a.keeper.Engine.Load().Audits.Find(ctx, j.Key)
	if err != nil {
		return false, &ledgerError{err}
	}
	epoch := ""
	if found && row.Progress != nil {
		if err = a.env.ReadCopies(ctx); err != nil {
			return false, err
		}
		epoch = a.env.Now().Copies
	}
	j.recalled = true
	if !found {
		return false, nil
	}
	j.processes = row.Processes
	a.locked(func() { j.recallLife(&row) })
	if row.Progress == nil || epoch != row.DataEpoch {
		return false, nil
	}
	return a.takeUp(ctx, j, &row), nil
}

// takeUp resumes a job in its turn and reports whether it is decided.
func (a *Auditor) takeUp(ctx context.Context, j *job, row *ledger.Audit) (decided bool) {
	var err error
	a.locked(func() {
		err = a.resume(j, row)
		decided = err == nil && j.Phase() != schedule.Running
	})
	if err != nil {
		a.setAside(ctx, j.id, j.Key, err)
	}
	return decided
}
