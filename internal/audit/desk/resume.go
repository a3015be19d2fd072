package desk

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// resume gives a job without evidence the progress that the ledger has. With an error the job is unchanged.
func (b *Beginnings) resume(j *job, row *ledger.Audit) error {
	neighbours := b.opt.D1
	if j.control {
		neighbours = []string{b.opt.Twin}
	}
	p, e, err := saved.Unpack(row, neighbours)
	if err != nil {
		return err
	}
	b.goOn(j, row, p, e)
	j.Kept = true
	b.roster.Resume(&j.Audit, p.Turns, p.Used)
	if p.Decided {
		b.roster.Decide(&j.Audit, row.Verdict == string(analysis.Violation) || j.Open, 0)
		j.Measuring = p.Measuring && e != nil && j.Phase() == schedule.Violation
		j.Watched = b.watches.watchable(j)
	}
	if p.Decided && !j.Measuring {
		b.places.release(j)
	} else {
		b.roster.Resize(&j.Audit, j.size())
	}
	return nil
}

// goOn sets the fields of a job that goes on.
func (b *Beginnings) goOn(j *job, row *ledger.Audit, p *saved.Progress, e *evidence.Evidence) {
	j.life.Life = p.Life
	j.restarts, j.processes, j.copies, j.evidence, j.seed = p.Restarts, row.Processes, row.DataEpoch, e, p.Seed
	j.decided, j.repeats, j.previous = p.DecidedAt, p.Repeats, p.Previous
	j.changes, j.changed, j.Background, j.watch.state = p.Changes, p.Changed, p.Background, row.Watch
	j.confirming, j.suspected, j.doubted = p.Confirming, p.Suspected, p.Doubted
	if p.Hoisting != nil {
		j.hoisting = p.Hoisting
	}
	if j.seed == 0 {
		j.seed = b.opt.Seed() >> 11
	}
	if e == nil {
		j.trouble = p.Trouble
		j.reports = []analysis.Report{b.emptyReport(j.plan, p.Trouble)}
		return
	}
	worlds := make([]step.World, len(p.Neighbours))
	for i, schema := range p.Neighbours {
		worlds[i].Schema = schema
	}
	j.worlds, j.reported = worlds, slices.Clone(p.Reported)
	j.reports = step.Reports(e, j.source(), false)
	j.thresholds(b.single(e))
	for i := range j.reports {
		p.RestoreProfile(e, i, &j.reports[i])
	}
	j.figures()
}
