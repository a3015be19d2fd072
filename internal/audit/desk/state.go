package desk

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/rewrite"
)

// state returns the job's state.
func (j *job) state() view.State {
	switch {
	case j.Phase() == schedule.Violation && j.Measuring:
		return view.Measuring
	case j.Phase() == schedule.Decided || j.Phase() == schedule.Violation || j.Phase() == schedule.Watching:
		return view.Decided
	case j.trouble != "":
		return view.Waiting
	case j.confirming || j.doubted:
		return view.Unconfirmed
	case j.Turns() > 0:
		return view.Running
	}
	return view.Queued
}

// display returns what is shown as the verdict of a report: the state if there is no verdict yet. It then removes the
// verdict from the report and gives the state as its reason.
func (j *job) display(r *analysis.Report) string {
	state := j.state()
	if state == view.Decided || r.Verdict == analysis.Violation {
		return string(r.Verdict)
	}
	r.Verdict = ""
	switch state {
	case view.Waiting:
		r.Reason = "waiting: " + j.trouble
	case view.Unconfirmed:
		switch {
		case !j.confirming:
			r.Reason = fmt.Sprintf("unconfirmed: %d pairs of trials would show a violation if no other query were audited; trials go on until they do among all", r.Trials.D0)
		case r.Confirmation != nil || r.Control != nil:
			r.Reason = "unconfirmed: " + r.Reason
		}
	case view.Running:
		r.Reason = fmt.Sprintf("running: %d pairs of trials so far", r.Trials.D0)
	default:
		r.Reason = "queued: waiting for its first turn"
	}
	return string(state)
}

// size returns the approximate memory of a job in bytes.
func (j *job) size() int64 {
	const fixed = 2 << 10
	n := fixed + j.query.Size() + j.plan.Size()
	for i := range j.worlds {
		w := &j.worlds[i]
		n += len(w.SQL.D0) + len(w.SQL.D1)
	}
	if j.evidence != nil {
		n += j.evidence.Size()
	}
	for i := range j.reports {
		n += j.reports[i].Size()
	}
	n += len(j.watch.state)
	return int64(n)
}

// release frees what a decided audit does not need: everything except its report, the query with which it can begin
// again, and the texts if they are shown or the audit is watched.
func (p *places) release(j *job) {
	p.versions.callsOf(&j.life, j.plan) // for which the plan is needed
	if !j.Watched {
		p.releaseTexts(j)
	}
	j.evidence = nil
	p.roster.Resize(&j.Audit, j.size())
}

// releaseTexts frees what only replays need.
func (p *places) releaseTexts(j *job) {
	j.reduce()
	j.plan.Settings, j.plan.SearchPath = nil, nil
	if p.opt.ShowSQL {
		return
	}
	j.worlds = withoutTexts(j.worlds)
}

// reduce drops of a job's plan what only rewriting needs. Whenever its texts are gone, the query is parsed again.
func (j *job) reduce() {
	j.plan = summaryOf(j.plan)
	j.life.released = true
}

// withoutTexts returns neighbours without the texts of the query.
func withoutTexts(worlds []step.World) []step.World {
	bare := make([]step.World, len(worlds))
	for i := range worlds {
		bare[i].Schema = worlds[i].Schema
	}
	return bare
}

// summaryOf returns the parts of a plan that an audit needs after its texts are created: not the tree, nor the catalog
// that was read for it.
func summaryOf(p *rewrite.Plan) *rewrite.Plan {
	return &rewrite.Plan{
		Key: p.Key, Group: p.Group, Shape: p.Shape, Summary: p.Summary, Claim: p.Claim, Assumed: p.Assumed, Beside: p.Beside,
		Settings: p.Settings, SearchPath: p.SearchPath, Sorted: p.Sorted, Facts: p.Facts,
		Functions: p.Functions, Implied: p.Implied, Tables: p.Tables, Public: p.Public, UnknownNames: p.UnknownNames,
	}
}

// shownPartitions is the number of partitions of a report that are kept: those with the largest estimates.
const shownPartitions = 20

// cutPartitions keeps the partitions with the largest estimates, in the order in which their keys appeared, and returns
// how many there were.
func cutPartitions(r *analysis.Report) int {
	n := len(r.Partitions)
	if n <= shownPartitions {
		return n
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { // NaN is the smallest
		return cmp.Or(cmp.Compare(r.Partitions[y].EpsilonEstimate, r.Partitions[x].EpsilonEstimate), cmp.Compare(x, y))
	})
	order = order[:shownPartitions]
	slices.Sort(order)
	kept := make([]analysis.Partition, shownPartitions)
	for i, at := range order {
		kept[i] = r.Partitions[at]
	}
	r.Partitions = kept
	return n
}

// reportsOf returns the present reports of all neighbours. The caller has the job's turn.
func reportsOf(j *job) []analysis.Report {
	reports := step.Reports(j.evidence, j.source(), false)
	for i := range reports {
		cutPartitions(&reports[i])
	}
	return reports
}

// figures derives from the reports what is shown and what the scheduler needs.
func (j *job) figures() {
	worst := evidence.Worst(j.reports)
	j.Trials, j.Wealth, j.Threshold = 0, 0, j.reports[worst].Threshold()
	for i := range j.reports {
		j.Trials = max(j.Trials, j.reports[i].Trials.D0) // the neighbours may have had different numbers: see evidence.Spared
		partitions := cutPartitions(&j.reports[i])
		if i == worst {
			j.partitions = partitions
		}
		if w := float64(j.reports[i].WealthLog); !math.IsNaN(w) && (i == 0 || w > j.Wealth) {
			j.Wealth = w
		}
	}
	j.Wealth = max(j.Wealth, j.suspected)
}
